package clock

import (
	"context"
	"time"
)

// Clock is the time source of a program. [System] is the machine's clock (virtual inside a bubble), [Virtual] is
// moved by hand, [Skewed] is a clock that is wrong.
//
// The methods mean what the functions of package time and context with the same names mean. A time-out that
// expires ends its context with context.DeadlineExceeded, whichever clock it was measured on.
type Clock interface {
	// Now is the present instant.
	Now() time.Time
	// Sleep returns after d; at once if d ≤ 0.
	Sleep(d time.Duration)
	// NewTimer sends the time on its channel once, after d.
	NewTimer(d time.Duration) *Timer
	// AfterFunc calls f in a goroutine of its own after d. The timer's C is nil.
	AfterFunc(d time.Duration, f func()) *Timer
	// NewTicker sends the time on its channel every d. It panics if d ≤ 0, as time.NewTicker does.
	NewTicker(d time.Duration) *Ticker
	// WithTimeout is WithDeadline(ctx, Now().Add(d)).
	WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc)
	// WithDeadline ends the context when the clock reads t, or when ctx ends or the function returned is called.
	WithDeadline(ctx context.Context, t time.Time) (context.Context, context.CancelFunc)
}

// Timer is one event of a [Clock]; it behaves as a time.Timer of Go 1.23 and later: after Stop or Reset returns, no
// value of the earlier setting is received.
type Timer struct {
	// C receives the time when the timer runs out; nil for a timer made by AfterFunc.
	C     <-chan time.Time
	stop  func() bool
	reset func(time.Duration) bool
}

// Stop prevents the timer from firing. It reports whether it did so: false if the timer had run out or been stopped.
func (t *Timer) Stop() bool { return t.stop() }

// Reset lets the timer run out after d from now. It reports whether the timer had been active.
func (t *Timer) Reset(d time.Duration) bool { return t.reset(d) }

// Ticker sends the time at intervals; it behaves as a time.Ticker: a slow receiver loses ticks.
type Ticker struct {
	// C receives the time at each tick. It holds one value.
	C     <-chan time.Time
	stop  func()
	reset func(time.Duration)
}

// Stop ends the ticks. It does not close C.
func (t *Ticker) Stop() { t.stop() }

// Reset starts the ticker anew with the period d. It panics if d ≤ 0.
func (t *Ticker) Reset(d time.Duration) { t.reset(d) }

// System is the clock of package time: the machine's, and inside a bubble the bubble's.
var System Clock = system{}

type system struct{}

func (system) Now() time.Time        { return time.Now() }
func (system) Sleep(d time.Duration) { time.Sleep(d) }

func (system) NewTimer(d time.Duration) *Timer {
	t := time.NewTimer(d)
	return &Timer{C: t.C, stop: t.Stop, reset: t.Reset}
}

func (system) AfterFunc(d time.Duration, f func()) *Timer {
	t := time.AfterFunc(d, f)
	return &Timer{stop: t.Stop, reset: t.Reset}
}

func (system) NewTicker(d time.Duration) *Ticker {
	t := time.NewTicker(d)
	return &Ticker{C: t.C, stop: t.Stop, reset: t.Reset}
}

func (system) WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d)
}

func (system) WithDeadline(ctx context.Context, t time.Time) (context.Context, context.CancelFunc) {
	return context.WithDeadline(ctx, t)
}
