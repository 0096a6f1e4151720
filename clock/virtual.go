package clock

import (
	"fmt"
	"time"
)

// Virtual is a clock that stands still until it is moved: for tests that want to say themselves what time it is. Timers
// ring on the goroutine that moves it, in order of time and, at one instant, in the order in which they were set; the
// function of an AfterFunc is called there too, and must therefore not wait for the clock to move on. When a
// moving call returns, everything due has happened: channels hold their times, contexts have ended.
//
// It may be used from several goroutines; only one at a time may move it.
type Virtual struct {
	face
	start  time.Time
	offset time.Duration // the present instant; guarded by face.mu
}

var _ Clock = (*Virtual)(nil)

// NewVirtual is a clock that reads start.
func NewVirtual(start time.Time) *Virtual {
	v := &Virtual{start: start.Round(0)}
	v.face = face{
		alarms: &alarms{
			elapsed: func() time.Duration { return v.offset },
			show:    func() time.Time { return v.start.Add(v.offset) },
			rearm:   func() {}, // whoever moves the clock looks for what is due
		},
		spawn: func(f func()) { f() },
	}
	return v
}

// Advance moves the clock by d; on the way every timer that is due rings at its own instant, also those set on the way.
// It panics if d is negative: time does not go back.
func (v *Virtual) Advance(d time.Duration) {
	if d < 0 {
		panic("clock: Virtual.Advance: negative duration " + d.String())
	}
	v.mu.Lock()
	end := v.after(d)
	v.mu.Unlock()
	for v.step(end) {
	}
	v.mu.Lock()
	v.offset = max(v.offset, end)
	v.mu.Unlock()
}

// Step moves the clock to its next timer and lets that one ring. It reports false, and moves nothing, if none is set.
func (v *Virtual) Step() bool { return v.step(1<<63 - 1) }

// Run steps until no timer is left. If that would move the clock by more than budget (a ticker never ends), it moves
// it by the budget and returns an error that says how many timers are left.
func (v *Virtual) Run(budget time.Duration) error {
	v.mu.Lock()
	end := v.after(budget)
	v.mu.Unlock()
	for v.step(end) {
	}
	if n := v.Pending(); n > 0 {
		v.mu.Lock()
		v.offset = max(v.offset, end)
		v.mu.Unlock()
		return fmt.Errorf("clock: Virtual.Run: %d timers left after %v", n, budget)
	}
	return nil
}

// after is d from now, or the end of time.
func (v *Virtual) after(d time.Duration) time.Duration {
	if d > never-v.offset {
		return never
	}
	return v.offset + d
}

// Pending is the number of timers, tickers, sleepers and context time-outs that are set.
func (v *Virtual) Pending() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.queue)
}

func (v *Virtual) step(end time.Duration) bool {
	v.mu.Lock()
	when, ok := v.next()
	if !ok || when > end {
		v.mu.Unlock()
		return false
	}
	v.offset = max(v.offset, when)
	a := v.pop(v.offset)
	v.mu.Unlock()
	a.call()
	return true
}
