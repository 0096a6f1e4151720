package privaterouting

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/clock"
	"github.com/seed-5a7f77c4/deadair/scenarios"
	"github.com/seed-5a7f77c4/deadair/scenarios/privaterouting/wire"
	"github.com/seed-5a7f77c4/deadair/selection/choice"
	"github.com/seed-5a7f77c4/deadair/selection/forward"
)

// streakStories are about a proxy that cannot forward.
func streakStories() []story {
	return []story{
		{
			ID: "PR-2", Title: "chosen proxy cannot forward: forgotten at the second report 30 s after the first (P1 broken / P2 good)",
			Observed: "old agent: not connected after 10 min",
			Labels:   []string{field},
			Play:     playOrdinary,
		},
		{
			ID: "PR-3", Title: "the streak rule alone: failures at 0, 29.9 and 30 s are kept, kept, forgotten",
			Play: playStreakRule,
		},
		{
			ID: "PR-12", Title: "one report, then a success, then one report 40 s later: the proxy is kept",
			Play: playCleared,
		},
	}
}

// ordinaryAfter is when an ordinary message has got through after so many
// re-picks of the broken proxy: 64, 128, 193, 264.25 s and on. Each streak is two
// reports with a step of the ladder between them, and a third step before the
// next pick.
func ordinaryAfter(s Subject, repicks int) time.Duration {
	ladder := s.Policy.Retry.Ladder.Start()
	var at time.Duration
	for range 2 * (repicks + 1) {
		at += reportAfter + ladder.Next()
	}
	return at
}

func playOrdinary(p *scenarios.Play, s Subject) {
	w := opened(p, s, p1Silent())
	took, ok := w.ordinary(3 * unfixed)
	require.True(p, ok, "not delivered after %v", 3*unfixed)
	streak := []choice.Change{choice.StreakBegun, choice.StreakOut}
	changes := w.App.Changes()
	for i, c := range changes {
		require.Equal(p, streak[i%2], c.Change, "change %d", i)
		require.Equal(p, "p1", c.Event.Choice.Proxy)
		if c.Change == choice.StreakOut {
			require.GreaterOrEqual(p, c.At-changes[i-1].At, choice.FailureInterval)
		}
	}
	repicks := w.repicks()
	w.within(took, ordinaryAfter(s, repicks))
	require.Equal(p, 1, w.Journal.Count("contact", "received"), "once")
	require.Equal(p, 1, w.Journal.Count(relayName, "RFWD"), "nothing came through the hole")
	w.untouched("p2", changes[1].At)
	p.Figure("connected", took)
	p.Figure("repicks", repicks)
}

// rounded is a clock that shows milliseconds, so that a story can put failures
// on exact instants whatever the nanoseconds of the way are.
type rounded struct{ clock.Clock }

func (r rounded) Now() time.Time { return r.Clock.Now().Round(time.Millisecond) }

// failing makes a proxy report at once that the relay is silent.
func failing(m wire.Message) Reaction {
	if _, ok := m.(*wire.Forward); ok {
		return Reaction{Answer: &wire.Failure{Origin: forward.Proxy, Code: forward.Timeout}}
	}
	return Reaction{}
}

func playStreakRule(p *scenarios.Play, s Subject) {
	setup := p1First()
	setup.Clock = rounded{clock.System}
	w := NewWorld(p, s, setup)
	w.warm()
	began := p.Elapsed() + time.Second
	for i, after := range []time.Duration{0, 29900 * time.Millisecond, 30 * time.Second} {
		p.At(began + after)
		w.fail()
		e, kept := w.App.Choice()
		if i == 2 {
			require.False(p, kept, "thirty seconds after the first it is forgotten")
			break
		}
		require.True(p, kept, "failure %d after %v", i+1, after)
		require.Equal(p, "p1", e.Proxy)
		require.WithinDuration(p, time.Now().Add(-after), e.Streak.Start, time.Millisecond, "the start never moves")
	}
	require.Equal(p, 1, w.App.Forgotten())
	w.untouched("p2", p.Elapsed())
}

func playCleared(p *scenarios.Play, s Subject) {
	w := NewWorld(p, s, p1First())
	w.fail()
	w.triedFirst("p1")
	e, _ := w.App.Choice()
	require.True(p, e.Streak.Running())
	w.Server("p1").Script(nil)
	_, err := w.App.Do(p.Context(), command, forward.Urgency{})
	require.NoError(p, err)
	e, _ = w.App.Choice()
	require.False(p, e.Streak.Running(), "the success cleared the streak")
	time.Sleep(40 * time.Second)
	w.fail()
	e, kept := w.App.Choice()
	require.True(p, kept, "a new streak has just begun")
	require.Equal(p, "p1", e.Proxy)
	require.Zero(p, w.App.Forgotten())
	w.untouched("p2", p.Elapsed())
}
