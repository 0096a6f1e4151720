package netsim

import (
	"context"
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

const maxDatagram = 65507 // bytes of payload

// A PacketConn is a UDP socket. It has the methods of *net.UDPConn that a
// program is likely to call, and is a net.Conn too when it was dialled.
type PacketConn struct {
	host    *Host
	network string
	local   netip.AddrPort // the address is invalid for all of the host's
	remote  netip.AddrPort // invalid unless dialled
	key     string
	flows   map[netip.AddrPort]*flow

	cond    *sync.Cond
	readers int
	closed  bool
	inbox   []datagram
	bytes   int
	limit   int
	outbox  []*packet
	errno   syscall.Errno // pending, of a dialled socket
	readBy  time.Duration
	writeBy time.Duration
	timer   clock.Event
	sender  clock.Event
	slack   time.Duration // of sender, while it is queued
}

type datagram struct {
	from netip.AddrPort
	data []byte
}

type socketSender PacketConn

// ListenPacket is net.ListenPacket on this host: networks udp, udp4 and udp6.
func (h *Host) ListenPacket(network, address string) (net.PacketConn, error) {
	proto, family, host, port, err := split(network, address)
	if err == nil && proto != UDP {
		err = unexpectedType(address)
	}
	if err != nil {
		return nil, &net.OpError{Op: "listen", Net: network, Err: err}
	}
	h.n.enter()
	defer h.n.mu.Unlock()
	at, err := h.bindable(host, family)
	if err != nil {
		return nil, opError("listen", network, nil, addr(UDP, netip.AddrPortFrom(at, port)), err)
	}
	s, err := h.newSocket(network, netip.AddrPortFrom(at, port), netip.AddrPort{})
	if err != nil {
		return nil, opError("listen", network, nil, addr(UDP, netip.AddrPortFrom(orAny(at, family), port)), err)
	}
	return s, nil
}

func (d *Dialer) dialUDP(_ context.Context, network string, remote netip.AddrPort) (net.Conn, error) {
	h := d.Host
	h.n.enter()
	defer h.n.mu.Unlock()
	fail := func(err error) (net.Conn, error) {
		return nil, opError("dial", network, d.LocalAddr, addr(UDP, remote), err)
	}
	local, err := d.local(UDP)
	if err != nil {
		return fail(err)
	}
	if err := h.n.usable(); err != nil {
		return fail(err)
	}
	if local.Addr().IsValid() && h.own(local.Addr()) == nil {
		return fail(os.NewSyscallError("bind", syscall.EADDRNOTAVAIL))
	}
	_, src, _, err := h.route(remote.Addr(), local.Addr())
	if err != nil {
		return fail(err)
	}
	s, err := h.newSocket(network, netip.AddrPortFrom(src, local.Port()), remote)
	if err != nil {
		return fail(err)
	}
	return s, nil
}

func (h *Host) newSocket(network string, local, remote netip.AddrPort) (*PacketConn, error) {
	n := h.n
	overlaps := func(s *PacketConn, port uint16) bool {
		return s.local.Port() == port && reachOf(network, local.Addr()).overlaps(s.reach())
	}
	if local.Port() == 0 {
		port, err := h.socketPort(remote, func(port uint16) bool {
			return slices.ContainsFunc(h.sockets, func(s *PacketConn) bool { return s.remote == remote && overlaps(s, port) })
		})
		if err != nil {
			return nil, err
		}
		local = netip.AddrPortFrom(local.Addr(), port)
	} else if slices.ContainsFunc(h.sockets, func(s *PacketConn) bool { return overlaps(s, local.Port()) }) { // bind(2) comes before connect(2)
		return nil, os.NewSyscallError("bind", syscall.EADDRINUSE)
	}
	s := &PacketConn{
		host: h, network: network, local: local, remote: remote, limit: n.opts.udpBuffer,
		flows: map[netip.AddrPort]*flow{}, cond: sync.NewCond(&n.mu),
		key: h.name + "/udp " + local.String() + " " + remote.String(),
	}
	s.sender = clock.Event{Key: clock.Key{Name: s.key, Kind: kindTransmit}, Handler: (*socketSender)(s)}
	h.sockets = append(h.sockets, s)
	return s, nil
}

// socketPort picks a port; of dialled sockets by destination, as for streams.
func (h *Host) socketPort(remote netip.AddrPort, taken func(uint16) bool) (uint16, error) {
	if !remote.IsValid() {
		return h.listenPort(taken)
	}
	first := uint32(h.n.opts.ports[0])
	count := uint32(h.n.opts.ports[1]) - first + 1
	offset := uint32(drawKey(h.n.opts.seed, h.name+">"+remote.String(), true) % uint64(count))
	for range count {
		port := uint16(first + (offset+h.cursor[remote])%count)
		h.cursor[remote]++
		if !taken(port) {
			return port, nil
		}
	}
	return 0, syscall.EADDRNOTAVAIL
}

// socket finds who takes datagrams for a from b: a dialled socket before one
// that takes all.
func (h *Host) socket(a, b netip.AddrPort) *PacketConn {
	var best *PacketConn
	for _, s := range h.sockets {
		if s.local.Port() != a.Port() || !s.reach().takes(a.Addr()) {
			continue
		}
		if s.remote == b {
			return s
		}
		if !s.remote.IsValid() && (best == nil || s.local.Addr().IsValid()) {
			best = s
		}
	}
	return best
}

// inputDatagram takes a datagram, or an ICMP error, that arrived.
func (h *Host) inputDatagram(now time.Duration, p *packet) {
	n := h.n
	defer n.freePacket(p)
	if p.proto == ICMP {
		n.record(now, p, Delivered, p.about.errno.Error())
		h.inputUnreachable(now, p)
		return
	}
	s := h.socket(p.dst, p.src)
	switch {
	case s == nil:
		n.record(now, p, Delivered, "port closed")
		n.send(now, n.unreachable(p, syscall.ECONNREFUSED))
		return
	case s.bytes+len(p.data) > s.limit:
		n.record(now, p, Dropped, "socket buffer full")
		return
	}
	n.record(now, p, Delivered, "")
	s.inbox = append(s.inbox, datagram{p.src, p.data})
	s.bytes += len(p.data)
	p.data = nil
	s.wake()
}

// inputUnreachable tells the socket that an ICMP error is about: a dialled packet
// connection, or a dial under way. A stream that is established goes on trying.
func (h *Host) inputUnreachable(now time.Duration, p *packet) {
	if p.about.proto == TCP {
		if c := h.conns[connKey{p.dst, p.about.dst}]; c != nil && c.ep.State() == tcp.SynSent {
			c.ep.Fail(p.about.errno)
			c.settle(now)
		}
		return
	}
	if s := h.socket(p.dst, p.about.dst); s != nil && s.remote == p.about.dst {
		s.errno = p.about.errno
		s.wake()
	}
}

// unreachable makes the ICMP error that answers a packet nobody takes.
func (n *Network) unreachable(p *packet, errno syscall.Errno) *packet {
	b := n.answer(p)
	b.proto, b.kind, b.about = ICMP, Unreachable, about{p.proto, p.dst, errno}
	b.size = min(p.size+headers(UDP, p.src.Addr()), 576)
	return b
}

func (s *PacketConn) reach() reach { return reachOf(s.network, s.local.Addr()) }

func (s *PacketConn) wake() { s.cond.Broadcast() }

func (s *PacketConn) opError(op string, to netip.AddrPort, err error) error {
	return opError(op, s.network, addr(UDP, s.localAny()), addr(UDP, to), err)
}

func (s *PacketConn) localAny() netip.AddrPort {
	family := 0
	if s.network == "udp4" {
		family = 4
	}
	return netip.AddrPortFrom(orAny(s.local.Addr(), family), s.local.Port())
}

// usable says why a call cannot be served.
func (s *PacketConn) usable() error {
	if s.closed {
		return net.ErrClosed
	}
	return s.host.n.usable()
}

// receive takes the next datagram, by the system call read or recvfrom.
func (s *PacketConn) receive(call string, b []byte) (int, netip.AddrPort, error) {
	n := s.host.n
	n.enter()
	defer n.mu.Unlock()
	for {
		switch {
		case s.usable() != nil:
			return 0, netip.AddrPort{}, s.opError("read", s.remote, s.usable())
		case call == "read" && len(b) == 0:
			return 0, netip.AddrPort{}, nil // package net does not make the call
		case s.readBy != noDeadline && n.sched.Now() >= s.readBy:
			return 0, netip.AddrPort{}, s.opError("read", s.remote, os.ErrDeadlineExceeded)
		case s.errno != 0:
			err := s.errno
			s.errno = 0
			return 0, netip.AddrPort{}, s.opError("read", s.remote, os.NewSyscallError(call, err))
		case len(s.inbox) > 0:
			d := s.inbox[0]
			s.inbox = slices.Delete(s.inbox, 0, 1)
			s.bytes -= len(d.data)
			return copy(b, d.data), d.from, nil // what does not fit is lost
		}
		if s.readBy != noDeadline {
			if s.timer.Handler == nil {
				s.timer = clock.Event{Key: clock.Key{Name: s.key, Kind: kindDeadline}, Handler: clock.HandlerFunc(func(time.Duration) {
					n.mu.Lock()
					defer n.mu.Unlock()
					s.wake()
				})}
			}
			if s.timer.At() != s.readBy || !n.sched.Queued(&s.timer) {
				n.sched.Schedule(&s.timer, s.readBy)
			}
		}
		s.readers++
		s.cond.Wait()
		s.readers--
	}
}

// transmitTo queues a datagram, by the system call write or sendto; it leaves in
// an event.
func (s *PacketConn) transmitTo(call string, b []byte, to netip.AddrPort) (int, error) {
	h := s.host
	n := h.n
	n.enter()
	defer n.mu.Unlock()
	to = netip.AddrPortFrom(to.Addr().Unmap(), to.Port())
	switch {
	case s.usable() != nil:
		return 0, s.opError("write", to, s.usable())
	case s.writeBy != noDeadline && n.sched.Now() >= s.writeBy:
		return 0, s.opError("write", to, os.ErrDeadlineExceeded)
	case s.errno != 0:
		err := s.errno
		s.errno = 0
		return 0, s.opError("write", to, os.NewSyscallError(call, err))
	case call == "write" && !s.remote.IsValid():
		return 0, s.opError("write", to, os.NewSyscallError(call, syscall.EDESTADDRREQ))
	case len(b) > maxDatagram:
		return 0, s.opError("write", to, os.NewSyscallError(call, syscall.EMSGSIZE))
	}
	dst, err := s.reach().destination(to.Addr())
	if err != nil {
		return 0, s.opError("write", to, err)
	}
	to = netip.AddrPortFrom(dst, to.Port())
	out, src, in, err := h.route(to.Addr(), s.local.Addr())
	if err != nil {
		if errno, ok := err.(syscall.Errno); ok {
			err = os.NewSyscallError(call, errno)
		}
		return 0, s.opError("write", to, err)
	}
	size := len(b) + headers(UDP, to.Addr())
	if in != out && !out.carries(size) {
		return 0, s.opError("write", to, os.NewSyscallError(call, syscall.EMSGSIZE))
	}
	p := n.newPacket()
	p.data = append([]byte(nil), b...)
	p.proto, p.kind, p.size = UDP, Datagram, size
	p.src, p.dst = netip.AddrPortFrom(src, s.local.Port()), to
	p.from, p.out, p.in = h, out, in
	if in != nil {
		p.to = in.host
	}
	p.flow = s.flowTo(to, in)
	s.outbox = append(s.outbox, p)
	if slack := n.slack(h, p.to, out, in); slack < s.slack || !n.sched.Queued(&s.sender) {
		n.sched.ScheduleLazily(&s.sender, n.sched.Now(), slack)
		s.slack = slack
	}
	return len(b), nil
}

func (s *PacketConn) flowTo(to netip.AddrPort, in *Interface) *flow {
	f := s.flows[to]
	if f == nil {
		name := to.Addr().String()
		if in != nil {
			name = in.host.name
		}
		f = s.host.newFlow(name, UDP, to.Port())
		s.flows[to] = f
	}
	return f
}

// Fire sends what the program gave.
func (t *socketSender) Fire(now time.Duration) {
	s := (*PacketConn)(t)
	n := s.host.n
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return
	}
	if s.host.paused {
		s.host.stalled = append(s.host.stalled, s)
		return
	}
	for _, p := range s.outbox {
		n.send(now, p)
	}
	clear(s.outbox)
	s.outbox = s.outbox[:0]
}

// ReadFrom implements net.PacketConn. A datagram that is longer than b is cut.
func (s *PacketConn) ReadFrom(b []byte) (int, net.Addr, error) {
	k, from, err := s.receive("recvfrom", b)
	if err != nil {
		return 0, nil, err
	}
	return k, net.UDPAddrFromAddrPort(from), nil
}

// ReadFromUDPAddrPort is that of *net.UDPConn.
func (s *PacketConn) ReadFromUDPAddrPort(b []byte) (int, netip.AddrPort, error) {
	return s.receive("recvfrom", b)
}

// WriteTo implements net.PacketConn. It never blocks.
func (s *PacketConn) WriteTo(b []byte, to net.Addr) (int, error) {
	ua, ok := to.(*net.UDPAddr)
	if !ok {
		return 0, &net.OpError{Op: "write", Net: s.network, Source: s.LocalAddr(), Addr: to, Err: syscall.EINVAL}
	}
	if s.remote.IsValid() {
		return 0, &net.OpError{Op: "write", Net: s.network, Source: s.LocalAddr(), Addr: to, Err: net.ErrWriteToConnected}
	}
	return s.transmitTo("sendto", b, ua.AddrPort())
}

// WriteToUDPAddrPort is that of *net.UDPConn.
func (s *PacketConn) WriteToUDPAddrPort(b []byte, to netip.AddrPort) (int, error) {
	return s.WriteTo(b, net.UDPAddrFromAddrPort(to))
}

// Read takes a datagram from the peer of a dialled socket.
func (s *PacketConn) Read(b []byte) (int, error) {
	k, _, err := s.receive("read", b)
	return k, err
}

// Write sends a datagram to the peer of a dialled socket.
func (s *PacketConn) Write(b []byte) (int, error) {
	return s.transmitTo("write", b, s.remote)
}

// Close implements net.PacketConn.
func (s *PacketConn) Close() error {
	n := s.host.n
	n.enter()
	defer n.mu.Unlock()
	if err := s.usable(); err != nil {
		return s.opError("close", s.remote, err)
	}
	s.abandon()
	s.host.sockets = slices.DeleteFunc(s.host.sockets, func(x *PacketConn) bool { return x == s })
	return nil
}

func (s *PacketConn) abandon() {
	s.closed = true
	s.inbox, s.bytes = nil, 0
	s.wake()
}

// LocalAddr is a *net.UDPAddr.
func (s *PacketConn) LocalAddr() net.Addr { return addr(UDP, s.localAny()) }

// RemoteAddr is a *net.UDPAddr, or nil unless the socket was dialled.
func (s *PacketConn) RemoteAddr() net.Addr { return addr(UDP, s.remote) }

// SetDeadline implements net.PacketConn.
func (s *PacketConn) SetDeadline(t time.Time) error { return s.setDeadlines(t, true, true) }

// SetReadDeadline implements net.PacketConn.
func (s *PacketConn) SetReadDeadline(t time.Time) error { return s.setDeadlines(t, true, false) }

// SetWriteDeadline implements net.PacketConn. Only one that has passed matters.
func (s *PacketConn) SetWriteDeadline(t time.Time) error { return s.setDeadlines(t, false, true) }

func (s *PacketConn) setDeadlines(t time.Time, read, write bool) error {
	n := s.host.n
	n.enter()
	defer n.mu.Unlock()
	if err := s.usable(); err != nil {
		return s.opError("set", s.remote, err)
	}
	if by := n.deadline(t); read {
		s.readBy = by
	}
	if write {
		s.writeBy = n.deadline(t)
	}
	s.wake()
	return nil
}

// SetReadBuffer is how many bytes wait to be read; what comes beyond is lost.
func (s *PacketConn) SetReadBuffer(bytes int) error {
	s.host.n.enter()
	defer s.host.n.mu.Unlock()
	if err := s.usable(); err != nil {
		return s.opError("set", s.remote, err)
	}
	s.limit = max(bytes, 1)
	return nil
}

// SetWriteBuffer does nothing: a write never waits.
func (s *PacketConn) SetWriteBuffer(int) error { return nil }
