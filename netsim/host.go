package netsim

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"
)

// A Host is a machine on the network: addresses, sockets, and the calls of
// package net that a program would make there.
type Host struct {
	n          *Network
	name       string
	interfaces []*Interface
	implicit   bool                      // the interface was made for want of one
	lo         *Interface                // for what the host sends to itself; always up
	behind     map[netip.Addr]*Interface // who sends datagrams here from a private address of another zone
	recent     *Path                     // the one that was asked for last
	conns      map[connKey]*Conn
	listeners  []*Listener
	sockets    []*PacketConn
	cursor     map[netip.AddrPort]uint32 // of local ports, by destination
	binds      uint32                    // listening ports that were chosen
	crashed    bool
	paused     bool
	asleep     []*packet     // that arrived while it is paused
	deferred   []*Conn       // that had something to do while it is paused
	stalled    []*PacketConn // that had something to send while it is paused
	watchers   []*watcher
	untold     []*watcher // that had something to tell while it is paused
	expensive  bool
	backlog    int
	resolver   *net.Resolver
}

type connKey struct{ local, remote netip.AddrPort }

// HostOption sets something about a host.
type HostOption func(*Host)

// Addr gives the host addresses, of either family. Default: one is assigned.
func Addr(addrs ...string) HostOption {
	return func(h *Host) {
		for _, s := range addrs {
			h.first().addrs = append(h.first().addrs, mustAddr("Addr", s))
		}
	}
}

// DualStack gives the host an IPv6 address (of 2001:db8::/32, RFC 3849) beside
// the IPv4 address that it gets anyway.
func DualStack() HostOption {
	return func(h *Host) {
		a4 := h.n.assign()
		h.n.next--
		b := a4.As4()
		a6 := netip.AddrFrom16([16]byte{0x20, 0x01, 0x0d, 0xb8, 12: b[0], 13: b[1], 14: b[2], 15: b[3]})
		h.first().addrs = append(h.first().addrs, a4, a6)
		h.n.next++
	}
}

// InZone puts the host's interface into a zone.
func InZone(zone string) HostOption { return func(h *Host) { h.first().zone = zone } }

// HostBacklog is the [Backlog] of this host's listeners.
func HostBacklog(n int) HostOption {
	if n < 0 {
		panic(fmt.Errorf("netsim: HostBacklog(%d): at least 0", n))
	}
	return func(h *Host) { h.backlog = n }
}

// first is the interface that a host has by default.
func (h *Host) first() *Interface {
	if len(h.interfaces) == 0 {
		h.interfaces = []*Interface{{host: h, name: "eth0", medium: Wired, isUp: true}}
		h.implicit = true
	}
	return h.interfaces[0]
}

func newHost(n *Network, name string) *Host {
	h := &Host{n: n, name: name, backlog: n.opts.backlog, conns: map[connKey]*Conn{}, cursor: map[netip.AddrPort]uint32{}}
	h.lo = &Interface{host: h, name: "lo", isUp: true}
	return h
}

// settle gives the host what its options left open.
func (h *Host) settle() {
	i := h.first()
	if len(i.addrs) == 0 {
		i.addrs = []netip.Addr{h.n.assign()}
	}
	i.claim(i.zone, i.addrs)
}

// Name is the host's name, which resolves to its addresses.
func (h *Host) Name() string { return h.name }

// String is the name.
func (h *Host) String() string { return h.name }

// Addrs are the addresses of all interfaces.
func (h *Host) Addrs() []netip.Addr {
	h.n.enter()
	defer h.n.mu.Unlock()
	return h.addrs()
}

func (h *Host) addrs() []netip.Addr {
	var as []netip.Addr
	for _, i := range h.interfaces {
		as = append(as, i.addrs...)
	}
	return as
}

// Addr is the host's first address.
func (h *Host) Addr() netip.Addr {
	if as := h.Addrs(); len(as) > 0 {
		return as[0]
	}
	return netip.Addr{}
}

func (h *Host) own(a netip.Addr) *Interface {
	if a.IsLoopback() {
		return h.lo
	}
	for _, i := range h.interfaces {
		if slices.Contains(i.addrs, a) {
			return i
		}
	}
	return nil
}

// route finds the way to a, for a datagram: as [Host.way] does, and back to a
// private address of another zone that has sent something here, as through the
// NAT that must have let it out.
func (h *Host) route(a, from netip.Addr) (out *Interface, src netip.Addr, in *Interface, err error) {
	out, src, in, err = h.way(a, from)
	if err == nil && in == nil {
		in = h.behind[a]
	} else if in != nil && in.host != h && scope(out.zone, src) != scope(in.zone, src) {
		if in.host.behind == nil {
			in.host.behind = map[netip.Addr]*Interface{}
		}
		in.host.behind[src] = out
	}
	return out, src, in, err
}

// way finds the way to a: the interface to leave by, the source address and the
// interface that has a, which is nil when nobody does. What a host sends to
// itself leaves by no interface that could be down.
func (h *Host) way(a, from netip.Addr) (out *Interface, src netip.Addr, in *Interface, err error) {
	if h.crashed {
		return nil, src, nil, syscall.ENETDOWN
	}
	if h.own(a) != nil {
		if from.IsValid() {
			a = from
		}
		return h.lo, a, h.lo, nil
	}
	var fallback *Interface
	var fallbackSrc netip.Addr
	for _, i := range h.interfaces {
		if !i.isUp || from.IsValid() && !slices.Contains(i.addrs, from) {
			continue
		}
		s := from
		if !s.IsValid() {
			for _, b := range i.addrs {
				if familyOf(b) == familyOf(a) {
					s = b
					break
				}
			}
		}
		if !s.IsValid() {
			continue
		}
		if o := i.owner(a); o != nil {
			return i, s, o, nil
		}
		if fallback == nil && (!i.isolated || scope(i.zone, a).zone == i.zone) {
			fallback, fallbackSrc = i, s
		}
	}
	if fallback == nil {
		return nil, src, nil, syscall.ENETUNREACH
	}
	if !h.n.past[a] {
		return nil, src, nil, nobody{a}
	}
	return fallback, fallbackSrc, nil, nil
}

// Crash stops the host without a word to anybody. Its programs' calls return
// net.ErrClosed; packets to it vanish; who watched its connectivity hears no
// more.
func (h *Host) Crash() {
	h.n.enter()
	defer h.n.mu.Unlock()
	h.n.mustOwn("Host.Crash of "+h.name, h)
	if h.crashed {
		return
	}
	h.n.noteLocked(Event{Why: "crash " + h.name})
	h.abandon()
	h.crashed, h.paused = true, false
	for _, p := range h.asleep {
		h.n.freePacket(p)
	}
	h.asleep, h.deferred, h.stalled = nil, nil, nil
	for _, w := range h.watchers {
		w.stopped = true
	}
	h.watchers, h.untold = nil, nil
}

// Restart brings a crashed host back with no socket open: what others still
// send it is answered by a RST. Start its programs again.
func (h *Host) Restart() {
	h.n.enter()
	defer h.n.mu.Unlock()
	h.n.mustOwn("Host.Restart of "+h.name, h)
	if h.crashed {
		h.n.noteLocked(Event{Why: "restart " + h.name})
	}
	h.crashed = false
}

// abandon drops all sockets.
func (h *Host) abandon() {
	for _, c := range h.sortedConns() {
		c.abandon()
	}
	for _, l := range slices.Clone(h.listeners) {
		l.abandon()
	}
	for _, s := range slices.Clone(h.sockets) {
		s.abandon()
		s.outbox = nil
	}
	h.conns, h.listeners, h.sockets = map[connKey]*Conn{}, nil, nil
}

// Pause lets the host sleep, as a phone does: nothing moves in or out of it and
// its connections' timers stand still, but nothing is lost. Its programs'
// goroutines do not know; give them a [clock.Skewed] to let their time stand
// still too.
func (h *Host) Pause() {
	h.n.enter()
	defer h.n.mu.Unlock()
	h.n.mustOwn("Host.Pause of "+h.name, h)
	if !h.paused && !h.crashed {
		h.n.noteLocked(Event{Why: "pause " + h.name})
		h.paused = true
	}
}

// Resume wakes a paused host: what came meanwhile arrives now, timers that ran
// out meanwhile fire now.
func (h *Host) Resume() {
	h.n.enter()
	defer h.n.mu.Unlock()
	h.n.mustOwn("Host.Resume of "+h.name, h)
	if !h.paused {
		return
	}
	h.n.noteLocked(Event{Why: "resume " + h.name})
	h.paused = false
	now := h.n.sched.Now()
	for _, p := range h.asleep {
		h.n.schedule(p, now)
	}
	h.asleep = nil
	for _, c := range h.deferred {
		c.deferred = false
		c.kick(now)
		h.n.sched.Schedule(&c.timer, now)
	}
	h.deferred = nil
	for _, s := range h.stalled {
		h.n.sched.Schedule(&s.sender, now)
	}
	h.stalled = nil
	for _, w := range h.untold {
		w.next()
	}
	h.untold = nil
}

// sortedConns are the host's connections in the order of their names.
func (h *Host) sortedConns() []*Conn {
	cs := make([]*Conn, 0, len(h.conns))
	for _, c := range h.conns {
		cs = append(cs, c)
	}
	slices.SortFunc(cs, func(a, b *Conn) int { return strings.Compare(a.key, b.key) })
	return cs
}

// inputSegment takes a segment that arrived.
func (h *Host) inputSegment(now time.Duration, p *packet) {
	n := h.n
	n.record(now, p, Delivered, "")
	c := h.conns[connKey{p.dst, p.src}]
	if c != nil && c.ep.State() == timeWaiting && p.kind == SYN {
		c.forget() // a new connection may take the place of one that only waits
		c = nil
	}
	if c == nil && p.kind == SYN {
		if l := h.listener(p.dst); l != nil {
			l.inputSYN(now, p)
			return
		}
	}
	if c == nil {
		if p.kind != RST {
			n.send(now, n.resetFor(p))
		}
		n.freePacket(p)
		return
	}
	seg := p.seg
	p.seg = nil
	n.freePacket(p)
	if l := c.listener; l != nil && l.ignores(seg) {
		n.note(Event{Why: h.name + ": backlog full, ACK ignored", Flow: c.flow.name})
		seg.Free()
		return
	}
	c.ep.Input(now, seg)
	c.settle(now)
}

// ephemeral picks a local port for a connection from src to dst. Ports follow
// one another per destination, from an offset that is a hash (RFC 6056), so
// that dials to different places do not disturb each other's numbers.
func (h *Host) ephemeral(src netip.Addr, dst netip.AddrPort) (netip.AddrPort, error) {
	first := uint32(h.n.opts.ports[0])
	count := uint32(h.n.opts.ports[1]) - first + 1
	offset := uint32(drawKey(h.n.opts.seed, h.name+">"+dst.String(), false) % uint64(count))
	for range count {
		port := uint16(first + (offset+h.cursor[dst])%count)
		h.cursor[dst]++
		local := netip.AddrPortFrom(src, port)
		if h.conns[connKey{local, dst}] == nil && h.listener(local) == nil {
			return local, nil
		}
	}
	return netip.AddrPort{}, syscall.EADDRNOTAVAIL
}

// listenPort picks a port for a listener or a packet connection.
func (h *Host) listenPort(taken func(port uint16) bool) (uint16, error) {
	first := uint32(h.n.opts.ports[0])
	count := uint32(h.n.opts.ports[1]) - first + 1
	offset := uint32(drawKey(h.n.opts.seed, h.name, true) % uint64(count))
	for range count {
		port := uint16(first + (offset+h.binds)%count)
		h.binds++
		if !taken(port) {
			return port, nil
		}
	}
	return 0, syscall.EADDRINUSE
}

// noteLocked is note for callers that hold the lock.
func (n *Network) noteLocked(e Event) { n.note(e) }
