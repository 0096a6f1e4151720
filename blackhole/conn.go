package blackhole

import (
	"cmp"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Conn is a connection with faults on it, made by Client, Server, Listener or Dialer. It behaves as its inner
// connection does as long as no fault is active. Deadlines, moved at any time, hold also while a fault blocks; Close
// ends everything that is blocked with net.ErrClosed.
type Conn struct {
	inner       net.Conn
	age         uint64
	closed      chan struct{}
	r, w        half
	read, wrote atomic.Int64 // bytes that the holder was given, and that it got rid of

	mu       sync.Mutex // guards what follows; never held while something blocks
	pipes    pipeline
	changed  chan struct{} // closed at the next change; made on demand
	alarm    *time.Timer
	alarmAt  time.Time
	shut     bool
	switches []*Switch
	lostEnd  func(error) // see OnLostEnd; nil once it has been called
}

// half is one direction of a Conn: the stream its holder reads or the one it writes.
type half struct {
	d        Direction
	turn     chan struct{} // holds a token while an operation is going on
	deadline deadline
	setInner func(time.Time) error

	mu     sync.Mutex // guards what follows and the inner deadline
	at     time.Time  // the holder's deadline
	woken  bool       // the inner deadline was put in the past to end a blocked operation
	busy   bool       // an operation on the inner connection is going on
	splice bool       // that operation has bytes in the kernel that an interruption would lose

	// The rest belongs to the holder of the turn, but for the fate, which is guarded by Conn.mu.
	pending []byte // read: taken from the inner connection and not yet settled
	fresh   bool   // read: pending is a new piece
	end     error  // read: how the inner stream ended
	ended   bool   // guarded by Conn.mu: the stream has ended on its sender's side
	fate    error  // what an effect has decided for all later operations
}

var ages atomic.Uint64

func sortByAge(conns []*Conn) {
	slices.SortFunc(conns, func(a, b *Conn) int { return cmp.Compare(a.age, b.age) })
}

func start(inner net.Conn, out Direction, faults []*Fault) *Conn {
	c := &Conn{inner: inner, age: ages.Add(1), closed: make(chan struct{})}
	c.pipes = newPipeline(faults, time.Now())
	c.r = half{d: Both &^ out, turn: make(chan struct{}, 1), setInner: inner.SetReadDeadline}
	c.w = half{d: out, turn: make(chan struct{}, 1), setInner: inner.SetWriteDeadline}
	for _, f := range faults {
		for _, s := range f.trigger().Switches() {
			if !slices.Contains(c.switches, s) {
				c.switches = append(c.switches, s)
				s.follow(c)
			}
		}
	}
	c.notice()
	return c
}

// NetConn returns the inner connection.
func (c *Conn) NetConn() net.Conn { return c.inner }

// LocalAddr is the inner connection's.
func (c *Conn) LocalAddr() net.Addr { return c.inner.LocalAddr() }

// RemoteAddr is the inner connection's.
func (c *Conn) RemoteAddr() net.Addr { return c.inner.RemoteAddr() }

// Traffic is the number of bytes that the holder has read and written so far, those included that a fault swallowed on
// the way out.
func (c *Conn) Traffic() (read, written int64) { return c.read.Load(), c.wrote.Load() }

// OnLostEnd sets the function that is called, once, when the stream that c reads has ended at the other side and a fault
// lets that end vanish, so that no Read tells of it. err is io.EOF or what the inner connection's Read returned. The
// function runs in a goroutine that reads; it may close c but must not read from it. Set it before the first Read.
func (c *Conn) OnLostEnd(f func(err error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lostEnd = f
}

// Faults tells how each fault stands, in the order in which bytes meet them.
func (c *Conn) Faults() []Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pipes.status(time.Now())
}

// Close closes the inner connection and ends everything that is blocked. A second Close returns an error that wraps
// net.ErrClosed.
func (c *Conn) Close() error {
	c.mu.Lock()
	if c.shut {
		c.mu.Unlock()
		return c.opError("close", net.ErrClosed)
	}
	c.shut = true
	close(c.closed)
	if c.alarm != nil {
		c.alarm.Stop()
	}
	acted := c.r.fate != nil && c.w.fate != nil
	c.mu.Unlock()
	for _, s := range c.switches {
		s.forget(c)
	}
	c.r.deadline.stop()
	c.w.deadline.stop()
	if err := c.inner.Close(); !acted {
		return err
	}
	return nil // an effect had closed it already
}

// SetDeadline sets both deadlines.
func (c *Conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// SetReadDeadline moves the deadline of reads, also of one that is blocked.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.r.setDeadline(c, t) }

// SetWriteDeadline moves the deadline of writes, also of one that is blocked.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.w.setDeadline(c, t) }

func (h *half) setDeadline(c *Conn, t time.Time) error {
	if isClosed(c.closed) {
		return c.opError("set", net.ErrClosed)
	}
	h.deadline.set(t)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at = t
	if h.woken {
		return nil // whoever finds out that it was woken sets the new one
	}
	if err := h.setInner(t); err != nil && c.fateOf(h) == nil {
		return err
	}
	return nil
}

// wake ends an operation that is blocked in the inner connection, so that it looks at the faults again.
func (h *half) wake(lossy bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.busy && !h.woken && (lossy || !h.splice) {
		h.woken = true
		h.setInner(time.Unix(1, 0))
	}
}

// begin announces an operation on the inner connection.
func (h *half) begin(splice bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.busy, h.splice = true, splice
}

// finish ends it and reports whether it was woken.
func (h *half) finish() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.busy, h.splice = false, false
	if !h.woken {
		return false
	}
	h.woken = false
	h.setInner(h.at)
	return true
}

func (c *Conn) fateOf(h *half) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return h.fate
}

// notice looks at what has changed by a switch or by time: it performs actions, lets blocked operations look again and
// sets the next alarm.
func (c *Conn) notice() {
	c.mu.Lock()
	if c.shut {
		c.mu.Unlock()
		return
	}
	now := time.Now()
	c.broadcast()
	next := c.pipes.next(now)
	if !next.Equal(c.alarmAt) {
		c.alarmAt = next
		switch {
		case next.IsZero():
			c.alarm.Stop()
		case c.alarm == nil:
			c.alarm = time.AfterFunc(next.Sub(now), c.notice)
		default:
			c.alarm.Reset(next.Sub(now))
		}
	}
	writes := c.pipes.gate(now, c.w.d)
	c.mu.Unlock()
	c.perform()
	if writes != pass {
		c.w.wake(writes == drop)
	}
}

// broadcast lets everything that waits look again. The caller holds mu.
func (c *Conn) broadcast() {
	if c.changed != nil {
		close(c.changed)
		c.changed = nil
	}
}

// perform does what the acting effects demand now.
func (c *Conn) perform() {
	for {
		c.mu.Lock()
		a, on := c.pipes.due(time.Now())
		readEnds := a >= actClose || a == actHalfClose && on.has(c.r.d)
		writeEnds := a >= actClose || a == actHalfClose && on.has(c.w.d)
		readFate, writeFate := io.EOF, error(os.NewSyscallError("write", syscall.EPIPE))
		if a == actReset {
			readFate = os.NewSyscallError("read", syscall.ECONNRESET)
			writeFate = os.NewSyscallError("write", syscall.ECONNRESET)
		}
		if readEnds && c.r.fate == nil {
			c.r.fate = readFate
		}
		if writeEnds && c.w.fate == nil {
			c.w.fate = writeFate
		}
		if a != actNone {
			c.broadcast()
		}
		c.mu.Unlock()
		switch a {
		case actNone:
			return
		case actReset:
			Abort(c.inner)
		case actClose:
			c.inner.Close()
		case actHalfClose:
			if writeEnds {
				c.inner.(halfCloser).CloseWrite()
				c.w.wake(true)
			}
			if readEnds {
				c.inner.(halfCloser).CloseRead()
				c.r.wake(true)
			}
		}
	}
}

// enter waits for the turn of a half. It returns an error if the connection is closed or the deadline has passed.
func (c *Conn) enter(h *half, op string) error {
	if isClosed(c.closed) {
		return c.opError(op, net.ErrClosed)
	}
	select {
	case h.turn <- struct{}{}:
		return nil
	default:
	}
	for {
		select {
		case h.turn <- struct{}{}:
			return nil
		case <-c.closed:
			return c.opError(op, net.ErrClosed)
		case <-h.deadline.wait():
			if h.deadline.over() {
				return c.opError(op, os.ErrDeadlineExceeded)
			}
		}
	}
}

func (h *half) leave() { <-h.turn }

// stopped returns the error with which an operation of h has to end now, if any.
func (c *Conn) stopped(h *half, op string) error {
	switch {
	case isClosed(c.closed):
		return c.opError(op, net.ErrClosed)
	case h.deadline.over():
		return c.opError(op, os.ErrDeadlineExceeded)
	}
	if fate := c.fateOf(h); fate == io.EOF {
		return fate
	} else if fate != nil {
		return c.opError(op, fate)
	}
	return nil
}

// await blocks until something changes or until an instant; changed is the channel that was current at the decision.
func (c *Conn) await(h *half, changed <-chan struct{}, until time.Time) {
	var alarm <-chan time.Time
	if !until.IsZero() {
		t := time.NewTimer(time.Until(until))
		defer t.Stop()
		alarm = t.C
	}
	select {
	case <-c.closed:
	case <-h.deadline.wait():
	case <-changed:
	case <-alarm:
	}
}

// change returns the channel that is closed at the next change. The caller holds mu.
func (c *Conn) change() <-chan struct{} {
	if c.changed == nil {
		c.changed = make(chan struct{})
	}
	return c.changed
}

func (c *Conn) opError(op string, err error) error {
	e := &net.OpError{Op: op, Err: err, Source: c.LocalAddr(), Addr: c.RemoteAddr()}
	if e.Addr != nil {
		e.Net = e.Addr.Network()
	}
	return e
}

// innerError is err, unless it comes from the connection having been closed or broken off here.
func (c *Conn) innerError(h *half, op string, err error) error {
	if stop := c.stopped(h, op); stop != nil {
		return stop
	}
	return err
}
