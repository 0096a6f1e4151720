package privaterouting

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/scenarios"
	"github.com/seed-5a7f77c4/deadair/selection/choice"
	"github.com/seed-5a7f77c4/deadair/selection/forward"
)

// The variants: answers to questions that the agent's change left open. Each is
// off by default.

// ExcludeFailed leaves the proxy just forgotten out of the next pick.
func (s Subject) ExcludeFailed() Subject { s.Policy.ExcludeFailed = true; return s }

// CountTimeouts makes the app's own time-outs count as reports do.
func (s Subject) CountTimeouts() Subject {
	s.Policy.Choice = s.Policy.Choice.With(choice.ForwardTimedOut, choice.Count)
	return s
}

// ExpireStreaks starts a streak anew when its last failure is older than d.
func (s Subject) ExpireStreaks(d time.Duration) Subject {
	s.Policy.Choice.Counter = choice.Expiring(d, s.Policy.Choice.Counter)
	return s
}

// ProbeAnother races a second proxy from the first failure of a streak on.
func (s Subject) ProbeAnother() Subject { s.Policy.Probe = true; return s }

// variantStories are about the variants, each against the rule that it varies.
func variantStories() []story {
	return []story{
		{ID: "PR-23-variant", Title: "variant: client time-outs count: joined at Retry 3 at the latest when P1 is broken / P2 good", Play: playTimeoutsCount},
		{ID: "PR-29", Title: "one report, hours of silence, one report: forgotten; variant with expiry: kept", Play: playHours},
		{ID: "PR-30", Title: "variant: the failed proxy is excluded: always at 62 s; with one proxy left it is still used", Play: playExclude},
		{ID: "PR-31", Title: "variant: another proxy is probed at the first failure: recovered within a forward's time-out", Play: playProbe},
	}
}

func playTimeoutsCount(p *scenarios.Play, s Subject) {
	// Without an exclusion the re-pick may be P1 again: the first re-pick is held.
	w := NewWorld(p, s.CountTimeouts().ExcludeFailed(), Setup{Broken: []string{"p1"}, First: "p1"})
	w.Contact.Receive(p.Context())
	seen, joined := w.App.Join(p.Context(), contactLink, 10, time.Second)
	require.True(p, joined)
	w.triedFirst("p1")
	require.LessOrEqual(p, len(seen), 3)
	require.Equal(p, 1, w.App.Forgotten())
}

func playHours(p *scenarios.Play, s Subject) {
	w := NewWorld(p, s, Setup{})
	for _, tc := range []struct {
		proxy   string
		subject Subject
		kept    bool
	}{{"p1", s, false}, {"p2", s.ExpireStreaks(time.Hour), true}} {
		w.subject = tc.subject
		w.App = newApp(w)
		w.Only(tc.proxy)
		w.Server(tc.proxy).Script(failing)
		w.fail(1)
		time.Sleep(2 * time.Hour)
		_, err := w.App.Do(p.Context(), command, forward.Urgency{})
		require.ErrorContains(p, err, "PROXY(BROKER TIMEOUT)")
		_, kept := w.App.Choice()
		require.Equal(p, tc.kept, kept, tc.proxy)
	}
}

func playExclude(p *scenarios.Play, s Subject) {
	w := NewWorld(p, s.ExcludeFailed(), Setup{Broken: []string{"p1"}, First: "p1"})
	w.Contact.Receive(p.Context())
	w.App.Listen(p.Context())
	w.Contact.Join(p.Context(), 1)
	got, ok := w.Journal.Wait(unfixed, func(n Note) bool { return n.Actor == "contact" && n.What == "received" })
	require.True(p, ok)
	w.triedFirst("p1")
	began, _ := w.Journal.First("app", "joined")
	require.InDelta(p, 62, (got.At - began.At).Seconds(), handshakes.Seconds())
	require.Equal(p, 1, w.App.Forgotten(), "p1 is not picked again")

	w.Only("p1") // the only one left is used, failed or not
	w.App.client.Reconnect()
	res, err := w.App.Do(p.Context(), command, forward.Urgency{})
	require.Error(p, err)
	require.Equal(p, "p1", res.Proxy)
}

func playProbe(p *scenarios.Play, s Subject) {
	w := NewWorld(p, s.ProbeAnother(), Setup{Proxies: names(4), Broken: []string{"p1"}, First: "p1"})
	w.Contact.Receive(p.Context())
	began := p.Elapsed()
	require.NoError(p, w.App.Deliver(p.Context(), contactQueue, 1, false))
	w.triedFirst("p1")
	changes := w.App.Changes()
	require.Equal(p, choice.StreakBegun, changes[0].Change)
	require.LessOrEqual(p, p.Elapsed()-changes[0].At, forward.DefaultTimes.Background.Forward())
	require.Less(p, p.Elapsed()-began, 62*time.Second, "before the streak would have run out")
	others := 0
	for _, name := range names(4)[1:] {
		if len(w.dialsTo(name)) > 0 {
			others++
		}
	}
	require.Equal(p, 1, others, "one more proxy learned of the destination, and no third")
	e, there := w.App.Choice()
	require.True(p, there)
	require.NotEqual(p, "p1", e.Proxy, "the winner is kept")
}
