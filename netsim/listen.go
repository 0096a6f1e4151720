package netsim

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/seed-5a7f77c4/deadair/clock"
	"github.com/seed-5a7f77c4/deadair/netsim/internal/tcp"
)

// A Listener accepts streams. It has the methods of *net.TCPListener that a
// program is likely to call.
type Listener struct {
	host      *Host
	local     netip.AddrPort // the address is invalid for all of the host's
	network   string
	backlog   int
	ready     []*Conn
	cond      *sync.Cond
	closed    bool
	by        time.Duration
	timer     clock.Event
	failures  []error
	keepAlive net.KeepAliveConfig
	embryos   []*Conn
}

// Listen is net.Listen on this host: networks tcp, tcp4 and tcp6, addresses such
// as ":443", "127.0.0.1:0" or one of the host's own.
func (h *Host) Listen(network, address string) (net.Listener, error) {
	l, err := h.listen(network, address)
	if err != nil {
		return nil, err
	}
	return l, nil
}

// A ListenConfig listens on a host as net.ListenConfig does.
type ListenConfig struct {
	Host *Host // where to listen
	// KeepAliveConfig and KeepAlive are net.ListenConfig's: accepted streams send
	// probes by default, and none when KeepAlive is negative.
	KeepAlive       time.Duration
	KeepAliveConfig net.KeepAliveConfig
}

// Listen is that of net.ListenConfig, for the networks that [Host.Listen] knows.
func (lc *ListenConfig) Listen(ctx context.Context, network, address string) (net.Listener, error) {
	if lc.Host == nil {
		return nil, &net.OpError{Op: "listen", Net: network, Err: errors.New("netsim: ListenConfig.Listen: there is no Host")}
	}
	if err := ctx.Err(); err != nil {
		return nil, &net.OpError{Op: "listen", Net: network, Err: contextError(err)}
	}
	l, err := lc.Host.listen(network, address)
	if err != nil {
		return nil, err
	}
	l.keepAlive = keepAliveOf(lc.KeepAlive, lc.KeepAliveConfig)
	return l, nil
}

// keepAliveOf is what a Dialer's or a ListenConfig's two fields come to.
func keepAliveOf(d time.Duration, k net.KeepAliveConfig) net.KeepAliveConfig {
	if !k.Enable && d >= 0 {
		return net.KeepAliveConfig{Enable: true, Idle: d}
	}
	return k
}

func (h *Host) listen(network, address string) (*Listener, error) {
	proto, family, host, port, err := split(network, address)
	if err == nil && proto != TCP {
		err = unexpectedType(address)
	}
	if err != nil {
		return nil, &net.OpError{Op: "listen", Net: network, Err: err}
	}
	n := h.n
	n.enter()
	defer n.mu.Unlock()
	at, err := h.bindable(host, family)
	if err != nil {
		return nil, opError("listen", network, nil, addr(proto, netip.AddrPortFrom(at, port)), err)
	}
	taken := func(port uint16) bool {
		return slices.ContainsFunc(h.listeners, func(l *Listener) bool {
			return l.local.Port() == port && reachOf(network, at).overlaps(reachOf(l.network, l.local.Addr()))
		})
	}
	if port == 0 {
		if port, err = h.listenPort(taken); err != nil {
			return nil, opError("listen", network, nil, nil, err)
		}
	} else if taken(port) {
		return nil, opError("listen", network, nil, addr(proto, netip.AddrPortFrom(orAny(at, family), port)), syscall.EADDRINUSE)
	}
	l := &Listener{host: h, local: netip.AddrPortFrom(at, port), network: network, backlog: h.backlog, cond: sync.NewCond(&n.mu), keepAlive: net.KeepAliveConfig{Enable: true}}
	h.listeners = append(h.listeners, l)
	return l, nil
}

// bindable finds the address to bind: invalid for all.
func (h *Host) bindable(host string, family int) (netip.Addr, error) {
	if err := h.n.usable(); err != nil {
		return netip.Addr{}, err
	}
	if h.crashed {
		return netip.Addr{}, syscall.ENETDOWN
	}
	if host == "" {
		return netip.Addr{}, nil
	}
	a, err := netip.ParseAddr(host)
	switch {
	case host == "localhost":
		return netip.AddrFrom4([4]byte{127, 0, 0, 1}), nil
	case host == h.name:
		for _, b := range h.addrs() {
			if family == 0 || family == familyOf(b) {
				return b, nil
			}
		}
		return netip.Addr{}, syscall.EADDRNOTAVAIL
	case err != nil:
		return netip.Addr{}, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	a = a.Unmap()
	if a.IsUnspecified() && (a.Is6() || family != 6) { // package net takes :: for both families
		return netip.Addr{}, nil
	}
	if family != 0 && family != familyOf(a) {
		return netip.Addr{}, &net.AddrError{Err: "no suitable address found", Addr: host}
	}
	if h.own(a) == nil {
		return a, syscall.EADDRNOTAVAIL
	}
	return a, nil
}

// orAny gives the unspecified address for an invalid one.
func orAny(a netip.Addr, family int) netip.Addr {
	if a.IsValid() {
		return a
	}
	if family == 4 {
		return netip.IPv4Unspecified()
	}
	return netip.IPv6Unspecified()
}

// listener finds who listens at a.
func (h *Host) listener(a netip.AddrPort) *Listener {
	var any *Listener
	for _, l := range h.listeners {
		if l.local.Port() != a.Port() {
			continue
		}
		if l.local.Addr() == a.Addr() {
			return l
		}
		if reachOf(l.network, l.local.Addr()).takes(a.Addr()) {
			any = l
		}
	}
	return any
}

// inputSYN takes the first packet of a connection.
func (l *Listener) inputSYN(now time.Duration, p *packet) {
	h := l.host
	n := h.n
	if l.full() {
		n.note(Event{Why: h.name + ": backlog full, SYN dropped", Flow: p.flow.name})
		n.freePacket(p) // as Linux does: it will come again
		return
	}
	c := n.newConn(h, p.dst, p.src, l.network, p.flow, p.flow.name+" server")
	c.peerHost, c.out, c.in, c.listener = p.from, p.in, p.out, l
	c.keepAlive(l.keepAlive)
	h.conns[connKey{c.local, c.remote}] = c
	l.embryos = append(l.embryos, c)
	seg := p.seg
	p.seg = nil
	n.freePacket(p)
	c.ep.Accept(now, seg)
	seg.Free()
	c.settle(now)
}

// full reports whether no more connections may wait for Accept: one more than
// the backlog do, as on Linux (sk_acceptq_is_full). Handshakes under way do not
// count.
func (l *Listener) full() bool { return len(l.ready) > l.backlog }

// ignores reports whether a segment is dropped that would end a handshake, since
// the connection could not wait for Accept. As with tcp_abort_on_overflow = 0
// the peer, which believes that it is connected, is not told; the SYN-ACK is
// sent again, and what answers it, or data that is sent again, may find room.
func (l *Listener) ignores(s *tcp.Segment) bool {
	return l.full() && s.Flags&(tcp.ACK|tcp.SYN|tcp.RST) == tcp.ACK
}

// established moves a connection whose handshake is done into the queue.
func (l *Listener) established(c *Conn) {
	l.leave(c)
	c.listener = nil
	l.ready = append(l.ready, c)
	l.cond.Broadcast()
}

// drop forgets a connection whose handshake failed.
func (l *Listener) drop(c *Conn) {
	l.leave(c)
	c.listener = nil
}

func (l *Listener) leave(c *Conn) {
	if i := slices.Index(l.embryos, c); i >= 0 {
		l.embryos = slices.Delete(l.embryos, i, i+1)
	}
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	c, err := l.accept()
	if err != nil {
		return nil, err
	}
	return c, nil
}

func (l *Listener) accept() (*Conn, error) {
	n := l.host.n
	n.enter()
	defer n.mu.Unlock()
	for {
		switch {
		case l.closed:
			return nil, l.opError(net.ErrClosed)
		case n.usable() != nil:
			return nil, l.opError(n.usable())
		case l.by != noDeadline && n.sched.Now() >= l.by:
			return nil, l.opError(os.ErrDeadlineExceeded)
		case len(l.failures) > 0:
			err := l.failures[0]
			l.failures = l.failures[1:]
			return nil, l.opError(err)
		case len(l.ready) > 0:
			c := l.ready[0]
			l.ready = slices.Delete(l.ready, 0, 1)
			return c, nil
		}
		if l.by != noDeadline {
			if l.timer.Handler == nil {
				l.timer = clock.Event{Key: clock.Key{Name: "listen " + l.host.name + l.local.String(), Kind: kindDeadline}, Handler: clock.HandlerFunc(l.wakeUp)}
			}
			n.sched.Schedule(&l.timer, l.by)
		}
		l.cond.Wait()
	}
}

func (l *Listener) wakeUp(time.Duration) {
	l.host.n.mu.Lock()
	defer l.host.n.mu.Unlock()
	l.cond.Broadcast()
}

func (l *Listener) opError(err error) error {
	return opError("accept", l.network, nil, l.Addr(), err)
}

// FailAccept makes the next calls of Accept return errors, such as
// syscall.EMFILE, before the connections that wait. The listener goes on.
func (l *Listener) FailAccept(errs ...error) {
	l.host.n.enter()
	defer l.host.n.mu.Unlock()
	l.host.n.mustWork("Listener.FailAccept")
	if len(errs) == 0 || slices.Contains(errs, nil) {
		panic(fmt.Errorf("netsim: Listener.FailAccept(%v): errors are wanted", errs))
	}
	l.failures = append(l.failures, errs...)
	l.cond.Broadcast()
}

// SetBacklog changes the listener's [Backlog].
func (l *Listener) SetBacklog(k int) {
	l.host.n.enter()
	defer l.host.n.mu.Unlock()
	l.host.n.mustWork("Listener.SetBacklog")
	if k < 0 {
		panic(fmt.Errorf("netsim: Listener.SetBacklog(%d): at least 0", k))
	}
	l.backlog = k
}

// SetDeadline is the time at which Accept gives up; the zero time is never.
func (l *Listener) SetDeadline(t time.Time) error {
	l.host.n.enter()
	defer l.host.n.mu.Unlock()
	if l.closed {
		return l.opError(net.ErrClosed)
	}
	l.by = l.host.n.deadline(t)
	l.cond.Broadcast()
	return nil
}

// Addr is a *net.TCPAddr.
func (l *Listener) Addr() net.Addr {
	family := 0
	if l.network == "tcp4" {
		family = 4
	}
	return addr(TCP, netip.AddrPortFrom(orAny(l.local.Addr(), family), l.local.Port()))
}

// Close implements net.Listener. Connections that nobody accepted are reset.
func (l *Listener) Close() error {
	n := l.host.n
	n.enter()
	defer n.mu.Unlock()
	if l.closed {
		return &net.OpError{Op: "close", Net: l.network, Addr: l.Addr(), Err: net.ErrClosed}
	}
	waiting := append(l.embryos, l.ready...)
	l.abandon()
	for _, c := range waiting {
		c.listener = nil
		c.closed, c.abort = true, true
		c.kick(n.sched.Now())
	}
	return nil
}

// abandon closes the listener without a word to anybody.
func (l *Listener) abandon() {
	l.closed = true
	l.embryos, l.ready = nil, nil
	l.host.listeners = slices.DeleteFunc(l.host.listeners, func(x *Listener) bool { return x == l })
	l.cond.Broadcast()
}
