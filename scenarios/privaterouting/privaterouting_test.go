package privaterouting_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/scenarios"
	"github.com/seed-5a7f77c4/deadair/scenarios/privaterouting"
)

func TestStories(t *testing.T) {
	stories := privaterouting.Stories()
	require.NoError(t, scenarios.ValidateSet(stories))
	for _, sc := range stories {
		t.Run(sc.ID, func(t *testing.T) {
			for seed := range uint64(10) {
				o := scenarios.Run(t, sc, privaterouting.Ours(), scenarios.Seed(seed))
				o.Require(t)
				if seed < 3 {
					t.Logf("%v virtual, %v real, %d events, %v", o.Virtual, o.Real, o.Trace.Len(), o.Figures)
				}
			}
		})
	}
}

// Every story proves a rule: some mutant names it.
func TestEveryStoryKills(t *testing.T) {
	named := map[string]bool{}
	for _, m := range privaterouting.Mutants() {
		for _, id := range m.Kills {
			named[id] = true
		}
	}
	for _, sc := range privaterouting.Stories() {
		require.True(t, named[sc.ID], "no mutant names %s", sc.ID)
	}
}
