package netsim_test

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/netsim"
)

var drop = netsim.Verdict{Action: netsim.Drop}

// TestRuleFields applies rules that look at one field each to the same traffic:
// a sends the datagrams 1 to 6 to b, of as many tens of bytes, from port 1000
// to port 2000 if odd and 2001 if even, and c sends one to b.
func TestRuleFields(t *testing.T) {
	for name, c := range map[string]struct {
		rule func(n *netsim.Network, a, b, c *netsim.Host) netsim.Rule
		lost string
	}{
		"From": {func(n *netsim.Network, a, b, c *netsim.Host) netsim.Rule { return netsim.Rule{From: c} }, "c"},
		"To": {func(n *netsim.Network, a, b, c *netsim.Host) netsim.Rule {
			return netsim.Rule{To: b, First: 1, Last: 7}
		}, "123456c"},
		"Between": {func(n *netsim.Network, a, b, c *netsim.Host) netsim.Rule { return netsim.Rule{Between: n.Link(b, c)} }, "c"},
		"Proto":   {func(n *netsim.Network, a, b, c *netsim.Host) netsim.Rule { return netsim.Rule{Proto: netsim.UDP} }, "123456c"},
		"Kind":    {func(n *netsim.Network, a, b, c *netsim.Host) netsim.Rule { return netsim.Rule{Kind: netsim.Datagram} }, "123456c"},
		"Port":    {func(n *netsim.Network, a, b, c *netsim.Host) netsim.Rule { return netsim.Rule{Port: 1000} }, "123456"},
		"SrcPort": {func(n *netsim.Network, a, b, c *netsim.Host) netsim.Rule { return netsim.Rule{SrcPort: 1001} }, "c"},
		"DstPort": {func(n *netsim.Network, a, b, c *netsim.Host) netsim.Rule { return netsim.Rule{DstPort: 2001} }, "246"},
		"Conn":    {func(n *netsim.Network, a, b, c *netsim.Host) netsim.Rule { return netsim.Rule{Conn: 1} }, "123456c"},
		"Flow":    {func(n *netsim.Network, a, b, c *netsim.Host) netsim.Rule { return netsim.Rule{Flow: "a>b:2001/udp#1"} }, "246"},
		"MinSize": {func(n *netsim.Network, a, b, c *netsim.Host) netsim.Rule { return netsim.Rule{MinSize: 28 + 50} }, "56"},
		"MaxSize": {func(n *netsim.Network, a, b, c *netsim.Host) netsim.Rule { return netsim.Rule{MaxSize: 28 + 10} }, "1c"},
		"First":   {func(n *netsim.Network, a, b, c *netsim.Host) netsim.Rule { return netsim.Rule{First: 3} }, "3"},
		"Last":    {func(n *netsim.Network, a, b, c *netsim.Host) netsim.Rule { return netsim.Rule{Last: 2} }, "12"},
		"Range":   {func(n *netsim.Network, a, b, c *netsim.Host) netsim.Rule { return netsim.Rule{First: 2, Last: 4} }, "234"},
		"Every":   {func(n *netsim.Network, a, b, c *netsim.Host) netsim.Rule { return netsim.Rule{Every: 3} }, "36"},
		"After":   {func(n *netsim.Network, a, b, c *netsim.Host) netsim.Rule { return netsim.Rule{After: 35 * ms} }, "56c"},
		"New":     {func(n *netsim.Network, a, b, c *netsim.Host) netsim.Rule { return netsim.Rule{New: true} }, "123456c"},
		"Match": {func(n *netsim.Network, a, b, c *netsim.Host) netsim.Rule {
			return netsim.Rule{Match: func(p netsim.Packet) bool {
				return bytes.HasPrefix(p.Payload, []byte("4")) && p.From == a && p.To == b && p.Fate == 0
			}}
		}, "4"},
		"together": {func(n *netsim.Network, a, b, c *netsim.Host) netsim.Rule {
			return netsim.Rule{DstPort: 2001, First: 2, MinSize: 40}
		}, "4"},
	} {
		t.Run(name, func(t *testing.T) {
			netsim.Run(t, func(t *testing.T, n *netsim.Network) {
				a, b, other := n.Host("a"), n.Host("b"), n.Host("c")
				r := c.rule(n, a, b, other)
				r.Verdict = drop
				f := n.Apply(r) // before the first connection exists
				from, third := packetConn(t, a, ":1000"), packetConn(t, other, ":1001")
				odd, even := packetConn(t, b, ":2000"), packetConn(t, b, ":2001")
				for i := 1; i <= 6; i++ {
					from.WriteTo(bytes.Repeat([]byte{byte('0' + i)}, 10*i), udpAddr(b, 2001-i%2))
					time.Sleep(10 * ms)
				}
				third.WriteTo([]byte("c"), udpAddr(b, 2000))
				got := strings.Join(append(drain(t, odd, time.Second), drain(t, even, time.Second)...), "")
				lost := ""
				for _, x := range "123456c" {
					if !strings.ContainsRune(got, x) {
						lost += string(x)
					}
				}
				require.Equal(t, c.lost, lost)
				require.Equal(t, len(c.lost), f.Hits())
			})
		})
	}
}

func TestRuleConnAndKind(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b")
		echo(t, b, ":7")
		n.Apply(netsim.Rule{Conn: 2, Kind: netsim.Data, From: b, Verdict: drop})
		for i := 1; i <= 3; i++ {
			c, err := a.Dial("tcp", "b:7")
			require.NoError(t, err)
			write(t, c, "x")
			c.SetReadDeadline(time.Now().Add(time.Second))
			_, err = c.Read(make([]byte, 1))
			require.Equal(t, i == 2, err != nil, "connection %d", i)
		}
	})
}

func TestRuleNewAndEstablished(t *testing.T) {
	for _, old := range []bool{true, false} {
		t.Run(fmt.Sprint("established ", old), func(t *testing.T) {
			netsim.Run(t, func(t *testing.T, n *netsim.Network) {
				a, b := n.Host("a"), n.Host("b")
				echo(t, b, ":7")
				d := &netsim.Dialer{Host: a, Timeout: time.Second}
				first, err := d.Dial("tcp", "b:7")
				require.NoError(t, err)
				n.Apply(netsim.Rule{Established: old, New: !old, Verdict: drop})
				write(t, first, "x")
				first.SetReadDeadline(time.Now().Add(time.Second))
				_, err = first.Read(make([]byte, 1))
				require.Equal(t, old, err != nil)
				_, err = d.Dial("tcp", "b:7")
				require.Equal(t, !old, err != nil)
			})
		})
	}
}

func TestRuleUndo(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b")
		from, to := packetConn(t, a, ":0"), packetConn(t, b, ":9")
		f := n.Apply(netsim.Rule{Name: "mine", Verdict: drop})
		require.Equal(t, "rule mine", f.Name())
		sendNumbers(t, from, udpAddr(b, 9), 2)
		f.Undo()
		f.Undo()
		sendNumbers(t, from, udpAddr(b, 9), 3)
		require.Len(t, drain(t, to, time.Second), 3)
		require.Equal(t, 2, f.Hits())
		require.Equal(t, 1, n.Trace().Count(func(e netsim.Event) bool { return e.Why == "undo rule mine" }))
	})
}

func TestHoldKeepsTheOrder(t *testing.T) {
	for name, hold := range map[string]func(n *netsim.Network, a, b *netsim.Host) (release func()){
		"rule": func(n *netsim.Network, a, b *netsim.Host) func() {
			return n.Apply(netsim.Rule{From: a, Verdict: netsim.Verdict{Action: netsim.Hold}}).Undo
		},
		"path": func(n *netsim.Network, a, b *netsim.Host) func() {
			n.Path(a, b).Hold()
			return n.Path(a, b).Release
		},
		"link": func(n *netsim.Network, a, b *netsim.Host) func() {
			n.Link(b, a).Hold()
			return n.Link(b, a).Release
		},
	} {
		t.Run(name, func(t *testing.T) {
			netsim.Run(t, func(t *testing.T, n *netsim.Network) {
				a, b := n.Host("a"), n.Host("b")
				from, to := packetConn(t, a, ":0"), packetConn(t, b, ":9")
				n.Link(a, b).Cut().MayMiss().Undo() // a cut that is over does not matter
				release := hold(n, a, b)
				sendNumbers(t, from, udpAddr(b, 9), 9)
				require.Empty(t, drain(t, to, time.Minute))
				start := time.Now()
				release()
				require.Equal(t, "123456789", strings.Join(drain(t, to, time.Second), ""))
				within(t, time.Second, time.Since(start))
			}, tenms)
		})
	}
}

func TestHoldCatchesWhatIsOnItsWay(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b")
		from, to := packetConn(t, a, ":0"), packetConn(t, b, ":9")
		from.WriteTo([]byte("x"), udpAddr(b, 9))
		time.Sleep(5 * ms)
		f := n.Path(a, b).Hold()
		require.Empty(t, drain(t, to, time.Second))
		require.Equal(t, 1, f.Hits())
		f.Undo()
		require.Equal(t, []string{"x"}, drain(t, to, time.Second))
	}, tenms)
}

func TestCutCatchesWhatIsOnItsWay(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b")
		from, to := packetConn(t, a, ":0"), packetConn(t, b, ":9")
		from.WriteTo([]byte("x"), udpAddr(b, 9))
		time.Sleep(5 * ms)
		f := n.Path(a, b).Cut()
		f.Undo() // though it is healed before the packet would have arrived
		require.Empty(t, drain(t, to, time.Second))
		require.Equal(t, 1, f.Hits())
	}, tenms)
}

func TestRejectResetsAStream(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b")
		client, server := pair(t, a, b)
		n.Apply(netsim.Rule{From: a, Kind: netsim.Data, Verdict: netsim.Verdict{Action: netsim.Reject}})
		write(t, client, "x")
		d := after(func() { require.ErrorIs(t, readError(t, client), syscall.ECONNRESET) })
		within(t, 20*ms, d)
		server.SetReadDeadline(time.Now().Add(time.Second))
		require.Error(t, readError(t, server))
	}, tenms)
}

func TestDuplicatesTravelThroughAllOfTheWay(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b")
		wifi := a.Interface("wlan0", netsim.Wireless)
		wifi.SetConditions(netsim.Conditions{Duplicate: 1}, netsim.Conditions{})
		from, to := packetConn(t, a, ":0"), packetConn(t, b, ":9")
		n.Link(a, b).Cut().MayMiss().Undo()
		from.WriteTo([]byte("x"), udpAddr(b, 9))
		start := time.Now()
		buf := make([]byte, 1)
		for range 2 {
			_, _, err := to.ReadFrom(buf)
			require.NoError(t, err)
			within(t, 10*ms, time.Since(start))
		}
	}, tenms)
}

func TestFaultThatNeverBitIsAnError(t *testing.T) {
	for name, c := range map[string]struct {
		arm  func(n *netsim.Network, a, b *netsim.Host) *netsim.Fault
		want string
	}{
		"rule": {func(n *netsim.Network, a, b *netsim.Host) *netsim.Fault {
			return n.Apply(netsim.Rule{From: b, Port: 80, Verdict: drop})
		}, "rule drop from b port 80 never bit"},
		"cut": {func(n *netsim.Network, a, b *netsim.Host) *netsim.Fault { return n.Link(a, b).Cut() }, "cut a-b never bit"},
		"forget": {func(n *netsim.Network, a, b *netsim.Host) *netsim.Fault {
			return n.Link(a, b).ForgetIdle(time.Second, netsim.Silently)
		}, "forget a-b after 1s never bit"},
		"undone": {func(n *netsim.Network, a, b *netsim.Host) *netsim.Fault { f := n.Link(a, b).Hold(); f.Undo(); return f }, "hold a-b never bit"},
	} {
		t.Run(name, func(t *testing.T) {
			err := netsim.Bubble(t, func(t *testing.T, n *netsim.Network) { c.arm(n, n.Host("a"), n.Host("b")) })
			require.ErrorContains(t, err, c.want)
			netsim.Run(t, func(t *testing.T, n *netsim.Network) { c.arm(n, n.Host("a"), n.Host("b")).MayMiss() })
		})
	}
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		n.Apply(netsim.Rule{Verdict: drop, MayMiss: true})
	})
}

// A fault that was taken back after it bit is nobody's business any more: a
// storm of them costs no memory, and one that never bit is still told.
func TestUndoneFaultsAreForgotten(t *testing.T) {
	err := netsim.Bubble(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b")
		listen(t, b, ":7")
		for range 3 {
			f := n.Apply(netsim.Rule{Name: "hits", Kind: netsim.SYN, Verdict: netsim.Verdict{Delay: ms}})
			_, err := a.Dial("tcp", "b:7")
			require.NoError(t, err)
			f.Undo()
			require.Equal(t, 1, f.Hits())
		}
		n.Apply(netsim.Rule{Name: "misses", Kind: netsim.SYN, Verdict: netsim.Verdict{Delay: ms}}).Undo()
	})
	require.ErrorContains(t, err, "rule misses never bit")
	require.NotContains(t, err.Error(), "rule hits")
}

// One that watches and ends its goroutine hears the next news all the same.
func TestWatcherThatEndsItsGoroutine(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		phone := n.Host("phone")
		wifi := phone.Interface("wifi", netsim.Wireless)
		var told atomic.Int32
		defer phone.WatchConnectivity(0, func(netsim.Connectivity) {
			told.Add(1)
			runtime.Goexit()
		})()
		time.Sleep(time.Second)
		wifi.Down()
		time.Sleep(time.Second)
		wifi.Up()
		time.Sleep(time.Second)
		require.EqualValues(t, 3, told.Load())
	})
}
