package programs

import (
	"testing"
	"testing/cryptotest"

	"github.com/stretchr/testify/assert"

	"github.com/seed-5a7f77c4/deadair/netsim"
)

// QUIC picks by select, and from maps, what it sends in one instant: two runs
// may part, and Parting names the event. It works all the same in each run.
func TestWhereHTTP3Parts(t *testing.T) {
	var first *netsim.Trace
	for i := range runs {
		var trace *netsim.Trace
		netsim.Run(t, func(t *testing.T, n *netsim.Network) {
			cryptotest.SetGlobalRandom(t, 1)
			trace = n.Trace()
			http3Echo(t, n)
		}, rough, netsim.Strict())
		if i == 0 {
			first = trace
			continue
		}
		if trace.Hash() != first.Hash() {
			parting := netsim.Parting(first.Events(), trace.Events())
			assert.Contains(t, parting, "  one  ")
			assert.Contains(t, parting, "  two  ")
			t.Logf("run %d parts from run 1 %s", i+1, parting)
			return
		}
	}
}
