// Package share lets many requests share one thing that is slow to make: a connection, a session.
//
// It is create-or-wait: the first request for a key makes the thing, the others wait for it, each at most as long as it
// likes. A failure is handed to everybody who waits and stored for a while, so that a burst of requests does not become
// a burst of attempts. An attempt whose maker is cancelled leaves nothing behind: the request that has waited longest
// makes a new one. A removal names the attempt it means, so a late one cannot hit a newer thing.
//
//	conns := share.NewGroup[string, *Conn](share.For(3*time.Second), clock.System)
//	got, err := conns.Get(ctx, "p1", 45*time.Second, func(ctx context.Context, a share.Attempt) (*Conn, error) {
//		return connect(ctx, "p1", func() { conns.Remove("p1", a) }) // it leaves when it ends
//	})
//
// A group starts no goroutine: a thing is made in the goroutine of the request that makes it.
package share

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/seed-5a7f77c4/deadair/clock"
)

// How tells by which way a request got its result.
type How uint8

const (
	// Made: by an attempt of its own.
	Made How = iota
	// Shared: by someone else's attempt, which it waited for.
	Shared
	// Stored: what was there already, a value or an error.
	Stored
	// WaitedOut: not at all; its own wait for someone else's attempt ran out. The error is context.DeadlineExceeded.
	WaitedOut
	// Cancelled: not at all; its context ended first.
	Cancelled
)

var hows = [...]string{"made", "shared", "stored", "waited out", "cancelled"}

func (h How) String() string { return hows[h] }

// Got is the outcome of a request. Value is meaningful only without an error.
type Got[V any] struct {
	Value   V
	Attempt Attempt
	How     How
}

// Policy says what becomes of an attempt that came to nothing.
type Policy struct {
	// Persist says how long an error is stored. Zero: not at all; negative: until it is removed. Nil stores none.
	Persist func(error) time.Duration
	// Cancelled says what the waiters get when the request that makes the thing is cancelled.
	Cancelled Succession
}

// Succession is what follows a cancelled attempt. In either case nothing of the attempt is stored.
type Succession uint8

const (
	// HandOver: the request that has waited longest makes the thing anew.
	HandOver Succession = iota
	// FailAll: everybody who waits gets the cancellation as an error, though nobody but the maker was cancelled. A
	// correct client does not.
	FailAll
)

// For is the policy that stores every error for d, as Persist has it.
func For(d time.Duration) Policy {
	return Policy{Persist: func(error) time.Duration { return d }}
}

// Group shares things by key. Its methods may be called from many goroutines.
type Group[K comparable, V any] struct {
	policy Policy
	clock  clock.Clock

	mu       sync.Mutex
	attempts Attempt
	slots    map[K]*slot[V]
}

// NewGroup returns an empty group with the given rules, which takes its time from the clock given.
func NewGroup[K comparable, V any](policy Policy, c clock.Clock) *Group[K, V] {
	return &Group[K, V]{policy: policy, clock: c, slots: map[K]*slot[V]{}}
}

// Get returns the thing of a key: it is there, or somebody is making it, or create makes it. create gets a context
// that ends after limit; a wait for somebody else ends after limit as well, with a How of WaitedOut. A request whose
// wait ended because it has to take over the attempt of one that was cancelled gets a full limit for its own.
func (g *Group[K, V]) Get(ctx context.Context, key K, limit time.Duration,
	create func(context.Context, Attempt) (V, error)) (Got[V], error) {
	if err := ctx.Err(); err != nil {
		return Got[V]{How: Cancelled}, context.Cause(ctx)
	}
	g.mu.Lock()
	s := g.slots[key]
	switch {
	case s == nil || s.expired(g.clock.Now()):
		s = &slot[V]{attempt: g.next()}
		g.slots[key] = s
		g.mu.Unlock()
		return g.make(ctx, key, s, s.attempt, limit, create)
	case s.phase == pending:
		told := make(chan handover[V], 1)
		s.waiters = append(s.waiters, told)
		g.mu.Unlock()
		return g.wait(ctx, key, s, told, limit, create)
	}
	defer g.mu.Unlock()
	return Got[V]{Value: s.value, Attempt: s.attempt, How: Stored}, s.err
}

// next numbers an attempt. The caller holds mu.
func (g *Group[K, V]) next() Attempt {
	g.attempts++
	return g.attempts
}

func (g *Group[K, V]) make(ctx context.Context, key K, s *slot[V], a Attempt, limit time.Duration,
	create func(context.Context, Attempt) (V, error)) (Got[V], error) {
	own, cancel := g.clock.WithTimeout(ctx, limit)
	defer cancel()
	done := false
	defer func() {
		if !done { // create panicked or ended its goroutine: nobody is to wait for it
			g.abandon(key, s, context.Canceled)
		}
	}()
	v, err := create(own, a)
	done = true
	if err != nil && ctx.Err() != nil {
		g.abandon(key, s, context.Cause(ctx))
		return Got[V]{Attempt: a, How: Cancelled}, context.Cause(ctx)
	}
	if err == nil {
		g.settle(key, s, func() bool { s.succeed(v); return true })
		return Got[V]{Value: v, Attempt: a, How: Made}, nil
	}
	var keep time.Duration
	if g.policy.Persist != nil {
		keep = g.policy.Persist(err)
	}
	g.settle(key, s, func() bool {
		var until time.Time
		if keep > 0 {
			until = g.clock.Now().Add(keep)
		}
		s.fail(err, until)
		return keep != 0
	})
	return Got[V]{Attempt: a, How: Made}, err
}

// abandon ends an attempt whose maker is gone.
func (g *Group[K, V]) abandon(key K, s *slot[V], cause error) {
	g.settle(key, s, func() bool {
		if g.policy.Cancelled == FailAll {
			s.fail(cause, time.Time{})
			return false
		}
		return s.pass(g.next())
	})
}

// settle moves the slot to its next state and drops it unless the step says that it stays. A slot that was removed
// meanwhile still tells its waiters, but is not put back.
func (g *Group[K, V]) settle(key K, s *slot[V], step func() (stays bool)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if stays := step(); !stays && g.slots[key] == s {
		delete(g.slots, key)
	}
}

func (g *Group[K, V]) wait(ctx context.Context, key K, s *slot[V], told chan handover[V], limit time.Duration,
	create func(context.Context, Attempt) (V, error)) (Got[V], error) {
	timer := g.clock.NewTimer(limit)
	defer timer.Stop()
	how, err := WaitedOut, fmt.Errorf("share: waited %v for another's attempt: %w", limit, context.DeadlineExceeded)
	select {
	case h := <-told:
		return g.take(ctx, key, s, h, limit, create)
	case <-ctx.Done():
		how, err = Cancelled, context.Cause(ctx)
	case <-timer.C:
	}
	g.mu.Lock()
	left := s.leave(told)
	g.mu.Unlock()
	if !left { // told in this very instant: what was handed over must not be lost
		return g.take(ctx, key, s, <-told, limit, create)
	}
	return Got[V]{How: how}, err
}

func (g *Group[K, V]) take(ctx context.Context, key K, s *slot[V], h handover[V], limit time.Duration,
	create func(context.Context, Attempt) (V, error)) (Got[V], error) {
	if h.create {
		return g.make(ctx, key, s, h.attempt, limit, create)
	}
	return Got[V]{Value: h.value, Attempt: h.attempt, How: Shared}, h.err
}

// Remove takes out what the attempt of a key made, or its stored error. It reports false, and does nothing, if the
// key's attempt is another one. An attempt that is still under way goes on for those who wait for it, and is not found
// by later requests.
func (g *Group[K, V]) Remove(key K, a Attempt) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.slots[key]
	if s == nil || s.attempt != a {
		return false
	}
	delete(g.slots, key)
	return true
}

// Peek returns the value of a key if there is one now.
func (g *Group[K, V]) Peek(key K) (Got[V], bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.slots[key]
	if s == nil || s.phase != ready {
		return Got[V]{}, false
	}
	return Got[V]{Value: s.value, Attempt: s.attempt, How: Stored}, true
}

// Clear forgets every value and stored error, and returns the values in the order in which they were made. An attempt
// under way goes on for those who wait for it, and is not found by later requests.
func (g *Group[K, V]) Clear() []V {
	g.mu.Lock()
	defer g.mu.Unlock()
	var made []*slot[V]
	for _, s := range g.slots {
		if s.phase == ready {
			made = append(made, s)
		}
	}
	clear(g.slots)
	slices.SortFunc(made, func(a, b *slot[V]) int { return cmp.Compare(a.attempt, b.attempt) })
	values := make([]V, len(made))
	for i, s := range made {
		values[i] = s.value
	}
	return values
}
