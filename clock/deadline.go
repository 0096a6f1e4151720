package clock

import (
	"context"
	"sync"
	"time"
)

// deadlineCtx is a context that ends at an instant of a clock other than the system's. The contexts of the standard
// library cannot be given DeadlineExceeded by anything but their own timer, hence a type of our own.
//
// It has the AfterFunc method that package context looks for, so that contexts derived from it are ended by it
// directly, without a goroutine each, and see the right error.
type deadlineCtx struct {
	context.Context // the parent: its values
	deadline        time.Time
	done            chan struct{}

	mu    sync.Mutex
	err   error
	hooks map[*func()]struct{}
}

func (c *face) withTimer(parent context.Context, t time.Time, left time.Duration) (context.Context, context.CancelFunc) {
	ctx := &deadlineCtx{Context: parent, deadline: t, done: make(chan struct{}), hooks: make(map[*func()]struct{})}
	if err := parent.Err(); err != nil {
		ctx.end(err)
		return ctx, func() {}
	}
	if left <= 0 {
		ctx.end(context.DeadlineExceeded)
		return ctx, func() {}
	}
	alarm := &alarm{at: -1, ring: func() { ctx.end(context.DeadlineExceeded) }}
	c.start(alarm, left, 0)
	unhook := context.AfterFunc(parent, func() { ctx.end(parent.Err()) })
	// Whichever ends it, the timer and the tie to the parent go with it.
	ctx.AfterFunc(func() { c.stop(alarm); unhook() })
	return ctx, func() { ctx.end(context.Canceled) }
}

func (c *deadlineCtx) Deadline() (time.Time, bool) {
	if t, ok := c.Context.Deadline(); ok && t.Before(c.deadline) {
		return t, true
	}
	return c.deadline, true
}

func (c *deadlineCtx) Done() <-chan struct{} { return c.done }

func (c *deadlineCtx) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// AfterFunc calls f once the context has ended: by the one who ends it, or in a goroutine of its own if it has ended
// already, because package context calls this with locks held that f takes.
func (c *deadlineCtx) AfterFunc(f func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		go f()
		return func() bool { return false }
	}
	key := &f
	c.hooks[key] = struct{}{}
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		_, ok := c.hooks[key]
		delete(c.hooks, key)
		return ok
	}
}

func (c *deadlineCtx) end(err error) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err = err
	hooks := c.hooks
	c.hooks = nil
	close(c.done)
	c.mu.Unlock()
	for f := range hooks {
		(*f)()
	}
}
