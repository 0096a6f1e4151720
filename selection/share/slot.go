package share

import "time"

// Attempt numbers the attempts of a group, from 1. Zero names none.
type Attempt uint64

// slot is the state of one key: an attempt under way, its value, or its stored error. It is a state machine that is fed with now.
type slot[V any] struct {
	attempt Attempt
	phase   phase
	value   V
	err     error
	until   time.Time // when the stored error expires; zero: never
	waiters []chan<- handover[V]
}

type phase uint8

const (
	pending phase = iota
	ready
	failed
)

// handover is what a waiter gets: the outcome of the attempt, or the task to make the next one.
type handover[V any] struct {
	attempt Attempt
	value   V
	err     error
	create  bool
}

// expired reports whether the slot's stored error no longer counts, so that a new attempt is due.
func (s *slot[V]) expired(now time.Time) bool {
	return s.phase == failed && !s.until.IsZero() && !now.Before(s.until)
}

// succeed ends the attempt with a value, and tells the waiters.
func (s *slot[V]) succeed(v V) {
	s.phase, s.value = ready, v
	s.tell(handover[V]{attempt: s.attempt, value: v})
}

// fail ends the attempt with an error that is kept until the given time (zero: for ever), and tells the waiters.
func (s *slot[V]) fail(err error, until time.Time) {
	s.phase, s.err, s.until = failed, err, until
	s.tell(handover[V]{attempt: s.attempt, err: err})
}

func (s *slot[V]) tell(h handover[V]) {
	for _, w := range s.waiters {
		w <- h
	}
	s.waiters = nil
}

// pass hands a cancelled attempt to the waiter who has waited longest, as a new attempt. It reports whether there was one.
func (s *slot[V]) pass(next Attempt) bool {
	if len(s.waiters) == 0 {
		return false
	}
	first := s.waiters[0]
	s.waiters = s.waiters[1:]
	s.attempt = next
	first <- handover[V]{attempt: next, create: true}
	return true
}

// leave takes a waiter out who does not want to wait any longer. It reports false if the waiter has been told meanwhile.
func (s *slot[V]) leave(w chan<- handover[V]) bool {
	for i, other := range s.waiters {
		if other == w {
			s.waiters = append(s.waiters[:i:i], s.waiters[i+1:]...)
			return true
		}
	}
	return false
}
