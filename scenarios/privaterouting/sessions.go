package privaterouting

import (
	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/scenarios"
	"github.com/seed-5a7f77c4/deadair/scenarios/privaterouting/wire"
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
	}
}

func playNoSessionAgain(p *scenarios.Play, s Subject) {
	w := NewWorld(p, s, Setup{First: "p1"})
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
}

func playNoSession(p *scenarios.Play, s Subject) {
	w := NewWorld(p, s, Setup{First: "p1"})
	do := func() (forward.Result, error) {
		return w.App.Do(p.Context(), &wire.NewQueue{Queue: "q"}, forward.Urgency{})
	}
	_, err := do()
	require.NoError(p, err)
	w.triedFirst("p1")
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
