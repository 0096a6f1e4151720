package transportrace_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/scenarios"
	"github.com/seed-5a7f77c4/deadair/scenarios/transportrace"
)

func TestStories(t *testing.T) {
	for _, story := range transportrace.Stories() {
		t.Run(story.ID, func(t *testing.T) {
			o := scenarios.Run(t, story, transportrace.Ours(), scenarios.Seed(1))
			o.Require(t)
			t.Logf("%v virtual, %v real, %v", o.Virtual, o.Real, o.Figures)
		})
	}
}

func TestMutants(t *testing.T) {
	matrix, err := scenarios.Matrix(t, transportrace.Stories(), transportrace.Ours(), transportrace.Mutants(), 1, nil)
	require.NoError(t, err)
	if err := matrix.Check(); err != nil {
		matrix.WriteTo(os.Stderr)
		t.Fatal(err)
	}
}

// The client before the change needs more than ten seconds for TR-1, and two dials: as in the field.
func TestOldColdConnect(t *testing.T) {
	mutants := transportrace.Mutants()
	o := scenarios.Run(t, transportrace.Stories()[0], mutants[0].Apply(transportrace.Ours()), scenarios.Seed(1))
	require.False(t, o.Passed())
	require.Greater(t, o.Figures["connected"], 10.0)
	sound := scenarios.Run(t, transportrace.Stories()[0], transportrace.Ours(), scenarios.Seed(1))
	sound.Require(t)
	require.Less(t, sound.Figures["connected"], 1.5)
	t.Logf("old %v s, now %v s", o.Figures["connected"], sound.Figures["connected"])
}
