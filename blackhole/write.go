package blackhole

import (
	"errors"
	"net"
	"time"
)

// Write writes p through the faults. It returns when all of p has gone on or vanished.
func (c *Conn) Write(p []byte) (total int, err error) {
	defer func() { c.wrote.Add(int64(total)) }()
	if err := c.enter(&c.w, "write"); err != nil {
		return 0, err
	}
	defer c.w.leave()
	fresh := true
	for {
		if err := c.stopped(&c.w, "write"); err != nil {
			return total, err
		}
		if len(p) == total {
			return total, nil
		}
		n, err := c.push(p[total:], &fresh)
		if total += n; err != nil || total == len(p) {
			return total, err
		}
	}
}

// push settles the next bytes of p, or waits. It returns how many are settled.
func (c *Conn) push(p []byte, fresh *bool) (int, error) {
	c.w.begin(false) // before the decision, so that a change after it wakes the write
	c.mu.Lock()
	now := time.Now()
	var d decision
	if c.pipes.free(now, c.w.d) >= int64(len(p)) {
		c.pipes.skip(c.w.d, int64(len(p)))
		d = decision{n: len(p), out: p}
	} else {
		d = c.pipes.step(now, c.w.d, item{p: p, fresh: *fresh})
	}
	var changed <-chan struct{}
	if d.verb == hold {
		changed = c.change()
	}
	c.mu.Unlock()
	*fresh = *fresh && d.verb == hold
	if d.verb != pass {
		c.w.finish()
	}
	switch d.verb {
	case hold:
		c.await(&c.w, changed, d.until)
		return 0, nil
	case act:
		c.perform()
		return 0, nil
	case drop:
		c.perform()
		return d.n, nil
	}
	n, err := c.writeInner(d.out)
	c.perform()
	return n, err
}

// writeInner writes bytes that the faults have let through. If a fault becomes active while the inner connection
// blocks, it decides about the rest: the hole swallows it, a stall holds it.
func (c *Conn) writeInner(p []byte) (int, error) {
	total := 0
	for {
		n, err := c.inner.Write(p[total:])
		total += n
		woken := c.w.finish()
		if total == len(p) {
			return total, nil
		}
		if err != nil && !woken {
			return total, c.innerError(&c.w, "write", err)
		}
		swallowed, err := c.regate()
		if swallowed {
			return len(p), nil
		}
		if err != nil {
			return total, err
		}
	}
}

// regate asks what becomes of bytes that were on their way when a fault became active, and waits while it holds them.
func (c *Conn) regate() (swallowed bool, err error) {
	for {
		if err := c.stopped(&c.w, "write"); err != nil {
			return false, err
		}
		c.w.begin(false)
		c.mu.Lock()
		gate := c.pipes.gate(time.Now(), c.w.d)
		changed := c.change()
		c.mu.Unlock()
		if gate == pass {
			return false, nil
		}
		c.w.finish()
		if gate == drop {
			return true, nil
		}
		c.await(&c.w, changed, time.Time{})
	}
}

// endWriting is CloseWrite: the end of the stream goes through the faults.
func (c *Conn) endWriting() error {
	if err := c.enter(&c.w, "close"); err != nil {
		return err
	}
	defer c.w.leave()
	for {
		if err := c.stopped(&c.w, "close"); err != nil {
			if errors.Is(err, net.ErrClosed) || c.fateOf(&c.w) == nil {
				return err
			}
			return nil // an effect has ended the stream already
		}
		c.mu.Lock()
		d := c.pipes.step(time.Now(), c.w.d, item{end: true})
		changed := c.change()
		if d.verb != act && !c.w.ended {
			c.w.ended = true
			c.broadcast()
			changed = c.change()
		}
		c.mu.Unlock()
		switch d.verb {
		case pass:
			return c.inner.(halfCloser).CloseWrite()
		case drop:
			return nil
		case act:
			c.perform()
		case hold:
			c.await(&c.w, changed, d.until)
		}
	}
}
