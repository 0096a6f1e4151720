package clock

import (
	"fmt"
	"sync"
	"testing/synctest"
	"time"
)

// A Scheduler is the one ordered queue of a simulation: every event of it
// happens in the order (time, key, sequence), with one armed timer however
// many events wait.
//
// Inside a bubble it runs one event per virtual instant: the next one happens a
// nanosecond later at the earliest. Virtual time only moves when every goroutine of the bubble is blocked, so
// each event is digested before the next one happens, whatever the number of
// processors. That is what makes a run repeatable; a tie costs a nanosecond.
//
// Outside a bubble it runs in real time: events that are due run in the same
// order, at once.
//
// All times are durations since the scheduler was made. Methods may be called
// from any goroutine, also from within a Handler.
type Scheduler struct {
	epoch  time.Time
	bubble bool

	mu      sync.Mutex
	queue   []*Event // a 4-ary heap
	seq     uint64
	timer   *time.Timer
	armed   time.Duration // when the timer goes off; never if idle
	last    time.Duration // when an event last ran
	running bool
	closed  bool
	ran     uint64
}

const never = time.Duration(1<<63 - 1)

// Key orders the events of one instant: by Name, then by Kind. Names are made
// of what a thing is called (a path, a connection), never of the order in which
// things arrived: arrival order is what differs between two runs.
type Key struct {
	Name string
	Kind uint8
}

// A Handler is what happens when an event is due. It runs on a goroutine of the
// scheduler with no lock held and must not block. What it returns, whether it
// woke a goroutine, makes no difference to the order: each event has an instant
// to itself.
type Handler interface {
	Fire(now time.Duration) (woke bool)
}

// HandlerFunc makes a function a Handler.
type HandlerFunc func(now time.Duration) (woke bool)

// Fire calls f.
func (f HandlerFunc) Fire(now time.Duration) bool { return f(now) }

// An Event is one entry of the queue. It belongs to whoever made it, is in the
// queue at most once, and can be used again after it fired: a connection's
// timer is one Event for the connection's whole life.
type Event struct {
	Key     Key
	Handler Handler

	at    time.Duration
	seq   uint64
	index int // in the heap, 1-based; 0 when not queued
}

// At is when the event happens, or happened.
func (e *Event) At() time.Duration { return e.at }

// NewScheduler makes an empty queue whose time starts now. It belongs to the
// bubble in which it was made.
func NewScheduler() *Scheduler {
	return &Scheduler{epoch: time.Now(), bubble: InBubble(), armed: never, last: -1}
}

// Epoch is the time at which the scheduler was made.
func (s *Scheduler) Epoch() time.Time { return s.epoch }

// Now is the time since the scheduler was made.
func (s *Scheduler) Now() time.Duration { return time.Since(s.epoch) }

// Schedule puts e into the queue for the time at, or moves it there when it is
// queued already. A time that has passed means as soon as possible. In a bubble
// an event happens a nanosecond after its time at the earliest: all that is awake
// comes to rest first, and what it still schedules takes part in the order; and a
// test that sleeps until a round time and calls synctest.Wait has that instant to
// itself. It reports
// whether e was accepted: a closed scheduler takes nothing.
//
// An event without a handler or without a key's name is a mistake in the
// program and panics.
func (s *Scheduler) Schedule(e *Event, at time.Duration) bool {
	if e.Handler == nil || e.Key.Name == "" {
		panic(fmt.Sprintf("clock: Scheduler.Schedule: an event needs a handler and a key with a name, have key %q", e.Key.Name))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	if e.index != 0 {
		s.remove(e)
	}
	now := s.Now()
	if s.bubble {
		at = max(at, now) + 1
	}
	s.seq++
	e.at, e.seq = at, s.seq
	s.push(e)
	if !s.running && e.index == 1 {
		s.arm(now)
	}
	return true
}

// Cancel takes e out of the queue. It reports whether e was in it.
func (s *Scheduler) Cancel(e *Event) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.index == 0 {
		return false
	}
	s.remove(e)
	return true
}

// Queued reports whether e waits in the queue.
func (s *Scheduler) Queued(e *Event) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return e.index != 0
}

// Len is the number of events that wait.
func (s *Scheduler) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue)
}

// Ran is the number of events that have run.
func (s *Scheduler) Ran() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ran
}

// Close drops every event and stops the timer. An event that is running
// finishes. Closing twice does nothing.
func (s *Scheduler) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, e := range s.queue {
		e.index = 0
	}
	s.queue = nil
	if s.timer != nil {
		s.timer.Stop()
	}
	s.armed = never
}

// arm sets the timer for the head of the queue, in a bubble a nanosecond from
// now at the earliest.
func (s *Scheduler) arm(now time.Duration) {
	if len(s.queue) == 0 {
		return // a timer that is still armed finds nothing to do
	}
	at := s.queue[0].at
	if s.bubble {
		at = max(at, now+1)
	} else {
		at = max(at, now)
	}
	if s.armed <= at && s.armed > now {
		return
	}
	s.armed = at
	if s.timer == nil {
		s.timer = time.AfterFunc(at-now, s.fire)
	} else {
		s.timer.Reset(at - now)
	}
}

// fire runs what is due.
func (s *Scheduler) fire() {
	s.mu.Lock()
	if s.running || s.closed {
		s.mu.Unlock()
		return
	}
	s.running, s.armed = true, never
	if s.bubble {
		s.mu.Unlock()
		rest()
		s.mu.Lock()
	}
	now := s.Now()
	for len(s.queue) > 0 && s.queue[0].at <= now && !(s.bubble && s.last == now) {
		e := s.queue[0]
		s.remove(e)
		s.ran++
		s.mu.Unlock()
		e.Handler.Fire(now)
		s.mu.Lock()
		s.last = now
		if !s.bubble {
			now = s.Now()
		}
	}
	s.running = false
	if !s.closed {
		s.arm(now)
	}
	s.mu.Unlock()
}

// rest lets everybody come to rest whom a timer of the program woke in this very
// instant: what the program does in an instant comes before what the network
// does, always. Somebody else may be in synctest.Wait at the moment; then that
// one is told when all are at rest, this goroutine too, which therefore sleeps.
func rest() {
	defer func() {
		if recover() != nil {
			time.Sleep(1)
		}
	}()
	synctest.Wait()
}

func before(a, b *Event) bool {
	if a.at != b.at {
		return a.at < b.at
	}
	if a.Key.Name != b.Key.Name {
		return a.Key.Name < b.Key.Name
	}
	if a.Key.Kind != b.Key.Kind {
		return a.Key.Kind < b.Key.Kind
	}
	return a.seq < b.seq
}

func (s *Scheduler) push(e *Event) {
	s.queue = append(s.queue, e)
	s.up(len(s.queue)-1, e)
}

func (s *Scheduler) remove(e *Event) {
	i, n := e.index-1, len(s.queue)-1
	tail := s.queue[n]
	s.queue[n] = nil
	s.queue = s.queue[:n]
	e.index = 0
	if i == n {
		return
	}
	if i > 0 && before(tail, s.queue[(i-1)/4]) {
		s.up(i, tail)
	} else {
		s.down(i, tail)
	}
}

// up puts e at i or above.
func (s *Scheduler) up(i int, e *Event) {
	for i > 0 {
		p := (i - 1) / 4
		if !before(e, s.queue[p]) {
			break
		}
		s.queue[i] = s.queue[p]
		s.queue[i].index = i + 1
		i = p
	}
	s.queue[i] = e
	e.index = i + 1
}

// down puts e at i or below.
func (s *Scheduler) down(i int, e *Event) {
	n := len(s.queue)
	for {
		c := 4*i + 1
		if c >= n {
			break
		}
		m := c
		for k := c + 1; k < min(c+4, n); k++ {
			if before(s.queue[k], s.queue[m]) {
				m = k
			}
		}
		if !before(s.queue[m], e) {
			break
		}
		s.queue[i] = s.queue[m]
		s.queue[i].index = i + 1
		i = m
	}
	s.queue[i] = e
	e.index = i + 1
}
