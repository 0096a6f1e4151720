package privaterouting_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/scenarios"
	"github.com/seed-5a7f77c4/deadair/scenarios/privaterouting"
)

// What the field observed is what the model gives, for the agent as it is and as
// it was.
func TestObservedIsInTheSupport(t *testing.T) {
	const seeds = 200
	sweep := func(story func(string, bool) scenarios.Scenario[privaterouting.Subject], l privaterouting.Line, figure string) (values []float64, never int) {
		samples, err := scenarios.Sweep(t, story(l.Name, true), l.Subject, scenarios.SweepOptions{Count: seeds})
		require.NoError(t, err)
		for _, s := range samples {
			require.Empty(t, s.Failures, "seed %d", s.Seed)
			switch v := s.Figures[figure].(type) {
			case float64:
				values = append(values, v)
			case int:
				values = append(values, float64(v))
			default:
				never++
			}
		}
		return values, never
	}
	lines := map[bool]privaterouting.Line{}
	for _, l := range privaterouting.Lines() {
		switch l.Name {
		case "old":
			lines[true] = l
		case "fixed":
			lines[false] = l
		}
	}
	replies, joins := privaterouting.Observed()
	for _, tc := range []struct {
		name   string
		story  func(string, bool) scenarios.Scenario[privaterouting.Subject]
		figure string
		room   float64 // what a real network adds: name, TCP, TLS and the hello
		trials []privaterouting.Trial
	}{
		{"reply", privaterouting.Reply, privaterouting.RecoveredAfter, 5, replies},
		{"join", privaterouting.Join, privaterouting.RecoveredRetry, 0, joins},
	} {
		values, late := sweep(tc.story, lines[false], tc.figure)
		none, never := sweep(tc.story, lines[true], tc.figure)
		require.Empty(t, none, "%s: the agent as it was never gets away", tc.name)
		require.Equal(t, seeds, never)
		for _, trial := range tc.trials {
			if trial.Old {
				require.True(t, trial.Never, "%s: in the field too", tc.name)
				continue
			}
			if trial.Never {
				later := func(v float64) bool { return v > trial.Value }
				require.NotZero(t, late+int(seeds*scenarios.Share(values, later)), "%s: not by %v on %s", tc.name, trial.Value, trial.Where)
				continue
			}
			near := func(v float64) bool { return v <= trial.Value && trial.Value <= v+tc.room }
			require.NotZero(t, scenarios.Share(values, near), "%s: %v on %s", tc.name, trial.Value, trial.Where)
		}
	}
}

// Each variant buys what it promises.
func TestVariantsBuyTime(t *testing.T) {
	const seeds = 60
	worst := map[string]float64{}
	for _, l := range privaterouting.Lines() {
		samples, err := scenarios.Sweep(t, privaterouting.Reply(l.Name, true), l.Subject, scenarios.SweepOptions{Count: seeds})
		require.NoError(t, err)
		for _, s := range samples {
			v, _ := s.Figures[privaterouting.RecoveredAfter].(float64)
			worst[l.Name] = max(worst[l.Name], v)
		}
	}
	require.Zero(t, worst["old"])
	require.Greater(t, worst["fixed"], 126.0)
	require.InDelta(t, 64.5, worst["exclude failed"], 2.5, "62 s and handshakes")
	require.Less(t, worst["probe another"], 62.0, "the first failure is at 30 s")
	require.Equal(t, worst["fixed"], worst["count client time-outs"], "the app hears the report before its own time-out")
	require.Equal(t, worst["fixed"], worst["streak expiry"], "a streak is never an hour old")
}

// When the app's own time-outs count and the first re-pick is P2, the join is over
// by Retry 3 at the latest, whoever wins at n = 1. Leaving the failed proxy out
// makes every re-pick P2.
func TestCountedTimeoutsJoinByRetryThree(t *testing.T) {
	const seeds = 60
	retries := map[int]int{}
	samples, err := scenarios.Sweep(t, privaterouting.Join("count and exclude", true), privaterouting.Ours().CountTimeouts().ExcludeFailed(),
		scenarios.SweepOptions{Count: seeds})
	require.NoError(t, err)
	for _, s := range samples {
		n, joined := s.Figures[privaterouting.RecoveredRetry].(int)
		require.True(t, joined, "seed %d", s.Seed)
		require.LessOrEqual(t, n, 3, "seed %d", s.Seed)
		retries[n]++
	}
	t.Logf("joined at Retry: %v", retries)
}
