package clock

import (
	"fmt"
	"sync"
	"sync/atomic"
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
// Events that nobody notices for a while are exempt, see [Scheduler.ScheduleLazily].
//
// Outside a bubble it runs in real time: events that are due run in the same
// order, at once.
//
// All times are durations since the scheduler was made. Methods may be called
// from any goroutine, all but CatchUp also from within a Handler.
type Scheduler struct {
	epoch  time.Time
	bubble bool
	lazy   atomic.Int64 // events with slack that are queued or running

	turn sync.Mutex // held while a handler runs; taken before mu

	mu      sync.Mutex
	queue   queue
	seq     uint64
	starter *time.Timer   // runs fire, when there is no worker
	worker  *time.Timer   // wakes the worker, nil when there is none
	stop    chan struct{} // closed by Close
	armed   time.Duration // when either goes off; never if idle
	last    time.Duration // when an event last ran
	running bool
	closed  bool
	ran     uint64
}

// linger is how much virtual time a bubble's worker waits for more to do. A
// goroutine that stays has its stack already; one that stayed for ever would keep
// alive a bubble whose network nobody closed.
const linger = time.Second

const never = time.Duration(1<<63 - 1)

// farthest is the latest time that an event happens at: what is added to it on the way still is a duration.
const farthest = never / 2

// Key orders the events of one instant: by Name, then by Kind. Names are made
// of what a thing is called (a path, a connection), never of the order in which
// things arrived: arrival order is what differs between two runs.
type Key struct {
	Name string
	Kind uint8
}

// A Handler is what happens when an event is due. It may call every method of the
// scheduler but CatchUp, and must not block.
type Handler interface {
	Fire(now time.Duration)
}

// HandlerFunc makes a function a Handler.
type HandlerFunc func(now time.Duration)

// Fire calls f.
func (f HandlerFunc) Fire(now time.Duration) { f(now) }

// An Event is one entry of the queue. It belongs to whoever made it, is in the
// queue at most once, and can be used again after it fired: a connection's
// timer is one Event for the connection's whole life.
type Event struct {
	Key     Key
	Handler Handler

	want  time.Duration // when it is to happen
	at    time.Duration // want, in a bubble a nanosecond later
	slack time.Duration // how much later than at nobody notices
	seq   uint64
	index int // in the queue, 1-based; 0 when not queued
}

// At is the time that the event was last scheduled for.
func (e *Event) At() time.Duration { return e.want }

// NewScheduler makes an empty queue whose time starts now. It belongs to the
// bubble in which it was made; close it before the bubble's function returns, or
// its goroutine may be found to be left.
func NewScheduler() *Scheduler {
	return &Scheduler{epoch: time.Now(), bubble: InBubble(), armed: never, last: -1, stop: make(chan struct{})}
}

// Epoch is the time at which the scheduler was made.
func (s *Scheduler) Epoch() time.Time { return s.epoch }

// Now is the time since the scheduler was made.
func (s *Scheduler) Now() time.Duration { return time.Since(s.epoch) }

// Schedule puts e into the queue for the time at, or moves it there when it is
// queued already. A time that has passed means as soon as possible, in the order
// of the times that were asked for; one that is more than 146 years away means in
// 146 years. It reports whether e was accepted: a closed scheduler takes nothing.
//
// In a bubble an event happens a nanosecond after its time at the earliest: all
// that is awake comes to rest first, and what it still schedules takes part in the
// order; and a test that sleeps until a round time and calls synctest.Wait has
// that instant to itself.
//
// An event without a handler or without a key's name is a mistake in the
// program and panics.
func (s *Scheduler) Schedule(e *Event, at time.Duration) bool { return s.ScheduleLazily(e, at, 0) }

// ScheduleLazily is [Scheduler.Schedule] for an event that nobody can notice
// until slack after its time: a packet that leaves now and arrives in 10 ms. It
// runs in its place in the order and with its own time, but needs no instant of
// the bubble to itself: it may run as late as that, unless somebody calls
// [Scheduler.CatchUp] before. The handler must not wake a goroutine, and
// whatever it schedules must lie slack or more after its time. Outside a bubble
// there is no slack.
func (s *Scheduler) ScheduleLazily(e *Event, at, slack time.Duration) bool {
	if e.Handler == nil || e.Key.Name == "" {
		panic(fmt.Sprintf("clock: Scheduler.Schedule: an event needs a handler and a key with a name, have key %q", e.Key.Name))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	if e.index != 0 {
		s.dequeue(e)
	}
	e.want, e.at, e.slack = at, min(at, farthest), 0
	if s.bubble {
		e.at++
		if slack > 0 {
			e.slack = slack + 1 // what it leads to is a nanosecond late as well
			s.lazy.Add(1)
		}
	}
	s.seq++
	e.seq = s.seq
	s.queue.push(e)
	if !s.running {
		s.arm(e.at+e.slack, s.Now())
	}
	return true
}

// CatchUp runs the events with slack whose time has passed. Who looks at, or
// changes, what such events change calls it before, outside of handlers and
// without a lock that a handler takes.
func (s *Scheduler) CatchUp() {
	if s.lazy.Load() == 0 {
		return
	}
	s.turn.Lock()
	defer s.turn.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.Now()
	for len(s.queue) > 0 && s.queue[0].slack > 0 && s.queue[0].at < now {
		s.run(s.queue[0].Event, now)
	}
}

// Cancel takes e out of the queue. It reports whether e was in it.
func (s *Scheduler) Cancel(e *Event) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.index == 0 {
		return false
	}
	s.dequeue(e)
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

// Close drops every event and stops the timers. An event that is running
// finishes. Closing twice does nothing.
func (s *Scheduler) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	close(s.stop)
	for _, e := range s.queue {
		e.index = 0
	}
	s.queue = nil
	s.lazy.Store(0)
	if s.starter != nil {
		s.starter.Stop()
	}
	s.armed = never
}

// dequeue takes e out of the queue before its time.
func (s *Scheduler) dequeue(e *Event) {
	s.queue.remove(e)
	if e.slack > 0 {
		s.lazy.Add(-1)
	}
}

// arm sets the timer for at or earlier, in a bubble a nanosecond from now at the
// earliest.
func (s *Scheduler) arm(at, now time.Duration) {
	if s.bubble {
		at = max(at, now+1)
	} else {
		at = max(at, now)
	}
	if s.armed <= at {
		return
	}
	s.armed = at
	switch {
	case s.worker != nil:
		s.worker.Reset(at - now)
	case s.starter != nil:
		s.starter.Reset(at - now)
	case s.bubble:
		s.starter = time.AfterFunc(at-now, s.work)
	default:
		s.starter = time.AfterFunc(at-now, s.fire)
	}
}

// next is when the queue wants to be looked at again: the head's time and slack,
// or the time of what follows it, if that is earlier.
func (s *Scheduler) next() time.Duration {
	if len(s.queue) == 0 {
		return never
	}
	at := s.queue[0].at + s.queue[0].slack
	for _, e := range s.queue.afterHead() {
		at = min(at, e.at)
	}
	return at
}

// fire runs what is due, in real time.
func (s *Scheduler) fire() {
	s.turn.Lock()
	defer s.turn.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begin()
	now := s.Now()
	for len(s.queue) > 0 && s.queue[0].at <= now {
		s.run(s.queue[0].Event, now)
		now = s.Now()
	}
	s.end(now)
}

// work is the goroutine of a scheduler in a bubble. It comes when there is
// something to do and goes when there is nothing for a while.
func (s *Scheduler) work() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.worker != nil {
		return
	}
	alarm := time.NewTimer(linger)
	defer alarm.Stop()
	s.worker = alarm
	for !s.closed {
		s.begin()
		s.mu.Unlock()
		rest()
		s.turn.Lock()
		s.mu.Lock()
		now := s.Now()
		did := s.runDue(now)
		s.turn.Unlock()
		if s.next() > now+linger {
			if !did {
				break
			}
			s.arm(now+linger, now)
		}
		s.end(now)
		s.mu.Unlock()
		select {
		case <-alarm.C:
		case <-s.stop:
		}
		s.mu.Lock()
	}
	s.worker = nil
	s.end(s.Now())
}

// begin says that the queue is being looked at: what is scheduled meanwhile arms
// no timer.
func (s *Scheduler) begin() { s.running, s.armed = true, never }

// end arms the timer for what is left.
func (s *Scheduler) end(now time.Duration) {
	s.running = false
	if len(s.queue) > 0 {
		s.arm(s.next(), now)
	}
}

// runDue runs what is due, up to the first event that has this instant to itself.
func (s *Scheduler) runDue(now time.Duration) (did bool) {
	for len(s.queue) > 0 && s.queue[0].at <= now {
		e := s.queue[0].Event
		whole := e.slack == 0
		if whole && s.last == now {
			break
		}
		s.run(e, now)
		did = true
		if whole {
			break
		}
	}
	return did
}

// run runs e. An event that was put off runs at its own time, but not before
// what has run already.
func (s *Scheduler) run(e *Event, now time.Duration) {
	lazy := e.slack > 0
	if lazy {
		now = max(e.at, s.last)
	}
	s.queue.remove(e)
	s.ran++
	s.call(e, now)
	if lazy {
		s.lazy.Add(-1)
	} else {
		s.last = now
	}
}

// call lets e happen without the lock, and has it again however that ends: the
// caller's deferred calls count on it. A handler must return; Goexit would end
// the worker, and with it the network, without a word.
func (s *Scheduler) call(e *Event, now time.Duration) {
	returned := false
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		if returned {
			return
		}
		r := recover()
		if r == nil {
			r = fmt.Sprintf("clock: Scheduler: the handler of event %q called runtime.Goexit, as FailNow and require do", e.Key.Name)
		}
		panic(r)
	}()
	e.Handler.Fire(now)
	returned = true
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
