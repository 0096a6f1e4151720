package privaterouting

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/clock"
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

// playTimeoutsCount has one streak of both kinds: the app's own time-out at n = 0
// begins it, and at n = 1 the proxy's report, which late timers let win, ends it.
func playTimeoutsCount(p *scenarios.Play, s Subject) {
	setup := p1Silent()
	setup.Draws = []string{"p1", "", "p2"} // the first re-pick is P2
	setup.Clock = clock.NewSkewed(clock.System, clock.Skew{Drift: -timerError})
	w := opened(p, s.CountTimeouts(), setup)
	seen, joined := w.join(10)
	require.True(p, joined)
	require.Equal(p, []string{connectionTimeout, routingTimeout}, seen)
	require.Equal(p, 1, w.App.Forgotten())
	changes := w.App.Changes()
	require.Len(p, changes, 2)
	require.Equal(p, choice.ForwardTimedOut, changes[0].Event.Kind)
	require.Equal(p, choice.StreakBegun, changes[0].Change)
	require.Equal(p, choice.ForwardFailed, changes[1].Event.Kind)
	require.Equal(p, choice.StreakOut, changes[1].Change)
	w.untouched("p2", changes[1].At)
}

func playHours(p *scenarios.Play, s Subject) {
	w := NewWorld(p, s, Setup{})
	for _, tc := range []struct {
		proxy   string
		subject Subject
		kept    bool
	}{{"p1", s, false}, {"p2", s.ExpireStreaks(time.Hour), true}} {
		w.subject = tc.subject
		w.App = newApp(w, nil, nil)
		w.Only(tc.proxy)
		w.Server(tc.proxy).Script(failing)
		for i := range 2 {
			time.Sleep(time.Duration(i) * 2 * time.Hour)
			res, err := w.App.Do(p.Context(), command, forward.Urgency{})
			require.ErrorContains(p, err, "PROXY(BROKER TIMEOUT)")
			require.Equal(p, tc.proxy, res.Proxy)
		}
		_, kept := w.App.Choice()
		require.Equal(p, tc.kept, kept, tc.proxy)
	}
}

func playExclude(p *scenarios.Play, s Subject) {
	setup := p1Silent()
	setup.Draws = []string{"p1", "", "p1"} // without the exclusion the re-pick is P1
	w := opened(p, s.ExcludeFailed(), setup)
	took, ok := w.reply(unfixed)
	require.True(p, ok)
	w.within(took, replyAfter(0))
	require.Zero(p, w.repicks(), "p1 is not picked again")
	w.untouched("p2", w.App.Changes()[1].At)

	w.Only("p1") // the only one left is used, failed or not
	w.App.client.Reconnect()
	res, err := w.App.Do(p.Context(), command, forward.Urgency{})
	require.Error(p, err)
	require.Equal(p, "p1", res.Proxy)
}

func playProbe(p *scenarios.Play, s Subject) {
	setup := p1Silent()
	setup.Proxies = names(4)
	w := opened(p, s.ProbeAnother(), setup)
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
