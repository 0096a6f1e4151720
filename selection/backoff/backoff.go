// Package backoff is a retry ladder: how long to wait before the next try.
//
// A ladder repeats its initial delay until the delays it has handed out add up to GrowAfter; from then on each delay
// is half as long again, up to Max.
//
//	l := backoff.Background.Start()
//	for {
//		if err := try(); err == nil {
//			return nil
//		}
//		time.Sleep(l.Next()) // 2 s five times, then 3, 4.5, 6.75 s …
//	}
//
// A ladder is a plain value: it reads no clock and sleeps for nobody. It counts the delays it has handed out, not the
// time the tries took, so a slow failure does not make the next delay longer.
package backoff

import (
	"fmt"
	"time"
)

// Policy is the shape of a ladder.
type Policy struct {
	// Initial is the first delay.
	Initial time.Duration
	// GrowAfter is the sum of delays from which on they grow.
	GrowAfter time.Duration
	// Max is the longest delay.
	Max time.Duration
}

// The ladders of a messaging agent.
var (
	// Background is for commands that a worker repeats: 2 s, growing after 10 s, up to 120 s.
	Background = Policy{Initial: 2 * time.Second, GrowAfter: 10 * time.Second, Max: 120 * time.Second}
	// Quota is for a queue that is full: 300 s, growing after 60 s, up to 6 hours.
	Quota = Policy{Initial: 300 * time.Second, GrowAfter: 60 * time.Second, Max: 21600 * time.Second}
	// Subscription is for subscriptions to the own servers: 2 s, growing after 10 s, up to 180 s.
	Subscription = Policy{Initial: 2 * time.Second, GrowAfter: 10 * time.Second, Max: 180 * time.Second}
)

// Validate returns an error that names the field that makes no ladder: a delay that is not positive, or a Max below Initial.
func (p Policy) Validate() error {
	switch {
	case p.Initial <= 0:
		return fmt.Errorf("backoff: Initial %v is not positive", p.Initial)
	case p.GrowAfter < 0:
		return fmt.Errorf("backoff: GrowAfter %v is negative", p.GrowAfter)
	case p.Max < p.Initial:
		return fmt.Errorf("backoff: Max %v is below Initial %v", p.Max, p.Initial)
	}
	return nil
}

// Start returns a fresh ladder, at its lowest rung.
func (p Policy) Start() Ladder { return Ladder{policy: p, next: p.Initial} }

// Ladder is the state of one series of retries. Copying it copies the state.
type Ladder struct {
	policy Policy
	next   time.Duration
	slept  time.Duration
}

// Next returns the delay before the next try and climbs.
func (l *Ladder) Next() time.Duration {
	delay := l.next
	l.slept += delay
	if l.slept >= l.policy.GrowAfter {
		l.next = min(delay+delay/2, l.policy.Max)
	}
	return delay
}
