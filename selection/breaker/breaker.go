package breaker

import (
	"fmt"
	"time"
)

// State is what a breaker does with the next request.
type State uint8

const (
	Closed   State = iota // requests pass, failures are counted
	Open                  // nothing passes until the deadline
	HalfOpen              // the deadline has passed: a few trials decide
)

// String gives the usual name: closed, open, half-open.
func (s State) String() string {
	switch s {
	case Closed:
		return "closed"
	case Open:
		return "open"
	case HalfOpen:
		return "half-open"
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}

// Result is how an admitted request ended.
type Result uint8

const (
	Abandoned Result = iota // it proved nothing: the client left, or the fault was somebody else's
	Success
	Failure
)

// Settings are the figures of a breaker. They are a plain comparable value.
type Settings struct {
	// Failures is how many consecutive failures open the breaker, at least 1.
	// There is no window: only a success starts the count anew.
	Failures int

	// OpenFor is how long nothing passes, counted from the failure that
	// opened the breaker. It must be positive.
	OpenFor time.Duration

	// Successes is how many trials must succeed before a half-open breaker
	// closes. 0 means that it closes by itself once OpenFor has passed.
	Successes int

	// Trials is how many requests a half-open breaker admits at a time;
	// 0 means 1.
	Trials int

	// Extend lets a failure that is reported while the breaker is open start
	// OpenFor anew. Off by default: with steady health probes against a dead
	// endpoint such a breaker never gets to half-open.
	Extend bool
}

// Validate names the first setting that makes no sense, or returns nil.
func (s Settings) Validate() error {
	switch {
	case s.Failures < 1:
		return fmt.Errorf("breaker: Settings.Failures is %d, want at least 1", s.Failures)
	case s.OpenFor <= 0:
		return fmt.Errorf("breaker: Settings.OpenFor is %v, want more than 0", s.OpenFor)
	case s.Successes < 0:
		return fmt.Errorf("breaker: Settings.Successes is %d, want 0 or more", s.Successes)
	case s.Trials < 0:
		return fmt.Errorf("breaker: Settings.Trials is %d, want 0 or more", s.Trials)
	}
	return nil
}

// Permit is the right to one request. It belongs to the state that the breaker
// was in when it was given: a result that arrives after the breaker has changed
// its state changes nothing, so a request of yesterday cannot decide a trial of
// today.
type Permit struct {
	generation uint64
	held       bool
}

// Breaker is one circuit breaker. It is a plain value without lock, clock or
// goroutine: the caller serialises the calls and passes the time. Make it with
// New.
type Breaker struct {
	settings   Settings
	state      State
	generation uint64
	failures   int
	successes  int
	trials     int
	deadline   time.Time
}

// New gives a closed breaker. It panics on settings that Validate refuses.
func New(s Settings) *Breaker {
	if err := s.Validate(); err != nil {
		panic(fmt.Sprintf("breaker.New(%+v): %v", s, err))
	}
	if s.Trials == 0 {
		s.Trials = 1
	}
	return &Breaker{settings: s}
}

// State is the state at now. An open breaker whose time has passed is
// half-open (closed, where Settings.Successes is 0) from that instant on.
func (b *Breaker) State(now time.Time) State {
	if b.state == Open && !now.Before(b.deadline) {
		if b.settings.Successes == 0 {
			b.enter(Closed)
		} else {
			b.enter(HalfOpen)
		}
	}
	return b.state
}

// Ready says whether Acquire would give a permit at now, without taking one.
func (b *Breaker) Ready(now time.Time) bool {
	switch b.State(now) {
	case Closed:
		return true
	case HalfOpen:
		return b.trials < b.settings.Trials
	default:
		return false
	}
}

// Acquire asks for one request. Every permit must come back through Done: a
// half-open breaker waits for it.
func (b *Breaker) Acquire(now time.Time) (Permit, bool) {
	if !b.Ready(now) {
		return Permit{}, false
	}
	if b.state == HalfOpen {
		b.trials++
	}
	return Permit{generation: b.generation, held: true}, true
}

// Done reports how a permitted request ended. A permit of a closed breaker may
// report more than once (each attempt of a request on one endpoint, say); the
// permit of a trial is used up by the first report.
func (b *Breaker) Done(p *Permit, r Result, now time.Time) {
	state := b.State(now)
	if !p.held || p.generation != b.generation {
		if r == Failure && state == Open {
			b.lateFailure(now)
		}
		return
	}
	if state == HalfOpen {
		b.trials--
		p.held = false
	}
	b.count(state, r, now)
}

// Observe reports a result that nobody asked permission for, such as that of a
// health probe. It counts while the breaker is closed, and nowhere else: a
// half-open breaker is decided by its trials alone.
func (b *Breaker) Observe(r Result, now time.Time) {
	switch state := b.State(now); {
	case state == Closed:
		b.count(state, r, now)
	case state == Open && r == Failure:
		b.lateFailure(now)
	}
}

// Failures is the current count of consecutive failures; 0 unless closed.
func (b *Breaker) Failures() int { return b.failures }

// Deadline is when an open breaker's time is over; zero in another state.
func (b *Breaker) Deadline() time.Time { return b.deadline }

func (b *Breaker) count(state State, r Result, now time.Time) {
	switch {
	case r == Success && state == Closed:
		b.failures = 0
	case r == Success && state == HalfOpen:
		if b.successes++; b.successes >= b.settings.Successes {
			b.enter(Closed)
		}
	case r == Failure && state == Closed:
		if b.failures++; b.failures >= b.settings.Failures {
			b.open(now)
		}
	case r == Failure && state == HalfOpen:
		b.open(now)
	}
}

func (b *Breaker) lateFailure(now time.Time) {
	if b.settings.Extend {
		b.deadline = now.Add(b.settings.OpenFor)
	}
}

func (b *Breaker) open(now time.Time) {
	b.enter(Open)
	b.deadline = now.Add(b.settings.OpenFor)
}

func (b *Breaker) enter(s State) {
	b.state = s
	b.generation++
	b.failures, b.successes, b.trials = 0, 0, 0
	b.deadline = time.Time{}
}
