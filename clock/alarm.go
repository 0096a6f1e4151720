package clock

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// alarms is what Virtual and Skewed share: the timers of one clock in the order in which they run out, those of one
// instant in the order in which they were set. Instants are durations since the clock was made.
//
// The owner says what instant it is, how the clock shows it, and is told when the earliest alarm may have changed; all
// three are called with mu held. Ticks are sent under it, so that none is received after a Stop; functions are called
// without it, so that what they do may use the clock.
type alarms struct {
	mu      sync.Mutex
	queue   alarmHeap
	set     uint64
	elapsed func() time.Duration
	show    func() time.Time
	rearm   func()
}

type alarm struct {
	when   time.Duration
	seq    uint64
	at     int           // index in the queue; -1 when it is not set
	period time.Duration // > 0: a ticker
	tick   chan time.Time
	ring   func()
}

// call does what the alarm does beside its tick.
func (a *alarm) call() {
	if a.ring != nil {
		a.ring()
	}
}

// drain takes back a tick that nobody received.
func (a *alarm) drain() {
	select {
	case <-a.tick:
	default:
	}
}

// start sets the alarm to ring after d, and every period from then on if that is > 0. It reports whether it had been set.
func (q *alarms) start(a *alarm, d, period time.Duration) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	was := q.remove(a)
	a.drain()
	a.period = period
	q.push(a, q.elapsed()+max(d, 0))
	q.rearm()
	return was
}

func (q *alarms) stop(a *alarm) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	was := q.remove(a)
	a.drain()
	q.rearm()
	return was
}

func (q *alarms) push(a *alarm, when time.Duration) {
	q.set++
	a.when, a.seq = when, q.set
	heap.Push(&q.queue, a)
}

func (q *alarms) remove(a *alarm) bool {
	if a.at < 0 {
		return false
	}
	heap.Remove(&q.queue, a.at)
	return true
}

// next is the instant of the earliest alarm.
func (q *alarms) next() (time.Duration, bool) {
	if len(q.queue) == 0 {
		return 0, false
	}
	return q.queue[0].when, true
}

// pop takes out the earliest alarm if it is due at now; a ticker is set again for its next period.
func (q *alarms) pop(now time.Duration) *alarm {
	if when, ok := q.next(); !ok || when > now {
		return nil
	}
	a := heap.Pop(&q.queue).(*alarm)
	if a.period > 0 {
		// As with time.Ticker, ticks that nobody could take are left out, not made up for.
		late := (now - a.when) / a.period
		q.push(a, a.when+(late+1)*a.period)
	}
	if a.tick != nil {
		select {
		case a.tick <- q.show():
		default:
		}
	}
	return a
}

type alarmHeap []*alarm

func (h alarmHeap) Len() int { return len(h) }
func (h alarmHeap) Less(i, j int) bool {
	if h[i].when != h[j].when {
		return h[i].when < h[j].when
	}
	return h[i].seq < h[j].seq
}
func (h alarmHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}
func (h *alarmHeap) Push(x any) {
	a := x.(*alarm)
	a.at = len(*h)
	*h = append(*h, a)
}
func (h *alarmHeap) Pop() any {
	last := len(*h) - 1
	a := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	a.at = -1
	return a
}

// face gives a clock its timers from its alarms.
type face struct {
	*alarms
	spawn func(f func()) // how an AfterFunc's function is called
}

// Now is the time the clock shows.
func (c *face) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.show()
}

// Sleep returns when d has passed on this clock.
func (c *face) Sleep(d time.Duration) {
	if d > 0 {
		<-c.NewTimer(d).C
	}
}

// NewTimer is time.NewTimer on this clock.
func (c *face) NewTimer(d time.Duration) *Timer {
	return c.timer(d, &alarm{at: -1, tick: make(chan time.Time, 1)})
}

// AfterFunc is time.AfterFunc on this clock.
func (c *face) AfterFunc(d time.Duration, f func()) *Timer {
	return c.timer(d, &alarm{at: -1, ring: func() { c.spawn(f) }})
}

func (c *face) timer(d time.Duration, a *alarm) *Timer {
	c.start(a, d, 0)
	return &Timer{
		C:     a.tick,
		stop:  func() bool { return c.stop(a) },
		reset: func(d time.Duration) bool { return c.start(a, d, 0) },
	}
}

// NewTicker is time.NewTicker on this clock. It panics if d ≤ 0.
func (c *face) NewTicker(d time.Duration) *Ticker {
	a := &alarm{at: -1, tick: make(chan time.Time, 1)}
	reset := func(d time.Duration) {
		if d <= 0 {
			panic("clock: ticker: the period " + d.String() + " is not positive")
		}
		c.start(a, d, d)
	}
	reset(d)
	return &Ticker{C: a.tick, stop: func() { c.stop(a) }, reset: reset}
}

// WithTimeout is context.WithTimeout on this clock.
func (c *face) WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return c.withTimer(ctx, c.Now().Add(d), d)
}

// WithDeadline is context.WithDeadline on this clock. As in the standard library, the time left is worked out once, now.
func (c *face) WithDeadline(ctx context.Context, t time.Time) (context.Context, context.CancelFunc) {
	return c.withTimer(ctx, t, t.Sub(c.Now()))
}
