package privaterouting

import (
	"math"
	"slices"
	"time"

	"github.com/seed-5a7f77c4/deadair/scenarios"
	"github.com/seed-5a7f77c4/deadair/selection/choice"
	"github.com/seed-5a7f77c4/deadair/selection/forward"
	"github.com/seed-5a7f77c4/deadair/selection/pick"
	"github.com/seed-5a7f77c4/deadair/selection/share"
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
	noStreak := change(func(p *choice.Policy) { p.Counter = choice.After(math.MaxInt64) })
	without := func(name, doc string, k choice.Kind, kills ...string) mutant {
		return mutant{Name: name, Doc: doc, Apply: change(func(p *choice.Policy) { *p = p.Without(k) }), Kills: kills}
	}
	return []mutant{
		{
			Name: "old", Doc: "neither a failed connect nor failed forwards ever forget a proxy",
			Apply: func(s Subject) Subject { return noStreak(noConnect(s)) },
			Kills: []string{"PR-1", "PR-1-silent", "PR-2", "PR-3", "PR-4", "PR-5", "PR-6", "PR-7", "PR-8", "PR-9", "PR-23-variant", "PR-28", "PR-29", "PR-30", "PR-32", "PR-25"},
		},
		without("shared connect error keeps", "a connect error that another met, or a stored one, forgets nothing", choice.ConnectErrorShared, "PR-25"),
		{
			Name: "connect failure keeps", Doc: "a failed connect does not forget the proxy",
			Apply: noConnect, Kills: []string{"PR-1", "PR-1-silent", "PR-25"},
		},
		{
			Name: "streak never forgets", Doc: "failed forwards are counted, and never suffice",
			Apply: noStreak, Kills: []string{"PR-2", "PR-3", "PR-4", "PR-5", "PR-6", "PR-7", "PR-8", "PR-9", "PR-23-variant", "PR-28", "PR-29", "PR-30", "PR-32"},
		},
		{
			Name: "first failure forgets", Doc: "one failed forward is enough",
			Apply: change(func(p *choice.Policy) { *p = p.With(choice.ForwardFailed, choice.Forget) }),
			Kills: []string{"PR-2", "PR-3", "PR-4", "PR-5", "PR-6", "PR-7", "PR-8", "PR-9", "PR-11", "PR-12", "PR-13-again", "PR-16", "PR-21", "PR-23-variant", "PR-28", "PR-29", "PR-30", "PR-31", "PR-32"},
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
		without("success does not clear", "a forward that worked leaves the streak running", choice.RelayReached, "PR-12"),
		without("relay error does not clear", "a forward that the relay refused leaves the streak running", choice.RelayRefused, "PR-21"),
		without("PROTOCOL does not clear", "a frame that the relay refused leaves the streak running", choice.FrameRefused, "PR-21"),
		without("unusable answer does not clear", "an answer that cannot be read leaves the streak running", choice.AnswerUnusable, "PR-21"),
		{
			Name: "dead session stays", Doc: "NO_SESSION leaves the session that the proxy does not know in its place",
			Apply: func(s Subject) Subject { s.Policy.NoSession.Drop = nil; return s },
			Kills: []string{"PR-11", "PR-13", "PR-13-late", "PR-14"},
		},
		{
			Name: "successor goes too", Doc: "a late NO_SESSION takes out whatever session there is",
			Apply: func(s Subject) Subject {
				s.Policy.NoSession.Drop = func(sessions *share.Group[string, forward.Session], relay string, _ share.Attempt) {
					if now, ok := sessions.Peek(relay); ok {
						sessions.Remove(relay, now.Attempt)
					}
				}
				return s
			},
			Kills: []string{"PR-13-late"},
		},
		{
			Name: "no retry after NO_SESSION", Doc: "the call ends with the error",
			Apply: func(s Subject) Subject { s.Policy.NoSession.Retries = 0; return s },
			Kills: []string{"PR-11", "PR-13", "PR-13-again", "PR-13-late", "PR-14"},
		},
		{
			Name: "NO_SESSION counts", Doc: "a session that the proxy does not know begins a streak",
			Apply: change(func(p *choice.Policy) { *p = p.With(choice.SessionUnknown, choice.Count) }),
			Kills: []string{"PR-13", "PR-13-again", "PR-13-late"},
		},
		{
			Name: "NO_SESSION loops", Doc: "the call asks for new sessions without end",
			Apply: func(s Subject) Subject { s.Policy.NoSession.Retries = 1000; return s },
			Kills: []string{"PR-13-again"},
		},
		{
			Name: "NO_SESSION records", Doc: "the proxy of the retry is put into the table",
			Apply: func(s Subject) Subject { s.Policy.NoSession.Record = true; return s },
			Kills: []string{"PR-14"},
		},
		{
			Name: "failed PRXY keeps", Doc: "a proxy that gives no session is kept",
			Apply: change(func(p *choice.Policy) { *p = p.Without(choice.SessionFailed) }),
			Kills: []string{"PR-18", "PR-35"},
		},
		{
			Name: "end of connection keeps", Doc: "the end of the proxy's connection forgets nothing",
			Apply: change(func(p *choice.Policy) { *p = p.Without(choice.ConnectionEnded) }),
			Kills: []string{"PR-17", "PR-24", "PR-33"},
		},
		{
			Name: "no guard on failure", Doc: "a late failure counts against whatever choice there is",
			Apply: change(func(p *choice.Policy) { *p = p.Guarded(choice.Anyone, choice.ForwardFailed) }),
			Kills: []string{"PR-15", "PR-15-same"},
		},
		{
			Name: "guard by name", Doc: "a late failure counts against a new choice of the same proxy",
			Apply: change(func(p *choice.Policy) { *p = p.Guarded(choice.SameProxy, choice.ForwardFailed) }),
			Kills: []string{"PR-15-same"},
		},
		{
			Name: "no guard on success", Doc: "a late success clears the new choice's streak",
			Apply: change(func(p *choice.Policy) { *p = p.Guarded(choice.Anyone, choice.RelayReached) }),
			Kills: []string{"PR-16"},
		},
		{
			Name: "no guard on the end of a connection", Doc: "the old proxy's end forgets the new choice",
			Apply: change(func(p *choice.Policy) { *p = p.Guarded(choice.Anyone, choice.ConnectionEnded) }),
			Kills: []string{"PR-17"},
		},
		{
			Name: "no guard on PRXY", Doc: "a late failure of PRXY forgets the new choice",
			Apply: change(func(p *choice.Policy) { *p = p.Guarded(choice.Anyone, choice.SessionFailed) }),
			Kills: []string{"PR-18"},
		},
		{
			Name: "waiter's time-out forgets", Doc: "whoever waits in vain for another's connection forgets the proxy",
			Apply: change(func(p *choice.Policy) { *p = p.With(choice.WaitTimedOut, choice.Forget) }),
			Kills: []string{"PR-19"},
		},
		{
			Name: "client time-out counts", Doc: "the app's own time-out counts as a report does",
			Apply: change(func(p *choice.Policy) { *p = p.With(choice.ForwardTimedOut, choice.Count) }),
			Kills: []string{"PR-5", "PR-6", "PR-8", "PR-23", "PR-24"},
		},
		{
			Name: "host error forgets", Doc: "a proxy that cannot reach such a relay at all is forgotten",
			Apply: change(func(p *choice.Policy) { *p = p.With(choice.HostError, choice.Forget) }),
			Kills: []string{"PR-22"},
		},
		{
			Name: "host error counts", Doc: "a proxy that cannot reach such a relay at all begins a streak",
			Apply: change(func(p *choice.Policy) { *p = p.With(choice.HostError, choice.Count) }),
			Kills: []string{"PR-22"},
		},
		{
			Name: "host error of PRXY expires", Doc: "a proxy is asked again and again for a relay that it cannot reach",
			Apply: func(s Subject) Subject { s.Policy.Sessions = share.For(forward.PersistErrorInterval); return s },
			Kills: []string{"PR-22"},
		},
		{
			Name: "fallback after time-outs", Doc: "a time-out is reason enough to go directly",
			Apply: func(s Subject) Subject {
				s.Policy.FallsBack = func(e *forward.Error) bool { return e.HostError() || e.Code == forward.Timeout }
				return s
			},
			Kills: []string{"PR-22"},
		},
		{
			Name: "drop rule without the silence", Doc: "three time-outs end a connection at the next look",
			Apply: func(s Subject) Subject { s.Policy.Idle.Silence = 0; return s },
			Kills: []string{"PR-24"},
		},
		{
			Name: "drop rule without the count", Doc: "silence alone ends a connection",
			Apply: func(s Subject) Subject { s.Policy.Idle.Commands = 0; return s },
			Kills: []string{"PR-24"},
		},
		{
			Name: "stored error never expires", Doc: "a failed connect is never tried anew",
			Apply: func(s Subject) Subject { s.Policy.Connects = share.For(-1); return s },
			Kills: []string{"PR-25"},
		},
		{
			Name: "cancellation fails all", Doc: "when the connecting request is cancelled, those who wait for it fail with it",
			Apply: func(s Subject) Subject { s.Policy.Connects.Cancelled = share.FailAll; return s },
			Kills: []string{"PR-20"},
		},
		{
			Name: "choices outlive the app", Doc: "a restarted app goes on with the proxies of the last one",
			Apply: func(s Subject) Subject { s.Remembers = true; return s },
			Kills: []string{"PR-10"},
		},
		{
			Name: "hidden is no reason", Doc: "the mode unprotected proxies though the user's address is hidden",
			Apply: func(s Subject) Subject {
				s.Policy.Proxied = func(c forward.Config, destination pick.Server) bool {
					c.AddressHidden = false
					return c.Proxied(destination)
				}
				return s
			},
			Kills: []string{"PR-27"},
		},
		{
			Name: "disabled is unknown", Doc: "only the servers that are enabled count as known",
			Apply: func(s Subject) Subject {
				s.Policy.Proxied = func(c forward.Config, destination pick.Server) bool {
					c.Servers = slices.DeleteFunc(slices.Clone(c.Servers), func(s pick.Server) bool { return !s.Enabled })
					return c.Proxied(destination)
				}
				return s
			},
			Kills: []string{"PR-27"},
		},
		{
			Name: "slow network changes nothing", Doc: "the limits are the same on every network",
			Apply: func(s Subject) Subject { s.Policy.Times.SlowNum = s.Policy.Times.SlowDen; return s },
			Kills: []string{"PR-34"},
		},
		{
			Name: "pick ignores operators", Doc: "a proxy of the relay's own operator is as good as any",
			Apply: func(s Subject) Subject { s.Policy.Cascade = []pick.Filter{pick.ProxyRole, pick.OtherHost}; return s },
			Kills: []string{"PR-26"},
		},
		{
			Name: "pick ignores hosts", Doc: "a proxy on the relay's own host is as good as any",
			Apply: func(s Subject) Subject {
				s.Policy.Cascade = []pick.Filter{pick.ProxyRole, pick.OtherOperator}
				return s
			},
			Kills: []string{"PR-26"},
		},
		{
			Name: "ladder never grows", Doc: "every two seconds, for ever",
			Apply: func(s Subject) Subject { s.Policy.Retry.Ladder.Max = s.Policy.Retry.Ladder.Initial; return s },
			Kills: []string{"PR-35"},
		},
	}
}
