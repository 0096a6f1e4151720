package privaterouting

import (
	"time"

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
			Play:     func(p *scenarios.Play, s Subject) { PlayConnecting(p, s, Setup{}) },
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

// PlayConnecting is PR-4's play with a world to choose: Plain, for instance.
func PlayConnecting(p *scenarios.Play, s Subject, setup Setup) {
	setup.Broken, setup.First = []string{"p1"}, "p1"
	w := NewWorld(p, s, setup)
	w.Contact.Receive(p.Context())
	w.App.Listen(p.Context())
	w.Contact.Join(p.Context(), 1)
	_, ok := w.Journal.Wait(time.Minute, func(n Note) bool { return n.Actor == "app" && n.What == "joined" })
	require.True(p, ok, "the app never heard of the contact")
	began, _ := w.Journal.First("app", "joined")
	got, ok := w.Journal.Wait(3*unfixed, func(n Note) bool { return n.Actor == "contact" && n.What == "received" })
	require.True(p, ok, "not connected after %v", 3*unfixed)
	took := got.At - began.At

	w.triedFirst("p1")
	repicks := w.App.Forgotten() - 1
	require.GreaterOrEqual(p, repicks, 0, "p1 was never left")
	want := 62*time.Second + time.Duration(repicks)*64*time.Second
	require.GreaterOrEqual(p, took, want)
	require.LessOrEqual(p, took, want+handshakes)
	changes := w.App.Changes()
	require.Equal(p, choice.StreakBegun, changes[0].Change)
	require.Equal(p, choice.StreakOut, changes[1].Change)
	w.untouched("p2", changes[1].At)
	require.Equal(p, 1, w.Journal.Count(relayName, "RFWD"), "nothing came through the hole")
	require.Equal(p, 1, w.Journal.Count("p1", "PRXY"), "p1 answers from memory, and its session lives on")
	require.Equal(p, 1, w.Journal.Count("p1", "dial"), "nothing ever ended p1's connection")
	p.Figure("connected", took)
	p.Figure("repicks", repicks)
}

func playJoin(p *scenarios.Play, s Subject) {
	const cap = 40
	w := NewWorld(p, s, Setup{Broken: []string{"p1"}, First: "p1"})
	w.Contact.Receive(p.Context())
	seen, joined := w.App.Join(p.Context(), contactLink, cap, time.Second)
	require.True(p, joined, "not joined after %d Retries", cap)
	w.triedFirst("p1")

	// Each attempt shows an error; the first that is not the app's own time-out
	// begins the streak, the next one ends it.
	repicks := w.App.Forgotten() - 1
	require.GreaterOrEqual(p, repicks, 0)
	require.Contains(p, []int{3 + 2*repicks, 4 + 2*repicks}, len(seen), "joined at Retry %d after %d re-picks", len(seen), repicks)
	require.Equal(p, "Connection timeout", seen[0], "20 s are not enough to hear the proxy's report at 30 s")
	for _, text := range seen[2:] {
		require.Equal(p, "Private routing timeout", text)
	}
	changes := w.App.Changes()
	w.untouched("p2", changes[1].At)
	p.Figure("retries", len(seen))
	p.Figure("repicks", repicks)
	p.Figure("joined", p.Elapsed())
}
