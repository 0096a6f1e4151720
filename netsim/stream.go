package netsim

import (
	"cmp"
	"io"
	"math"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/seed-5a7f77c4/deadair/clock"
	"github.com/seed-5a7f77c4/deadair/netsim/internal/tcp"
)

const timeWaiting = tcp.TimeWaiting

// A Conn is one end of a stream. It has the methods of *net.TCPConn that a
// program is likely to call, and behaves as Linux's TCP does.
type Conn struct {
	host     *Host
	peerHost *Host // nil when nobody is there
	out, in  *Interface
	local    netip.AddrPort
	remote   netip.AddrPort
	network  string
	key      string // flow and side: the name of this end's events
	flow     *flow
	ep       tcp.Endpoint
	listener *Listener // of an end that was accepted, until then

	cond      *sync.Cond // on the network's lock, for reads, writes and what else waits
	readers   int
	writers   int
	writing   bool
	dialing   bool
	unhurried bool // transmit is queued with slack
	closed    bool
	deferred  bool

	start, abort, reset bool
	failure             syscall.Errno
	linger              int // seconds; -1: the default
	readBy, writeBy     time.Duration
	transmit, timer     clock.Event
	readTimer           clock.Event
	writeTimer          clock.Event
}

// noDeadline is a deadline that was not set.
const noDeadline = time.Duration(0)

// The events of a connection; each is the connection under another name.
type (
	connTransmit Conn
	connTimer    Conn
	connDeadline Conn
)

func (n *Network) newConn(h *Host, local, remote netip.AddrPort, network string, fl *flow, key string) *Conn {
	c := &Conn{host: h, local: local, remote: remote, network: network, flow: fl, key: key, linger: -1}
	c.cond = sync.NewCond(&n.mu)
	c.ep.Init(c, &n.pool, n.opts.stream)
	c.ep.NoDelay = true
	c.ep.KeepIdle, c.ep.KeepInterval, c.ep.KeepCount = keepIdle, keepInterval, keepCount
	c.transmit = clock.Event{Key: clock.Key{Name: key, Kind: kindTransmit}, Handler: (*connTransmit)(c)}
	c.timer = clock.Event{Key: clock.Key{Name: key, Kind: kindTimer}, Handler: (*connTimer)(c)}
	return c
}

// Go's defaults, from net.KeepAliveConfig.
const (
	keepIdle     = 15 * time.Second
	keepInterval = 15 * time.Second
	keepCount    = 9
)

// Emit implements the endpoint's environment.
func (c *Conn) Emit(now time.Duration, s *tcp.Segment) {
	n := c.host.n
	p := n.newPacket()
	p.seg, p.proto, p.kind, p.flow = s, TCP, segmentKind(s), c.flow
	p.src, p.dst, p.from, p.to, p.out, p.in = c.local, c.remote, c.host, c.peerHost, c.out, c.in
	p.size = s.Len + headers(TCP, c.local.Addr())
	n.send(now, p)
}

// maxBurst is how much payload may travel in one piece where nothing would tell
// its parts apart, as with Linux's segmentation offload.
const maxBurst = 60 << 10

// SegmentSize implements the endpoint's environment.
func (c *Conn) SegmentSize() (mss, burst int) {
	n := c.host.n
	mtu := DefaultMTU
	quiet := len(n.rules) == 0
	if c.peerHost != nil {
		p := &n.path(c.host, c.peerHost).pipe
		mtu = p.conditions.segmentMTU()
		quiet = quiet && p.quiet()
		if c.host == c.peerHost {
			mtu = min(cmp.Or(p.conditions.MTU, loopbackMTU), loopbackMTU)
		} else {
			for _, w := range [2]*pipe{c.out.up, c.in.down} {
				if w != nil {
					mtu = min(mtu, w.conditions.segmentMTU())
					quiet = quiet && w.quiet()
				}
			}
		}
	}
	mss = mtu - headers(TCP, c.local.Addr())
	if quiet {
		return mss, max(mss, maxBurst/mss*mss)
	}
	return mss, mss
}

// kick makes the end send what it has, in an event.
func (c *Conn) kick(now time.Duration) {
	if c.unhurried || !c.host.n.sched.Queued(&c.transmit) {
		c.host.n.sched.Schedule(&c.transmit, now)
		c.unhurried = false
	}
}

// give is kick where all that comes of it is a packet on its way, and timers.
func (c *Conn) give(now time.Duration) {
	n := c.host.n
	if n.sched.Queued(&c.transmit) {
		return
	}
	slack := min(n.slack(c.host, c.peerHost, c.out, c.in), tcp.MinRTO)
	if c.ep.UserTimeout > 0 {
		slack = min(slack, c.ep.UserTimeout)
	}
	n.sched.ScheduleLazily(&c.transmit, now, slack)
	c.unhurried = slack > 0
}

// Fire sends what the program gave.
func (t *connTransmit) Fire(now time.Duration) {
	c := (*Conn)(t)
	n := c.host.n
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed || c.postpone() {
		return
	}
	if c.start {
		c.start = false
		c.ep.Connect(now)
	}
	switch {
	case c.failure != 0:
		c.ep.Fail(c.failure)
	case c.reset:
		c.ep.Reset()
	case c.closed && !c.abort && c.host.crashed:
	case c.closed:
		c.ep.Close(now, c.abort)
	}
	c.ep.UpdateWindow(now)
	c.ep.Output(now)
	c.settle(now)
	if c.closed && c.writers > 0 {
		c.wake() // a Close that lingers: there may be nothing to acknowledge
	}
}

// postpone keeps the events of a paused host for later.
func (c *Conn) postpone() bool {
	if c.host.paused && !c.deferred {
		c.deferred = true
		c.host.deferred = append(c.host.deferred, c)
	}
	return c.host.paused
}

// Fire lets the end do what its timers say.
func (t *connTimer) Fire(now time.Duration) {
	c := (*Conn)(t)
	n := c.host.n
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed || c.postpone() {
		return
	}
	if c.ep.Next() <= now {
		c.ep.Timer(now)
	}
	c.settle(now)
}

// Fire wakes those whose deadline has come.
func (t *connDeadline) Fire(time.Duration) {
	c := (*Conn)(t)
	c.host.n.mu.Lock()
	defer c.host.n.mu.Unlock()
	c.wake()
}

func (c *Conn) wake() { c.cond.Broadcast() }

// settle draws the consequences of what the end just did: wakes who waits, arms
// the timer, forgets the connection when it is over.
func (c *Conn) settle(now time.Duration) {
	n := c.host.n
	ev := c.ep.TakeEvents()
	if ev&tcp.Opened != 0 {
		if c.flow.openedAt < 0 {
			c.flow.openedAt = now
		}
		if c.listener != nil {
			c.listener.established(c)
		}
	}
	if ev&tcp.Readable != 0 && c.readers > 0 || ev&(tcp.Writable|tcp.Opened|tcp.Died) != 0 && c.writers > 0 {
		c.wake()
	}
	if ev&tcp.Died != 0 {
		if errno := c.ep.Err(); errno != 0 {
			n.noteLocked(Event{Why: c.host.name + ": " + errno.Error(), Flow: c.flow.name})
		}
		if l := c.listener; l != nil {
			l.drop(c)
		}
		c.forget()
	}
	switch at := c.ep.Next(); {
	case at == tcp.Never:
		n.sched.Cancel(&c.timer)
	case at != c.timer.At() || !n.sched.Queued(&c.timer):
		n.sched.Schedule(&c.timer, at)
	}
}

// forget takes the connection out of its host's table.
func (c *Conn) forget() {
	k := connKey{c.local, c.remote}
	if c.host.conns[k] == c {
		delete(c.host.conns, k)
	}
	c.host.n.sched.Cancel(&c.timer)
}

// abandon ends the connection without a word to the peer.
func (c *Conn) abandon() {
	c.closed = true
	c.ep.Fail(0)
	c.ep.TakeEvents()
	c.host.n.sched.Cancel(&c.transmit)
	c.host.n.sched.Cancel(&c.timer)
	c.wake()
}

func (c *Conn) failAt(errno syscall.Errno) {
	c.failure = errno
	c.kick(c.host.n.sched.Now())
}

func (c *Conn) resetAt(now time.Duration) {
	c.reset = true
	c.kick(now)
}

func (c *Conn) opError(op string, err error) error {
	return opError(op, c.network, addr(TCP, c.local), addr(TCP, c.remote), err)
}

// wait waits for something to change. writing says which deadline holds. It
// runs under the network's lock and gives it up meanwhile.
func (c *Conn) wait(writing bool) {
	by, ev, waiting := c.readBy, &c.readTimer, &c.readers
	if writing {
		by, ev, waiting = c.writeBy, &c.writeTimer, &c.writers
	}
	if by != noDeadline {
		c.armDeadline(ev, by)
	}
	*waiting++
	c.cond.Wait()
	*waiting--
}

func (c *Conn) armDeadline(ev *clock.Event, by time.Duration) {
	s := c.host.n.sched
	if ev.Handler == nil {
		*ev = clock.Event{Key: clock.Key{Name: c.key, Kind: kindDeadline}, Handler: (*connDeadline)(c)}
	}
	if !s.Queued(ev) || ev.At() != by {
		s.Schedule(ev, by)
	}
}

func (c *Conn) expired(by time.Duration) bool {
	return by != noDeadline && c.host.n.sched.Now() >= by
}

// usable says why a call cannot be served.
func (c *Conn) usable() error {
	if c.closed {
		return net.ErrClosed
	}
	return c.host.n.usable()
}

// Read implements net.Conn.
func (c *Conn) Read(b []byte) (int, error) {
	n := c.host.n
	n.enter()
	defer n.mu.Unlock()
	for {
		if err := c.usable(); err != nil {
			return 0, c.opError("read", err)
		}
		if len(b) == 0 {
			return 0, nil
		}
		if c.expired(c.readBy) {
			return 0, c.opError("read", os.ErrDeadlineExceeded)
		}
		if k, err, done := c.ep.Read(b); done {
			if k > 0 && c.ep.WantsWindowUpdate() {
				c.give(n.sched.Now())
			}
			if err != nil && err != io.EOF {
				err = c.opError("read", err)
			}
			return k, err
		}
		c.wait(false)
	}
}

// Write implements net.Conn. It returns at once while the send buffer has room.
func (c *Conn) Write(b []byte) (written int, err error) {
	n := c.host.n
	n.enter()
	defer n.mu.Unlock()
	mine := false
	defer func() {
		if mine {
			c.writing = false
			if c.writers > 0 {
				c.cond.Broadcast()
			}
		}
	}()
	for {
		if err := c.usable(); err != nil {
			return written, c.opError("write", err)
		}
		if c.expired(c.writeBy) {
			return written, c.opError("write", os.ErrDeadlineExceeded)
		}
		if !c.writing || mine {
			mine, c.writing = true, true // one write at a time, whole
			k, err, done := c.ep.Write(b[written:])
			written += k
			if k > 0 {
				c.give(n.sched.Now())
			}
			if err != nil {
				return written, c.opError("write", err)
			}
			if done {
				return written, nil
			}
		}
		c.wait(true)
	}
}

// Close implements net.Conn: what was written is still delivered, unless bytes
// are left unread or SetLinger(0) was called, which reset the connection.
func (c *Conn) Close() error {
	n := c.host.n
	n.enter()
	defer n.mu.Unlock()
	if err := c.usable(); err != nil {
		return c.opError("close", err)
	}
	c.closed = true
	c.abort = c.linger == 0
	now := n.sched.Now()
	switch {
	case n.closed || c.host.crashed:
	case c.linger > 0:
		c.kick(now)
	default:
		c.give(now)
	}
	c.wake()
	if c.linger > 0 {
		c.lingerUntil(now + time.Duration(c.linger)*time.Second)
	}
	return nil
}

// lingerUntil blocks a Close as SO_LINGER does. What has not arrived by then
// stays on its way, as on Linux.
func (c *Conn) lingerUntil(by time.Duration) {
	for c.lingers() && c.host.n.sched.Now() < by {
		c.armDeadline(&c.writeTimer, by)
		c.writers++
		c.cond.Wait()
		c.writers--
	}
}

// lingers reports whether something is on its way still. A stream that is over,
// which its host has forgotten, has nothing to send, whatever is in the queue.
func (c *Conn) lingers() bool {
	switch c.ep.State() {
	case tcp.Closed, timeWaiting:
		return false
	}
	return !c.ep.Flushed() || c.host.n.sched.Queued(&c.transmit)
}

// CloseWrite sends a FIN after all that was written; reads go on.
func (c *Conn) CloseWrite() error { return c.shutdown("close", c.ep.CloseWrite) }

// CloseRead makes reads return io.EOF after what has arrived; the peer is told
// nothing.
func (c *Conn) CloseRead() error { return c.shutdown("close", c.ep.CloseRead) }

func (c *Conn) shutdown(op string, do func() syscall.Errno) error {
	n := c.host.n
	n.enter()
	defer n.mu.Unlock()
	if err := c.usable(); err != nil {
		return c.opError(op, err)
	}
	if errno := do(); errno != 0 {
		return c.opError(op, os.NewSyscallError("shutdown", errno))
	}
	c.kick(n.sched.Now())
	c.wake()
	return nil
}

// LocalAddr is a *net.TCPAddr.
func (c *Conn) LocalAddr() net.Addr { return addr(TCP, c.local) }

// RemoteAddr is a *net.TCPAddr.
func (c *Conn) RemoteAddr() net.Addr { return addr(TCP, c.remote) }

// Flow is what the trace calls the connection.
func (c *Conn) Flow() string { return c.flow.name }

// Host is the host whose end this is.
func (c *Conn) Host() *Host { return c.host }

// SetDeadline implements net.Conn.
func (c *Conn) SetDeadline(t time.Time) error { return c.setDeadlines(t, true, true) }

// SetReadDeadline implements net.Conn.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.setDeadlines(t, true, false) }

// SetWriteDeadline implements net.Conn.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.setDeadlines(t, false, true) }

func (c *Conn) setDeadlines(t time.Time, read, write bool) error {
	n := c.host.n
	n.enter()
	defer n.mu.Unlock()
	if err := c.usable(); err != nil {
		return c.opError("set", err)
	}
	by := n.deadline(t)
	if read {
		c.readBy = by
	}
	if write {
		c.writeBy = by
	}
	if c.readers+c.writers > 0 {
		c.cond.Broadcast() // each arms its timer anew
	}
	return nil
}

// deadline turns a time into one of the network's.
func (n *Network) deadline(t time.Time) time.Duration {
	if t.IsZero() {
		return noDeadline
	}
	return max(t.Sub(n.sched.Epoch()), 1)
}

// SetLinger is that of *net.TCPConn on Linux: 0 resets the connection on Close,
// more makes Close wait for what was written to arrive, but no more than so many
// seconds; a negative number, the default, does not wait.
func (c *Conn) SetLinger(sec int) error {
	return c.set(func() { c.linger = min(max(sec, -1), math.MaxInt32) })
}

// SetNoDelay turns Nagle's algorithm off, which is the default.
func (c *Conn) SetNoDelay(on bool) error { return c.set(func() { c.ep.NoDelay = on }) }

// SetKeepAlive turns keep-alive probes on, which is the default, or off.
func (c *Conn) SetKeepAlive(on bool) error {
	return c.SetKeepAliveConfig(net.KeepAliveConfig{Enable: on})
}

// SetKeepAlivePeriod sets the idle time and the interval of the probes.
func (c *Conn) SetKeepAlivePeriod(d time.Duration) error {
	return c.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: d, Interval: d})
}

// SetKeepAliveConfig is that of *net.TCPConn; zero values mean Go's defaults of
// 15 s, 15 s and 9 probes, negative ones leave a value as it is.
func (c *Conn) SetKeepAliveConfig(k net.KeepAliveConfig) error {
	return c.set(func() { c.keepAlive(k) })
}

func (c *Conn) keepAlive(k net.KeepAliveConfig) {
	if !k.Enable {
		c.ep.KeepIdle = 0
		return
	}
	pick := func(now *time.Duration, v, def time.Duration) {
		if v == 0 {
			v = def
		}
		if v > 0 {
			*now = min(v, maxDelay)
		}
	}
	pick(&c.ep.KeepIdle, k.Idle, keepIdle)
	pick(&c.ep.KeepInterval, k.Interval, keepInterval)
	switch {
	case k.Count == 0:
		c.ep.KeepCount = keepCount
	case k.Count > 0:
		c.ep.KeepCount = k.Count
	}
}

// SetUserTimeout is Linux's TCP_USER_TIMEOUT: how long sent data may stay
// unacknowledged before the connection fails with ETIMEDOUT. 0 means the budget
// of [Retries].
func (c *Conn) SetUserTimeout(d time.Duration) error {
	return c.set(func() { c.ep.UserTimeout = min(max(d, 0), maxDelay) })
}

// SetReadBuffer sets the size of the receive buffer in bytes.
func (c *Conn) SetReadBuffer(bytes int) error { return c.set(func() { c.ep.SetBuffers(0, bytes) }) }

// SetWriteBuffer sets the size of the send buffer in bytes.
func (c *Conn) SetWriteBuffer(bytes int) error { return c.set(func() { c.ep.SetBuffers(bytes, 0) }) }

func (c *Conn) set(f func()) error {
	n := c.host.n
	n.enter()
	defer n.mu.Unlock()
	if err := c.usable(); err != nil {
		return c.opError("set", err)
	}
	f()
	c.settle(n.sched.Now())
	return nil
}
