package retry

import (
	"time"

	"github.com/seed-5a7f77c4/deadair/selection/breaker"
)

// Turn is the attempts of one request at one provider. It knows no names and no
// time: candidates are numbered by rank from 0.
type Turn struct {
	policy     *Policy
	candidates int
	vendor     bool // the vendor rule applies
	max        int

	attempt  int // the one under way, or the last one, from 1
	index    int // never falls; may pass the end, Place brings it back
	failed   uint16
	timedOut uint16
	timeouts int
}

// NewTurn starts a turn over at least one candidate. vendor says that the vendor
// rule applies: the provider has a vendor, and the candidates are endpoints and
// not the provider's own URL. max is clamped to 1…MaxAttempts.
func NewTurn(policy *Policy, candidates int, vendor bool, max int) Turn {
	return Turn{
		policy:     policy,
		candidates: candidates,
		vendor:     vendor,
		max:        ClampAttempts(max),
	}
}

// ClampAttempts brings a number of attempts into 1…MaxAttempts.
func ClampAttempts(n int) int { return min(max(n, 1), MaxAttempts) }

// Decision is what follows an attempt.
type Decision struct {
	Kind     Kind
	Action   Action
	Wait     time.Duration  // before the next attempt, when Action is Again
	Index    int            // the candidate at which the turn stands now
	Endpoint breaker.Result // Abandoned: does not count
	Provider breaker.Result // Abandoned: does not count
	Vendor   breaker.Result // Failure: the vendor's breaker opens
	Bind     bool           // the conversation is bound to the provider
	Reason   Reason
}

// Begin starts the next attempt and gives its candidate.
func (t *Turn) Begin() int {
	t.attempt++
	return t.place()
}

// Report decides what follows the attempt that Begin started.
func (t *Turn) Report(k Kind) Decision {
	row := &t.policy.Table[k]
	place := t.place()
	verdict := breaker.Failure
	if k == Success {
		verdict = breaker.Success
	}
	exhausted := row.Retry && t.Exhausted()
	d := Decision{Kind: k, Reason: row.Reason, Bind: row.Bind}

	repeated := t.failed&(1<<place) != 0
	if row.Endpoint.now(exhausted, repeated) {
		d.Endpoint = verdict
		t.failed |= 1 << place
	}
	if row.Provider.now(exhausted, false) {
		d.Provider = verdict
	}
	if row.Vendor {
		t.timedOut |= 1 << place
		t.timeouts++
		if t.vendor && t.policy.VendorOut(t) {
			d.Vendor, d.Provider, d.Reason = breaker.Failure, breaker.Abandoned, VendorTimeout
		}
	}

	if t.policy.Moves(*row, t.attempt, t.max) {
		t.index++
	}
	d.Index = t.place()
	switch {
	case !row.Retry:
		d.Action = Return
	case exhausted:
		d.Action = NextProvider
	default:
		d.Action, d.Wait = Again, t.policy.Wait
	}
	return d
}

func (c Count) now(exhausted, repeated bool) bool {
	switch c {
	case EachAttempt:
		return true
	case EachEndpoint:
		return !repeated
	case OnExhaustion:
		return exhausted
	default:
		return false
	}
}

// Attempt is the number of the attempt under way, or of the last one, from 1.
func (t *Turn) Attempt() int { return t.attempt }

// Exhausted says that no attempt is left.
func (t *Turn) Exhausted() bool { return t.attempt >= t.max }

// AllTimedOut says that every candidate ran into a time-out of the proxy's own.
func (t *Turn) AllTimedOut() bool { return t.timedOut == 1<<t.candidates-1 }

// Timeouts is how many attempts ran into a time-out of the proxy's own.
func (t *Turn) Timeouts() int { return t.timeouts }

// Candidates is how many candidates the turn has.
func (t *Turn) Candidates() int { return t.candidates }

func (t *Turn) place() int { return t.policy.Place(t.index, t.attempt, t.candidates) }
