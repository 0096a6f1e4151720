package netsim_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/netsim"
)

// Packets that nobody can notice yet are judged late, or as soon as somebody
// looks. Whether somebody looks must make no difference to what happens, nor may
// what somebody does to the network meanwhile come too early.
func TestWatchingANetworkChangesNothing(t *testing.T) {
	run := func(seed uint64, spy bool) (hash, text string) {
		require.NoError(t, netsim.Bubble(t, func(t *testing.T, n *netsim.Network) {
			server := n.Host("server")
			l, err := server.Listen("tcp", ":1")
			require.NoError(t, err)
			packets, err := server.ListenPacket("udp", ":2")
			require.NoError(t, err)
			go func() {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					go func() { io.Copy(c, c); c.Close() }()
				}
			}()
			go func() {
				b := make([]byte, 2000)
				for {
					k, from, err := packets.ReadFrom(b)
					if err != nil {
						return
					}
					packets.WriteTo(b[:k], from)
				}
			}()
			for i := range 4 {
				host := n.Host(fmt.Sprint("client", i))
				rnd := rand.New(rand.NewPCG(seed, uint64(i)))
				n.Link(host, server).SetConditions(netsim.Conditions{Latency: time.Duration(1+rnd.IntN(30)) * ms})
				n.Go(host.Name(), func() {
					for range 6 {
						u, err := host.Dial("udp", "server:2")
						require.NoError(t, err)
						u.Write([]byte("datagram"))
						c, err := host.Dial("tcp", "server:1")
						if err != nil {
							continue
						}
						c.SetDeadline(time.Now().Add(2 * time.Second))
						b := make([]byte, 1+rnd.IntN(100_000))
						go c.Write(b)
						io.ReadFull(c, b)
						time.Sleep(time.Duration(rnd.IntN(50_000)) * time.Microsecond)
						c.Close()
						u.Close()
					}
				})
			}
			rnd := rand.New(rand.NewPCG(seed, 99))
			for i := range 5 { // what breaks in between, to the nanosecond
				at, link := time.Duration(rnd.IntN(900_000))*time.Microsecond, n.Link(n.Lookup(fmt.Sprint("client", i%4)), server)
				n.After(at, fmt.Sprint("cut", i), func() { link.Cut().MayMiss() })
				n.After(at+time.Duration(rnd.IntN(100_000))*time.Microsecond, fmt.Sprint("heal", i), link.Heal)
			}
			if spy {
				go func() {
					for range 20_000 {
						time.Sleep(333 * time.Microsecond)
						n.Trace().Len()
					}
				}()
			}
			time.Sleep(10 * time.Second)
			hash, text = n.Trace().Hash(), n.Trace().Tail(1<<20)
		}, netsim.Seed(seed)))
		return
	}
	for seed := range uint64(8) {
		hash, text := run(seed, false)
		watched, other := run(seed, true)
		if hash != watched {
			require.Equal(t, text, other)
		}
	}
}

// A packet has left when the call returns, whatever happens to the network while
// it is on its way and nobody has looked at it yet.
func TestWhatIsOnItsWayHasLeft(t *testing.T) {
	for _, c := range []struct {
		name string
		act  func(n *netsim.Network, a, b *netsim.Host)
		why  string // why it is lost
	}{
		{name: "nothing", act: func(*netsim.Network, *netsim.Host, *netsim.Host) {}},
		{name: "cut", act: func(n *netsim.Network, a, b *netsim.Host) { n.Link(a, b).Cut() }, why: "cut on its way"},
		{name: "slower", act: func(n *netsim.Network, a, b *netsim.Host) {
			n.Link(a, b).SetConditions(netsim.Conditions{Latency: time.Hour})
		}},
		{name: "rule", act: func(n *netsim.Network, a, b *netsim.Host) {
			n.Apply(netsim.Rule{From: a, Verdict: netsim.Verdict{Action: netsim.Drop}, MayMiss: true})
		}},
		{name: "crash of the sender", act: func(_ *netsim.Network, a, _ *netsim.Host) { a.Crash() }},
		{name: "crash of the receiver", act: func(_ *netsim.Network, _, b *netsim.Host) { b.Crash() }, why: "host down"},
	} {
		for _, network := range []string{"tcp", "udp"} {
			t.Run(network+"/"+c.name, func(t *testing.T) {
				netsim.Run(t, func(t *testing.T, n *netsim.Network) {
					a, b := n.Host("a"), n.Host("b")
					_, err := b.Listen("tcp", ":1")
					require.NoError(t, err)
					_, err = b.ListenPacket("udp", ":1")
					require.NoError(t, err)
					conn, err := a.Dial(network, "b:1")
					require.NoError(t, err)
					time.Sleep(time.Second)
					start := n.Now()
					conn.Write([]byte("hello"))
					time.Sleep(5 * ms)
					c.act(n, a, b)
					time.Sleep(time.Second)
					e, ok := n.Trace().First(func(e netsim.Event) bool { return e.Len == 5 })
					require.True(t, ok)
					require.Equal(t, c.why, e.Why, "%v", e)
					require.InDelta(t, start, e.Sent, float64(time.Microsecond))
					require.InDelta(t, start+10*ms, e.At, float64(time.Microsecond))
				}, netsim.Defaults(netsim.Conditions{Latency: 10 * ms}))
			})
		}
	}
}
