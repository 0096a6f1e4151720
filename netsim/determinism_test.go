package netsim_test

import (
	"fmt"
	"io"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/netsim"
)

// crowd is twenty hosts that all talk to each other at once, over streams and
// datagrams, through weather that loses, delays, doubles and damages, while
// links are cut and a host sleeps.
func crowd(t *testing.T, n *netsim.Network) {
	const hosts, calls = 20, 2
	all := make([]*netsim.Host, hosts)
	for i := range all {
		all[i] = n.Host(fmt.Sprintf("h%02d", i))
		echo(t, all[i], ":7")
		heard := packetConn(t, all[i], ":9")
		n.Go(fmt.Sprintf("answer %02d", i), func() {
			b := make([]byte, 1000)
			for {
				k, from, err := heard.ReadFrom(b)
				if err != nil {
					return
				}
				heard.WriteTo(b[:k], from)
			}
		})
	}
	n.Link(all[0], all[1]).SetConditions(netsim.WiFi)
	n.Link(all[2], all[3]).SetConditions(netsim.Metro)
	n.After(30*ms, "cut", func() { n.Link(all[0], all[6]).Cut() })
	n.After(900*ms, "heal", func() { n.Link(all[0], all[6]).Heal() })
	n.After(100*ms, "sleep", all[5].Pause)
	n.After(700*ms, "wake", all[5].Resume)

	var wg sync.WaitGroup
	for i, h := range all {
		for k := range calls {
			to := all[(i+1+5*k)%hosts]
			wg.Add(2)
			n.Go(fmt.Sprintf("stream %02d.%d", i, k), func() {
				defer wg.Done()
				c, err := h.Dial("tcp", to.Name()+":7")
				if !assert.NoError(t, err) {
					return
				}
				defer c.Close()
				message := make([]byte, 500+1500*k)
				for range 2 {
					c.Write(message)
					_, err := io.ReadFull(c, message)
					assert.NoError(t, err)
				}
			})
			n.Go(fmt.Sprintf("datagrams %02d.%d", i, k), func() {
				defer wg.Done()
				c, err := h.Dial("udp", to.Name()+":9")
				if !assert.NoError(t, err) {
					return
				}
				defer c.Close()
				b := make([]byte, 1000)
				for range 5 {
					c.Write(b[:100+k])
					c.SetReadDeadline(time.Now().Add(50 * ms))
					if _, err := c.Read(b); err != nil {
						var timeout net.Error
						assert.ErrorAs(t, err, &timeout)
					}
				}
			})
		}
	}
	wg.Wait()
}

// TestDeterminism: the trace has one hash, however many processors there are and
// however often it runs, and another with another seed.
func TestDeterminism(t *testing.T) {
	weather := netsim.Defaults(netsim.Conditions{
		Latency: 20 * ms, Jitter: 8 * ms, Distribution: netsim.Normal, DelayCorrelation: 0.3,
		Loss: 0.05, Duplicate: 0.02, Corrupt: 0.01, Reorder: 0.05, Rate: 20e6, Queue: 60000,
	})
	play := func(seed uint64) (hash string, events []netsim.Event) {
		var n *netsim.Network
		netsim.Run(t, func(t *testing.T, m *netsim.Network) {
			n = m
			crowd(t, m)
		}, weather, netsim.Seed(seed))
		return n.Trace().Hash(), n.Trace().Events()
	}
	want, events := play(1)
	require.Greater(t, len(events), 1000)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, processors := range []int{1, 2, 4} {
		runtime.GOMAXPROCS(processors)
		for run := range 7 {
			hash, again := play(1)
			require.Equal(t, want, hash, "run %d with %d processors parts %s", run+1, processors, netsim.Parting(events, again))
		}
	}
	other, _ := play(2)
	require.NotEqual(t, want, other)
}
