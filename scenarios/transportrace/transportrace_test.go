package transportrace_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/scenarios"
	"github.com/seed-5a7f77c4/deadair/scenarios/transportrace"
)

func TestStories(t *testing.T) {
	stories := transportrace.Stories()
	require.NoError(t, scenarios.ValidateSet(stories))
	for _, story := range append(stories, transportrace.Night()) {
		t.Run(story.ID, func(t *testing.T) {
			for seed := range uint64(3) {
				o := scenarios.Run(t, story, transportrace.Ours(), scenarios.Seed(seed+1))
				o.Require(t)
				t.Logf("%v virtual, %v real, %d events, %v", o.Virtual, o.Real, o.Trace.Len(), o.Figures)
			}
		})
	}
}

// Every story is there for a rule: it kills a mutant besides the old client. That it does is for the suite to show.
func TestEveryStoryKillsAMutant(t *testing.T) {
	for _, s := range transportrace.Stories() {
		assert.True(t, slices.ContainsFunc(transportrace.Mutants(), func(m scenarios.Mutant[transportrace.Subject]) bool {
			return m.Name != "old" && slices.Contains(m.Kills, s.ID)
		}), s.ID)
	}
}

func storyNamed(t testing.TB, id string) scenarios.Scenario[transportrace.Subject] {
	all := transportrace.Stories()
	i := slices.IndexFunc(all, func(s scenarios.Scenario[transportrace.Subject]) bool { return s.ID == id })
	require.GreaterOrEqual(t, i, 0, "there is no %s", id)
	return all[i]
}

// What the field observed of the client before the change is what the old one does here, and what it observed after the
// change is what ours does.
func TestFieldFigures(t *testing.T) {
	before := transportrace.Mutants()[0]
	require.Equal(t, "old", before.Name)
	for _, f := range []struct {
		id, figure           string
		oldLeast, oldMost    any
		soundLeast, soundMos any
	}{
		{"TR-1", "connected", 10.0, 20.0, 0.3, 1.5},
		{"TR-1", "relay dials", 2, 2, 1, 1},
		{"TR-7", "dials", 16, 24, 0, 0},
		{"TR-7", "replaced", 8, 12, 0, 0},
		{"TR-10", "recovered", 5.0, 7.0, 0.3, 1.3},
	} {
		old := scenarios.Run(t, storyNamed(t, f.id), before.Apply(transportrace.Ours()), scenarios.Seed(1))
		require.False(t, old.Passed())
		assert.GreaterOrEqual(t, old.Figures[f.figure], f.oldLeast, "%s: %s of the old client", f.id, f.figure)
		assert.LessOrEqual(t, old.Figures[f.figure], f.oldMost, "%s: %s of the old client", f.id, f.figure)
		sound := scenarios.Run(t, storyNamed(t, f.id), transportrace.Ours(), scenarios.Seed(1))
		sound.Require(t)
		assert.GreaterOrEqual(t, sound.Figures[f.figure], f.soundLeast, "%s: %s", f.id, f.figure)
		assert.LessOrEqual(t, sound.Figures[f.figure], f.soundMos, "%s: %s", f.id, f.figure)
		t.Logf("%s: %s %v, before the change %v", f.id, f.figure, sound.Figures[f.figure], old.Figures[f.figure])
	}
}

// A night on cellular: no dial at all. What it costs is for BenchmarkNight to say.
func TestNight(t *testing.T) {
	o := scenarios.Run(t, transportrace.Night(), transportrace.Ours(), scenarios.Seed(1))
	o.Require(t)
	require.Equal(t, 0, o.Figures["dials"])
	require.Greater(t, o.Virtual, 8*time.Hour)
}

// Eight virtual hours: the bar is 50 ms.
func BenchmarkNight(b *testing.B) {
	t := new(testing.T)
	for range b.N {
		if o := scenarios.Run(t, transportrace.Night(), transportrace.Ours(), scenarios.Seed(1)); !o.Passed() {
			b.Fatal(o.Err())
		}
	}
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/night")
}

// A cold connect, TLS and all.
func BenchmarkColdConnect(b *testing.B) {
	t := new(testing.T)
	sc := storyNamed(b, "TR-1")
	for range b.N {
		if o := scenarios.Run(t, sc, transportrace.Ours(), scenarios.Seed(1)); !o.Passed() {
			b.Fatal(o.Err())
		}
	}
}
