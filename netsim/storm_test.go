package netsim_test

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/netsim"
)

// TestRepeatedPacketsMakeNoStorm: acknowledgements that are repeated and overtake
// each other are not answered by ever more of them, which would let virtual time
// stand still.
func TestRepeatedPacketsMakeNoStorm(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b")
		n.Link(a, b).SetConditions(netsim.Conditions{Latency: 20 * ms, Jitter: 10 * ms, Reorder: 0.05})
		client, server := pair(t, a, b)
		n.Apply(netsim.Rule{Verdict: netsim.Verdict{Duplicate: 3}})
		for _, c := range []*netsim.Conn{client, server} {
			go func() {
				c.Write(make([]byte, 300_000))
				c.CloseWrite()
			}()
			go io.Copy(io.Discard, c)
		}
		for range 400 {
			time.Sleep(10 * ms)
			require.Less(t, n.Trace().Len(), 50_000, "after %v", n.Now())
		}
	})
}
