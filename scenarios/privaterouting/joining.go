package privaterouting

import (
	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/scenarios"
	"github.com/seed-5a7f77c4/deadair/selection/choice"
)

// joinStories are about people who want to connect.
func joinStories() []story {
	return []story{
		{
			ID:       "PR-4",
			Title:    `"connecting…": a contact joins the app's 1-time link, the reply goes in the background, P1 broken / P2 good`,
			Observed: "fixed: 64, 64, 129, 192 s (desktop), 63, 63, 63, 67, 128 s (Android); old: not connected after 10 min (2 of 2)",
			Labels:   []string{field},
			Play:     func(p *scenarios.Play, s Subject) { PlayConnecting(p, s, false) },
		},
		{
			ID:       "PR-5",
			Title:    "the app joins a link and the user taps Retry after each error, P1 broken / P2 good",
			Observed: "fixed: joined after 3 to 10 Retries; old: not after 6 Retries (6 of 6)",
			Labels:   []string{field},
			Play:     playJoin,
		},
	}
}

// PlayConnecting is PR-4's play; plain leaves TLS out.
func PlayConnecting(p *scenarios.Play, s Subject, plain bool) {
	setup := p1Silent()
	setup.Plain = plain
	w := opened(p, s, setup)
	took, ok := w.reply(3 * unfixed)
	require.True(p, ok, "not connected after %v", 3*unfixed)
	repicks := w.repicks()
	w.within(took, replyAfter(repicks))
	changes := w.App.Changes()
	require.Len(p, changes, 2*(repicks+1))
	for i, c := range changes {
		require.Equal(p, []choice.Change{choice.StreakBegun, choice.StreakOut}[i%2], c.Change, "change %d", i)
		require.Equal(p, "p1", c.Event.Choice.Proxy)
	}
	w.untouched("p2", changes[1].At)
	require.Equal(p, 1, w.Journal.Count(relayName, "RFWD"), "nothing came through the hole")
	require.Equal(p, 1, w.Journal.Count("contact", "received"), "once")
	require.Equal(p, 1, w.Journal.Count("p1", "PRXY"), "p1 answers from memory, and its session lives on")
	require.Equal(p, 1, w.Journal.Count("p1", "dial"), "nothing ever ended p1's connection")
	p.Figure("connected", took)
	p.Figure("repicks", repicks)
}

func playJoin(p *scenarios.Play, s Subject) {
	const patience = 40
	w := opened(p, s, p1Silent())
	seen, joined := w.join(patience)
	require.True(p, joined, "not joined after %d Retries", patience)

	// Each attempt shows an error; the first that is not the app's own time-out
	// begins the streak, the next one ends it.
	repicks := w.repicks()
	require.Contains(p, joinedAt(repicks), len(seen), "joined at Retry %d after %d re-picks", len(seen), repicks)
	require.Equal(p, connectionTimeout, seen[0], "20 s are not enough to hear the proxy's report at 30 s")
	require.Contains(p, []string{connectionTimeout, routingTimeout}, seen[1], "30 s are a race")
	for _, text := range seen[2:] {
		require.Equal(p, routingTimeout, text)
	}
	changes := w.App.Changes()
	require.Len(p, changes, 2*(repicks+1))
	w.untouched("p2", changes[1].At)
	require.Equal(p, 1, w.Journal.Count(relayName, "RFWD"), "nothing came through the hole")
	p.Figure("retries", len(seen))
	p.Figure("repicks", repicks)
	p.Figure("joined", p.Elapsed())
}
