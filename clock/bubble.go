package clock

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// What can go wrong with a bubble. The errors of Bubble wrap them with the particulars.
var (
	ErrFailed   = errors.New("clock: the test failed in the bubble")
	ErrSkipped  = errors.New("clock: the test was skipped in the bubble")
	ErrPanic    = errors.New("clock: panic in the bubble")
	ErrGoexit   = errors.New("clock: the body of the bubble ended by runtime.Goexit")
	ErrDeadlock = errors.New("clock: deadlock: every goroutine of the bubble waits and no timer is set")
	ErrLeak     = errors.New("clock: goroutines leaked: they still live after the body, its cleanups and the time of grace")
	ErrBudget   = errors.New("clock: the budget of virtual time is used up")
	ErrFrozen   = errors.New("clock: virtual time stands still")
	ErrBusy     = errors.New("clock: virtual time does not move on")
)

// Run runs f in a synctest bubble: package time is virtual for everything in it, whoever wrote it. The T given to f is
// the bubble's; its Cleanup functions run inside the bubble. Whatever goes wrong fails t, with the seed and the command
// that replays the run, and other tests go on: a panic of the body, a deadlock, leaked goroutines, which are named, and
// time that stands still (see [Patience]).
//
// A panic in another goroutine than the body's, or in a cleanup, ends the process, as in any Go test.
func Run(t *testing.T, f func(t *testing.T), opts ...Option) {
	t.Helper()
	c, err := configure(opts)
	if err == nil {
		err = enter(t, f, c)
	}
	switch {
	case err == nil:
	case err == ErrSkipped:
		t.SkipNow()
	default:
		t.Fatalf("%v\nseed %#x; to replay: %s", err, c.seed, Replay(t.Name(), c.seed))
	}
}

// Bubble is Run for callers who want to know what went wrong instead of failing: everything comes back as an error,
// one of the Err values above with its particulars, several joined. It may be called from many goroutines at once
// and outside of tests; t is only asked for its name and may be nil.
//
// The T given to f stands alone: FailNow and the like end the body with [ErrFailed] and leave t as it is, but what is
// logged to it is not shown. Log to t, or keep it.
func Bubble(t *testing.T, f func(t *testing.T), opts ...Option) error {
	c, err := configure(opts)
	if err != nil {
		return err
	}
	err = enter(new(testing.T), f, c)
	if err == nil {
		return nil
	}
	if t != nil {
		return fmt.Errorf("%w\nseed %#x; to replay: %s", err, c.seed, Replay(t.Name(), c.seed))
	}
	return fmt.Errorf("%w\nseed %#x", err, c.seed)
}

// bubble is one run. What is inside and what is outside share the fields below, never a channel.
type bubble struct {
	config
	id      atomic.Int64 // the runtime's number
	harness atomic.Int64 // the goroutine that waits for the body
	beats   atomic.Uint64

	mu      sync.Mutex
	errs    []error
	stopped string // who ended the body by FailNow, under mu
}

func (b *bubble) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.errs = append(b.errs, err)
}

func (b *bubble) failed(kind error) bool {
	return errors.Is(b.result(), kind)
}

// result is nil, one error as it is, or several joined.
func (b *bubble) result() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.errs) == 1 {
		return b.errs[0]
	}
	return errors.Join(b.errs...)
}

// enter runs f in a bubble that a goroutine of its own drives, so that one whose time stands still can be left behind.
func enter(t *testing.T, f func(t *testing.T), c config) error {
	if f == nil {
		return errors.New("clock: a bubble needs a function to run: it is nil")
	}
	if InBubble() {
		return errors.New("clock: a bubble cannot be started inside a bubble: call Run or Bubble from outside")
	}
	b := &bubble{config: c}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer b.recoverDriver()
		// Returns by Goexit if the bubble's T failed.
		synctest.Test(t, func(t *testing.T) { b.inside(t, f) })
	}()
	if err := b.watch(done); err != nil {
		return err
	}
	return b.result()
}

// watch waits for the end of the bubble, in real time.
func (b *bubble) watch(done <-chan struct{}) error {
	if b.patience == 0 {
		<-done
		return nil
	}
	look := time.NewTicker(max(b.patience/samplesPerPatience, time.Millisecond))
	defer look.Stop()
	dog := newWatchdog(b.patience, b.busy, time.Now())
	for {
		select {
		case <-done:
			return nil
		case <-look.C:
			id := b.id.Load()
			if id == 0 {
				continue
			}
			if err := dog.sample(time.Now(), goroutines(id), b.beats.Load()); err != nil {
				return err
			}
		}
	}
}

// recoverDriver turns the runtime's word on a dead bubble into an error that names who is left in it.
func (b *bubble) recoverDriver() {
	r := recover()
	if r == nil {
		return
	}
	text := fmt.Sprint(r)
	if !strings.HasPrefix(text, "deadlock: ") {
		b.fail(fmt.Errorf("%w: %s\n%s", ErrPanic, text, debug.Stack()))
		return
	}
	kind := ErrDeadlock
	if strings.Contains(text, "main bubble goroutine has exited") {
		kind = ErrLeak
	}
	if kind == ErrLeak && b.failed(ErrBudget) {
		return // they have been named
	}
	b.fail(fmt.Errorf("%w:%s", kind, list(b.inhabitants())))
}

// inhabitants are the goroutines of the bubble without those that only run it.
func (b *bubble) inhabitants() []goroutine {
	var in []goroutine
	for _, g := range goroutines(b.id.Load()) {
		if g.id != b.harness.Load() && g.state != "synctest.Run" && !strings.Contains(g.stack, "testing/synctest.testingSynctestTest") &&
			!strings.Contains(g.stack, "testing.testingSynctestTest") {
			in = append(in, g)
		}
	}
	return in
}

// inside runs on the goroutine of the bubble's T. The body has one of its own, so that nothing it does (Goexit, a panic)
// ends this one.
func (b *bubble) inside(t *testing.T, f func(t *testing.T)) {
	goroutine, id := self()
	b.harness.Store(goroutine)
	b.id.Store(id)
	t.Cleanup(func() { b.last(t) }) // registered first: runs after all others
	if !b.start.IsZero() {
		time.Sleep(time.Until(b.start))
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		b.body(t, f)
	}()
	b.await(t, ended)
}

// await waits for the body, within the budget, and gives the watchdog its heartbeats: a timer that runs out at doubled
// intervals of virtual time. It stops after 34 years, so that the runtime can still tell that nothing is left to happen.
func (b *bubble) await(t *testing.T, ended <-chan struct{}) {
	beat := time.NewTimer(time.Millisecond)
	defer beat.Stop()
	var over <-chan time.Time
	if b.budget > 0 {
		budget := time.NewTimer(b.budget)
		defer budget.Stop()
		over = budget.C
	}
	for next := time.Millisecond; ; {
		select {
		case <-ended:
			return
		case <-over:
			b.fail(fmt.Errorf("%w: the body has not returned after %v. Its goroutines stand here:%s", ErrBudget, b.budget, list(b.inhabitants())))
			t.Fail() // its cleanups show what they show of a failed test
			return
		case <-beat.C:
			b.beats.Add(1)
			if next <<= 1; next < 1<<40*time.Millisecond {
				beat.Reset(next)
			}
		}
	}
}

func (b *bubble) body(t *testing.T, f func(t *testing.T)) {
	returned := false
	defer func() {
		if r := recover(); r != nil {
			b.fail(fmt.Errorf("%w: %v\n%s", ErrPanic, r, debug.Stack()))
			return
		}
		if returned {
			return
		}
		if t.Failed() {
			b.stop(exitedAt())
		} else if !t.Skipped() {
			b.fail(fmt.Errorf("%w, called by %v", ErrGoexit, exitedAt()))
		}
	}()
	f(t)
	returned = true
}

// stop notes who stopped the body. One that the budget left behind may do so at
// any time.
func (b *bubble) stop(by frame) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopped = fmt.Sprintf(", and the body was stopped by %v", by)
}

// exitedAt is who called Goexit, while the deferred functions run.
func exitedAt() frame {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(0, pcs[:])])
	for exiting := false; ; {
		f, more := frames.Next()
		if exiting && !strings.HasPrefix(f.Function, "testing.") {
			return frame{f.Function, f.File, f.Line}
		}
		exiting = exiting || f.Function == "runtime.Goexit"
		if !more {
			return frame{function: "an unknown function"}
		}
	}
}

// last runs when everything else has: it gives the goroutines their time to end, and looks at how the test came out.
func (b *bubble) last(t *testing.T) {
	if b.grace > 0 {
		time.Sleep(b.grace)
	}
	switch {
	case b.failed(ErrBudget):
	case t.Failed():
		b.mu.Lock()
		stopped := b.stopped
		b.mu.Unlock()
		b.fail(fmt.Errorf("%w%s", ErrFailed, stopped))
	case t.Skipped():
		b.fail(ErrSkipped)
	}
}
