package blackhole

import (
	"errors"
	"os"
	"slices"
	"time"
)

// Read reads what the faults let through.
func (c *Conn) Read(p []byte) (n int, err error) {
	defer func() { c.read.Add(int64(n)) }()
	if err := c.enter(&c.r, "read"); err != nil {
		return 0, err
	}
	defer c.r.leave()
	for {
		if err := c.stopped(&c.r, "read"); err != nil {
			return 0, err
		}
		if len(p) == 0 {
			return 0, nil
		}
		if len(c.r.pending) == 0 && c.r.end == nil {
			n, err := c.fetch(p)
			if n > 0 || err != nil {
				return n, err
			}
			continue
		}
		n, err := c.settle(p)
		if n > 0 || err != nil {
			return n, err
		}
	}
}

// fetch reads from the inner connection into p, which may also be the caller's. It returns what needs no settling.
func (c *Conn) fetch(p []byte) (int, error) {
	c.mu.Lock()
	now := time.Now()
	if c.pipes.gate(now, c.r.d) == hold {
		wait := c.change()
		c.mu.Unlock()
		c.await(&c.r, wait, time.Time{})
		return 0, nil
	}
	c.mu.Unlock()

	n, err := c.readInner(p)
	if err != nil {
		if c.r.end = err; n == 0 {
			return 0, nil
		}
	}
	c.mu.Lock()
	if c.pipes.free(time.Now(), c.r.d) >= int64(n) {
		c.pipes.skip(c.r.d, int64(n))
		c.mu.Unlock()
		c.perform()
		return n, nil
	}
	c.mu.Unlock()
	c.r.pending, c.r.fresh = p[:n], true
	m, err := c.settle(p)
	c.r.pending = slices.Clone(c.r.pending) // p is the caller's
	return m, err
}

// readInner is one Read of the inner connection. Errors that only mean "look again" or "your deadline" do not last.
func (c *Conn) readInner(p []byte) (int, error) {
	c.r.begin(false)
	if c.fateOf(&c.r) != nil { // decided before this read could have been woken
		c.r.finish()
		return 0, nil
	}
	n, err := c.inner.Read(p)
	woken := c.r.finish()
	if err != nil && (woken || errors.Is(err, os.ErrDeadlineExceeded)) {
		if !woken && n == 0 && !c.r.deadline.over() {
			return 0, err // the inner connection keeps time by itself
		}
		err = nil
	}
	return n, err
}

// settle takes bytes from what is pending through the faults into p, or waits. 0 and no error mean: look again.
func (c *Conn) settle(p []byte) (int, error) {
	it := item{p: c.r.pending[:min(len(p), len(c.r.pending))], fresh: c.r.fresh}
	it.end = len(it.p) == 0
	c.mu.Lock()
	d := c.pipes.step(time.Now(), c.r.d, it)
	if it.end && !c.r.ended {
		c.r.ended = true
	}
	dry := it.end && c.w.ended // nothing can ever flow again
	var changed <-chan struct{}
	if d.verb == hold || it.end {
		changed = c.change()
	}
	var lost func(error)
	if it.end && d.verb == drop {
		lost, c.lostEnd = c.lostEnd, nil
	}
	c.mu.Unlock()
	if lost != nil {
		lost(c.r.end)
	}
	c.r.fresh = c.r.fresh && d.verb == hold
	switch {
	case it.end && (d.verb == pass || dry && d.until.IsZero()):
		return 0, c.innerError(&c.r, "read", c.r.end)
	case d.verb == act:
		c.perform()
		return 0, nil
	case d.verb == hold || it.end:
		c.await(&c.r, changed, d.until)
		return 0, nil
	}
	n := 0
	if d.verb == pass {
		n = copy(p, d.out)
	}
	c.r.pending = c.r.pending[d.n:]
	c.perform()
	return n, nil
}
