package privaterouting

import (
	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/scenarios"
	"github.com/seed-5a7f77c4/deadair/scenarios/privaterouting/wire"
	"github.com/seed-5a7f77c4/deadair/selection/choice"
	"github.com/seed-5a7f77c4/deadair/selection/forward"
)

// sessionStories are about the proxy's session with the relay.
func sessionStories() []story {
	return []story{
		{
			ID: "PR-13", Title: "the proxy's own connection to the relay drops: NO_SESSION, the same proxy gets a new session",
			Play: playNoSession,
		},
		{
			ID: "PR-13-again", Title: "NO_SESSION and NO_SESSION again: the second one is an error, and the failure counts once",
			Play: playNoSessionAgain,
		},
		{
			ID: "PR-13-late", Title: "NO_SESSION of two requests, one of them late: it does not take out the other's new session",
			Play: playNoSessionLate,
		},
	}
}

func playNoSessionAgain(p *scenarios.Play, s Subject) {
	w := NewWorld(p, s, p1First())
	w.warm()
	w.Server("p1").Script(func(m wire.Message) Reaction {
		if _, is := m.(*wire.Forward); is {
			return Reaction{Answer: proxyFailure(forward.NoSession)}
		}
		return Reaction{}
	})
	before, _ := w.App.Choice()
	_, err := w.App.Do(p.Context(), command, forward.Urgency{})
	require.ErrorContains(p, err, "PROXY NO_SESSION")
	require.Equal(p, 3, w.Journal.Count("p1", "PFWD"), "one retry, no loop")
	after, there := w.App.Choice()
	require.True(p, there)
	require.Equal(p, before, after)
	require.Empty(p, w.App.Changes())

	// NO_SESSION and then a report: of the two failures of the call the last one
	// counts, once.
	first := true
	w.Server("p1").Script(func(m wire.Message) Reaction {
		if _, is := m.(*wire.Forward); is && first {
			first = false
			return Reaction{Answer: proxyFailure(forward.NoSession)}
		}
		return failing(m)
	})
	_, err = w.App.Do(p.Context(), command, forward.Urgency{})
	require.ErrorContains(p, err, "PROXY(BROKER TIMEOUT)")
	changes := w.App.Changes()
	require.Len(p, changes, 1)
	require.Equal(p, choice.ForwardFailed, changes[0].Event.Kind)
	require.Equal(p, choice.StreakBegun, changes[0].Change)
	w.untouched("p2", p.Elapsed())
}

func playNoSessionLate(p *scenarios.Play, s Subject) {
	w := NewWorld(p, s, p1First())
	w.warm()
	now, later := make(chan struct{}), make(chan struct{})
	early := w.gated(now, proxyFailure(forward.NoSession))
	late := w.gated(later, proxyFailure(forward.NoSession))
	close(now)
	require.NoError(p, (<-early).err)
	require.Equal(p, 2, w.Journal.Count("p1", "PRXY"), "a new session")
	close(later)
	require.NoError(p, (<-late).err)
	require.Equal(p, 2, w.Journal.Count("p1", "PRXY"), "which serves the late one too")
	require.Equal(p, 5, w.Journal.Count("p1", "PFWD"), "each of them twice on the wire")
	require.Empty(p, w.App.Changes())
	w.untouched("p2", p.Elapsed())
}

func playNoSession(p *scenarios.Play, s Subject) {
	w := NewWorld(p, s, p1First())
	do := func() (forward.Result, error) { return w.App.Do(p.Context(), command, forward.Urgency{}) }
	w.warm()
	before, _ := w.App.Choice()
	w.Server("p1").Drop(relayName)
	_, ok := w.Journal.Wait(handshakes, func(n Note) bool { return n.Actor == "p1" && n.What == "down" })
	require.True(p, ok)

	res, err := do()
	require.NoError(p, err, "one retry within the same call")
	require.Equal(p, "p1", res.Proxy)
	require.Equal(p, 3, w.Journal.Count("p1", "PFWD"), "two requests on the wire")
	require.Equal(p, 2, w.Journal.Count("p1", "PRXY"), "with a new session between them")
	after, ok := w.App.Choice()
	require.True(p, ok)
	require.Equal(p, before, after, "the choice is kept, and no streak begins")
	require.Empty(p, w.App.Changes())

	_, err = do()
	require.NoError(p, err)
	require.Equal(p, 2, w.Journal.Count("p1", "PRXY"), "the dead session is gone, the new one is shared")
	require.Equal(p, 4, w.Journal.Count("p1", "PFWD"))
	w.untouched("p2", p.Elapsed())
}
