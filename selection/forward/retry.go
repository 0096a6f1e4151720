package forward

import (
	"time"

	"github.com/seed-5a7f77c4/deadair/selection/backoff"
	"github.com/seed-5a7f77c4/deadair/selection/choice"
)

// RetryPolicy is what a background worker does after a failure.
type RetryPolicy struct {
	// Ladder is for temporary and host errors, Full for a destination that has no room.
	Ladder, Full backoff.Policy
	// MoveAfter is the number of failures after which a command that can move is handed to its destination's own worker.
	MoveAfter int
}

// Retries is the state of one command between its tries. It is a pure state machine.
//
// A command that can move starts in the worker of its connection. After MoveAfter failures it moves to the worker of its
// destination, which tries at once, with a fresh ladder. That worker also starts a fresh ladder whenever a streak has
// made the client leave a proxy: the failures so far were that proxy's, and a new route is tried from the lowest rung.
// A streak takes as long as its proxy needs to report twice, so this cannot hammer.
type Retries struct {
	policy   RetryPolicy
	ladder   backoff.Ladder
	full     backoff.Ladder
	moves    bool
	failures int
}

// Start returns the state of a command that has not been tried yet.
func (p RetryPolicy) Start(moves bool) Retries {
	return Retries{policy: p, ladder: p.Ladder.Start(), full: p.Full.Start(), moves: moves}
}

// Failed says how long to wait before the next try; false if the error ends the work.
func (r *Retries) Failed(e *Error, change choice.Change) (wait time.Duration, again bool) {
	if e == nil || !e.Retried() {
		return 0, false
	}
	if e.Full() {
		return r.full.Next(), true
	}
	r.failures++
	if r.moves && r.failures == r.policy.MoveAfter {
		r.ladder = r.policy.Ladder.Start()
		return 0, true
	}
	if r.moves && r.failures > r.policy.MoveAfter && change == choice.StreakOut {
		r.ladder = r.policy.Ladder.Start()
	}
	return r.ladder.Next(), true
}
