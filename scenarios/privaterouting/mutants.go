package privaterouting

import (
	"time"

	"github.com/seed-5a7f77c4/deadair/scenarios"
	"github.com/seed-5a7f77c4/deadair/selection/choice"
)

// mutant is the agent with one rule off or wrong.
type mutant = scenarios.Mutant[Subject]

// Mutants are the agent with one rule off or wrong each, and the stories that
// fail with it. The one named old is the agent before the change.
func Mutants() []mutant {
	change := func(f func(p *choice.Policy)) func(Subject) Subject {
		return func(s Subject) Subject {
			f(&s.Policy.Choice)
			return s
		}
	}
	noConnect := change(func(p *choice.Policy) {
		*p = p.Without(choice.ConnectFailed, choice.ConnectErrorShared)
	})
	noStreak := change(func(p *choice.Policy) { *p = p.Without(choice.ForwardFailed) })
	return []mutant{
		{
			Name: "old", Doc: "neither a failed connect nor failed forwards ever forget a proxy",
			Apply: func(s Subject) Subject { return noStreak(noConnect(s)) },
			Kills: []string{"PR-1", "PR-1-silent", "PR-2", "PR-3", "PR-4", "PR-5", "PR-12"},
		},
		{
			Name: "connect failure keeps", Doc: "a failed connect does not forget the proxy",
			Apply: noConnect, Kills: []string{"PR-1", "PR-1-silent"},
		},
		{
			Name: "streak never forgets", Doc: "failed forwards count for nothing",
			Apply: noStreak, Kills: []string{"PR-2", "PR-3", "PR-4", "PR-5", "PR-12"},
		},
		{
			Name: "first failure forgets", Doc: "one failed forward is enough",
			Apply: change(func(p *choice.Policy) { *p = p.With(choice.ForwardFailed, choice.Forget) }),
			Kills: []string{"PR-2", "PR-3", "PR-4", "PR-5", "PR-12"},
		},
		{
			Name: "start moves", Doc: "each failure starts the streak anew",
			Apply: change(func(p *choice.Policy) {
				p.Counter = func(s choice.Streak, now time.Time) (choice.Streak, bool) {
					return choice.Streak{Start: now, Last: now}, s.Running() && now.Sub(s.Start) >= choice.FailureInterval
				}
			}),
			Kills: []string{"PR-3"},
		},
		{
			Name: "later than the interval", Doc: "≥ becomes >: a failure exactly at the interval does not forget",
			Apply: change(func(p *choice.Policy) { p.Counter = choice.After(choice.FailureInterval + 1) }),
			Kills: []string{"PR-3"},
		},
		{
			Name: "success clears nothing", Doc: "a forward that reached the relay leaves the streak running",
			Apply: change(func(p *choice.Policy) { *p = p.Without(choice.RelayReached) }),
			Kills: []string{"PR-12"},
		},
		{
			Name: "dead session stays", Doc: "NO_SESSION leaves the session that the proxy does not know in its place",
			Apply: func(s Subject) Subject { s.Policy.NoSession.Drop = false; return s },
			Kills: []string{"PR-13"},
		},
		{
			Name: "no retry after NO_SESSION", Doc: "the call ends with the error",
			Apply: func(s Subject) Subject { s.Policy.NoSession.Retries = 0; return s },
			Kills: []string{"PR-13"},
		},
		{
			Name: "NO_SESSION counts", Doc: "a session that the proxy does not know begins a streak",
			Apply: change(func(p *choice.Policy) { *p = p.With(choice.SessionUnknown, choice.Count) }),
			Kills: []string{"PR-13"},
		},
	}
}
