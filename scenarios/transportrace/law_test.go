package transportrace_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/scenarios"
	"github.com/seed-5a7f77c4/deadair/scenarios/transportrace"
)

// The same seed, the same trace, whatever the number of processors.
func TestDeterminism(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(before)
	for _, sc := range transportrace.Stories() {
		t.Run(sc.ID, func(t *testing.T) {
			for _, procs := range []int{1, 2, 4} {
				runtime.GOMAXPROCS(procs)
				require.NoError(t, scenarios.Repeat(t, sc, transportrace.Ours(), 2, scenarios.Seed(3)), "on %d processors", procs)
			}
		})
	}
}

// TR-8 again and again on each number of processors: two connections, a stream and a relay at once.
func TestDeterminismOfARoam(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(before)
	sc := storyNamed(t, "TR-8")
	hashes := map[string]string{}
	for _, procs := range []int{1, 2, 4} {
		runtime.GOMAXPROCS(procs)
		for i := range 10 {
			o := scenarios.Run(t, sc, transportrace.Ours(), scenarios.Seed(1))
			hashes[o.Hash] = fmt.Sprintf("run %d on %d processors", i, procs)
		}
	}
	require.Len(t, hashes, 1, "the traces differ")
}

// On random walks of 24 hours: no roam from a standing fact, no live connection closed before the next one is adopted,
// never more than three attempts at once, one winner, and nothing left open.
func TestWalksKeepTheRules(t *testing.T) {
	for seed := range uint64(4) {
		o := scenarios.Run(t, transportrace.Wander(24*time.Hour), transportrace.Ours(), scenarios.Seed(seed+1))
		t.Logf("seed %d: %v real, %v, %d events", seed+1, o.Real, o.Figures, o.Trace.Len())
		o.Require(t)
		require.Greater(t, o.Figures["roams"], 20, "the walk is a walk")
	}
}

// A client without a rule does not pass: the walk looks.
func TestWalksNoticeWhatIsWrong(t *testing.T) {
	notices := map[string]bool{
		"standing-fact": true, "flapping-counts": true, "no-floor": true, "probe-without-interval": true, "probe-any-class": true,
		"break-before-make": true, "four-at-once": true,
	}
	for _, m := range transportrace.Mutants() {
		if !notices[m.Name] {
			continue
		}
		delete(notices, m.Name)
		o := scenarios.Run(t, transportrace.Wander(8*time.Hour), m.Apply(transportrace.Ours()), scenarios.Seed(1))
		require.False(t, o.Passed(), "%s", m.Name)
		t.Logf("%s: %s", m.Name, o.Failures[0])
	}
	require.Empty(t, notices, "no mutant has such a name")
}
