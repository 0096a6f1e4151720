package choice

import (
	"fmt"
	"time"
)

// Kind is something that happened to a request that went by a choice.
type Kind uint8

const (
	// ConnectFailed: the own attempt to connect to the proxy failed (refused, unreachable, time-out, TLS).
	ConnectFailed Kind = iota
	// ConnectErrorShared: another request's connect error was handed over, or a stored one returned.
	ConnectErrorShared
	// WaitTimedOut: the own wait for someone else's attempt ran out.
	WaitTimedOut
	// SessionFailed: the proxy gave no session with the destination (also if it did not answer in time).
	SessionFailed
	// HostError: the proxy has no way to reach such a destination at all.
	HostError
	// ForwardFailed: the proxy reported that it could not forward.
	ForwardFailed
	// RelayReached: the forward got to the destination, which did what it was asked.
	RelayReached
	// RelayRefused: the forward got to the destination, which answered with an error of its own.
	RelayRefused
	// FrameRefused: the destination refused the forwarded frame itself.
	FrameRefused
	// AnswerUnusable: the destination answered, and the answer inside the response could not be read.
	AnswerUnusable
	// ForwardTimedOut: the proxy did not answer a forward in time.
	ForwardTimedOut
	// SessionUnknown: the proxy does not know the session.
	SessionUnknown
	// ConnectionEnded: the connection to the proxy ended.
	ConnectionEnded

	// Kinds is the number of kinds.
	Kinds = iota
)

var kindNames = [Kinds]string{"connect failed", "connect error shared", "wait timed out", "session failed", "host error",
	"forward failed", "relay reached", "relay refused", "frame refused", "answer unusable", "forward timed out", "session unknown", "connection ended"}

// String is the kind in words.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("choice.Kind(%d)", uint8(k))
}

// Effect is what an event does to an entry.
type Effect uint8

const (
	// Keep leaves the entry alone.
	Keep Effect = iota
	// Forget removes it.
	Forget
	// Count hands the failure to the policy's Counter, which may begin a streak or forget.
	Count
	// Clear ends the streak.
	Clear
)

// Guard is the condition under which an event may touch an entry.
type Guard uint8

const (
	// SameChoice: the event stems from this very choice; a proxy forgotten and picked again is another one.
	SameChoice Guard = iota
	// SameProxy: the event stems from a choice of the same proxy.
	SameProxy
	// Anyone: no condition.
	Anyone
)

// Rule is one row of a policy.
type Rule struct {
	Effect Effect
	Guard  Guard
}

// Streak is a run of failures with nothing good in between. The zero Streak is none.
type Streak struct {
	// Start is when its first failure was handled.
	Start time.Time
	// Last is when its latest failure was handled.
	Last time.Time
}

// Running reports whether there is a streak.
func (s Streak) Running() bool { return !s.Start.IsZero() }

// Counter decides about one more failure: the streak from now on, or that the proxy is to be forgotten.
type Counter func(s Streak, now time.Time) (next Streak, forget bool)

// FailureInterval is how long a proxy must have been failing before it is forgotten: proxyFailureInterval.
const FailureInterval = 30 * time.Second

// After forgets at a failure that comes at least interval after the first one of the streak. The start never moves.
func After(interval time.Duration) Counter {
	return func(s Streak, now time.Time) (Streak, bool) {
		if !s.Running() {
			return Streak{Start: now, Last: now}, false
		}
		return Streak{Start: s.Start, Last: now}, now.Sub(s.Start) >= interval
	}
}

// Expiring starts a streak anew if its last failure is older than expiry.
func Expiring(expiry time.Duration, counter Counter) Counter {
	return func(s Streak, now time.Time) (Streak, bool) {
		if s.Running() && now.Sub(s.Last) > expiry {
			s = Streak{}
		}
		return counter(s, now)
	}
}

// Policy is what each event does, and how failures are counted. It is a plain value: to change a rule, copy and assign.
//
//	p := choice.Default()
//	p.Rules[choice.ForwardTimedOut] = choice.Rule{Effect: choice.Count}
type Policy struct {
	Rules   [Kinds]Rule
	Counter Counter
}

// Default is the policy of a messaging agent.
func Default() Policy {
	return Policy{
		Rules: [Kinds]Rule{
			ConnectFailed:      {Effect: Forget},
			ConnectErrorShared: {Effect: Forget},
			WaitTimedOut:       {Effect: Keep},
			SessionFailed:      {Effect: Forget},
			HostError:          {Effect: Keep},
			ForwardFailed:      {Effect: Count},
			RelayReached:       {Effect: Clear},
			RelayRefused:       {Effect: Clear},
			FrameRefused:       {Effect: Clear},
			AnswerUnusable:     {Effect: Clear},
			ForwardTimedOut:    {Effect: Keep},
			SessionUnknown:     {Effect: Keep},
			ConnectionEnded:    {Effect: Forget},
		},
		Counter: After(FailureInterval),
	}
}

// Without returns the policy with the rules for the given events switched off: they leave every entry alone.
func (p Policy) Without(kinds ...Kind) Policy {
	for _, k := range kinds {
		p.Rules[k] = Rule{Effect: Keep}
	}
	return p
}

// With returns the policy with another effect for an event, under the same guard.
func (p Policy) With(k Kind, e Effect) Policy {
	p.Rules[k].Effect = e
	return p
}

// Guarded returns the policy with another guard for the given events.
func (p Policy) Guarded(g Guard, kinds ...Kind) Policy {
	for _, k := range kinds {
		p.Rules[k].Guard = g
	}
	return p
}
