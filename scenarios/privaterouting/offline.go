package privaterouting

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/scenarios"
	"github.com/seed-5a7f77c4/deadair/selection/choice"
	"github.com/seed-5a7f77c4/deadair/selection/forward"
)

// offlineStories are about a proxy that cannot be reached.
func offlineStories() []story {
	return []story{
		{
			ID: "PR-1", Title: "chosen proxy offline: it refuses, another is chosen at the next try",
			Play: func(p *scenarios.Play, s Subject) { playOffline(p, s, false) },
		},
		{
			ID: "PR-1-silent", Title: "chosen proxy offline: it is silent, another is chosen at the next try",
			Play: func(p *scenarios.Play, s Subject) { playOffline(p, s, true) },
		},
	}
}

func playOffline(p *scenarios.Play, s Subject, silent bool) {
	w := opened(p, s, p1First())
	if silent {
		w.Host("p1").Crash()
	} else {
		w.Stop("p1")
	}
	took, ok := w.ordinary(unfixed)
	require.True(p, ok, "not connected after %v", unfixed)
	require.Zero(p, w.Journal.Count("p1", "PFWD"), "nothing got to the proxy that is offline")
	changes := w.App.Changes()
	failures := w.Journal.Count("app", "undialled")
	require.NotEmpty(p, changes)
	kinds := []choice.Kind{choice.ConnectFailed, choice.ConnectErrorShared}
	for _, c := range changes {
		require.Equal(p, choice.Dropped, c.Change, "every failure forgets")
		require.Equal(p, "p1", c.Event.Choice.Proxy)
		require.Contains(p, kinds, c.Event.Kind)
	}
	// Each failure costs its time and a step of the ladder; a stored error costs
	// no time. So the way through p2 is found right after the last failure.
	limit := time.Duration(0)
	if silent {
		limit = time.Duration(failures) * forward.DefaultTimes.Background.Connect
	}
	ladder := s.Policy.Retry.Ladder.Start()
	for range changes {
		limit += ladder.Next()
	}
	w.within(took, limit)
	w.untouched("p2", changes[0].At)
	now, there := w.App.Choice()
	require.True(p, there)
	require.Equal(p, "p2", now.Proxy)
	require.Equal(p, 1, w.Journal.Count("contact", "received"), "once")
	p.Figure("connected", took)
	p.Figure("failures", len(changes))
}
