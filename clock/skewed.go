package clock

import (
	"fmt"
	"time"
)

// maxDrift in ppm keeps scale free of overflow; no clock is that wrong.
const maxDrift = 500_000

// Skew is how wrong a clock is.
type Skew struct {
	// Offset is what the clock is ahead of its base; negative: behind.
	Offset time.Duration
	// Drift is its error of rate in parts per million: +50 gains 50 µs in a second of the base. A quartz is within ±100.
	// It must be within ±500 000: half the base's rate to one and a half times.
	Drift int64
}

// Skewed is the clock of a host that has the wrong time. Its timers run at its own rate.
//
// Like a machine it has two times. What Now says is the wall clock: Offset and Jump move it. What timers, time-outs and
// tickers go by is monotonic: only the rate changes it, a jump makes no timer early or late. The times of Now carry
// no monotonic reading, so a jump shows in Sub and Since, as it does in any time that was stored or sent.
//
// Pause stops the host, not the time: Now runs on, but no timer fires. Those that ran out fire at Resume, in order.
type Skewed struct {
	face
	base   Clock
	drift  int64
	origin time.Time     // of the base, when this clock was made
	wall   time.Duration // what Now is ahead of base beside the drift
	paused bool
	alarm  *Timer        // of the base, for the earliest alarm
	armed  time.Duration // the instant the timer is set for
}

var _ Clock = (*Skewed)(nil)

// NewSkewed is a clock that follows base with a skew. It panics if base is nil or the drift is not possible.
func NewSkewed(base Clock, s Skew) *Skewed {
	if base == nil {
		panic("clock: NewSkewed: nil base")
	}
	if s.Drift < -maxDrift || s.Drift > maxDrift {
		panic(fmt.Sprintf("clock: NewSkewed: a drift of %d ppm is not within ±%d", s.Drift, maxDrift))
	}
	c := &Skewed{base: base, drift: s.Drift, origin: base.Now(), wall: s.Offset}
	c.face = face{
		alarms: &alarms{
			elapsed: c.monotonic,
			show:    func() time.Time { return c.origin.Round(0).Add(c.monotonic() + c.wall) },
			rearm:   c.rearm,
		},
		spawn: func(f func()) { go f() },
	}
	return c
}

// Jump sets the clock forward by d, or back if d is negative. Timers do not notice.
func (c *Skewed) Jump(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall += d
}

// Pause holds back every timer of this clock until Resume.
func (c *Skewed) Pause() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paused = true
	c.rearm()
}

// Resume lets timers run again; those that ran out in the meantime fire at once.
func (c *Skewed) Resume() {
	c.mu.Lock()
	c.paused = false
	c.mu.Unlock()
	c.due()
}

// monotonic is the time since the clock was made, at its own rate.
func (c *Skewed) monotonic() time.Duration {
	e := c.base.Now().Sub(c.origin)
	return e + scale(e, c.drift, 1e6)
}

// rearm sets the one timer of the base for the earliest alarm.
func (c *Skewed) rearm() {
	when, ok := c.next()
	if !ok || c.paused {
		if c.alarm != nil {
			c.alarm.Stop()
			c.armed = 0
		}
		return
	}
	if c.armed == when && when > 0 {
		return
	}
	// Rounded up: a timer may be late by a nanosecond, never early.
	d := max(when-c.monotonic(), 0)
	d = d - scale(d, c.drift, 1e6+c.drift)
	if c.drift != 0 {
		d++
	}
	c.armed = when
	if c.alarm == nil {
		c.alarm = c.base.AfterFunc(d, c.due)
		return
	}
	c.alarm.Reset(d)
}

// due lets everything ring that has run out.
func (c *Skewed) due() {
	for {
		c.mu.Lock()
		var a *alarm
		if !c.paused {
			a = c.pop(c.monotonic())
		}
		if a == nil {
			c.armed = 0
			c.rearm()
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
		a.call()
	}
}

// scale is d × num / den; it does not overflow while |num| ≤ den.
func scale(d time.Duration, num, den int64) time.Duration {
	whole, rest := int64(d)/den, int64(d)%den
	return time.Duration(whole*num + rest*num/den)
}
