package netsim

import (
	"fmt"
	"net/netip"
	"time"
)

// Expiry is what a middlebox does with packets of a flow that it has forgotten.
type Expiry uint8

// The ways to treat forgotten flows.
const (
	Silently  Expiry = iota // they vanish
	WithReset               // they are answered by a RST
	// Rebind is a NAT in front of the link's first host: a stream that was
	// forgotten vanishes, a datagram from inside gets a new source port, and one
	// from outside to the old port vanishes.
	Rebind
)

// flowTable is the memory of a NAT or a firewall: flows that were idle for too
// long are unknown, until a SYN or a datagram makes them known.
type flowTable struct {
	fault  *Fault
	inside *Host
	idle   time.Duration
	how    Expiry
	seen   map[endpoints]time.Duration

	longest time.Duration // that a flow was idle, and was heard of again

	// Rebind: what a socket inside looks like from outside, where that differs,
	// and what stands behind a port outside, invalid when nothing does any more.
	outer map[endpoints]netip.AddrPort
	inner map[endpoints]netip.AddrPort
	last  uint16
}

// endpoints are a flow's ends, the same for both directions.
type endpoints struct {
	proto Proto
	in    netip.AddrPort
	out   netip.AddrPort
}

// ForgetIdle puts a NAT or a firewall between the hosts that forgets a flow in
// which nothing has passed for a while; both directions count, as they do for a
// connection tracker. A SYN or a datagram makes a flow known again. A link has
// one at most.
//
// Keep-alive probes count. By Go's default both ends of a stream send them every
// 15 s, so nothing is forgotten unless both switch them off: with a negative
// KeepAlive in [Dialer] and [ListenConfig], or by SetKeepAlive(false).
func (l *Link) ForgetIdle(idle time.Duration, how Expiry) *Fault {
	n := l.there.n
	n.enter()
	defer n.mu.Unlock()
	call := fmt.Sprintf("Link.ForgetIdle(%v, %d) of %s", idle, how, l.name())
	n.mustWork(call)
	switch {
	case idle <= 0:
		panic(fmt.Errorf("netsim: %s: the time must be positive", call))
	case how > Rebind:
		panic(fmt.Errorf("netsim: %s: there is no such expiry", call))
	case l.there.table != nil || l.back.table != nil:
		panic(fmt.Errorf("netsim: %s: there is one already, undo it first", call))
	}
	f := &Fault{
		n: n, name: fmt.Sprintf("forget %s after %v", l.name(), idle), since: n.sched.Now(),
		inPipes: []*pipe{&l.there.pipe, &l.back.pipe},
	}
	t := &flowTable{
		fault: f, inside: l.there.from, idle: idle, how: how,
		seen: map[endpoints]time.Duration{}, outer: map[endpoints]netip.AddrPort{}, inner: map[endpoints]netip.AddrPort{},
	}
	l.there.table, l.back.table = t, t
	n.faults = append(n.faults, f)
	n.noteLocked(Event{Why: f.name})
	return f
}

// pass lets a packet through, or not; it then belongs to somebody else.
func (t *flowTable) pass(n *Network, now time.Duration, p *packet) bool {
	outward := p.from == t.inside
	proto := p.proto
	if proto == ICMP {
		proto = p.about.proto
	}
	k := endpoints{proto, p.src, p.dst}
	if !outward {
		k = endpoints{proto, p.dst, p.src}
		in, translated := t.inner[k]
		if _, moved := t.outer[k]; moved && !translated || translated && !in.IsValid() {
			return t.forget(n, now, p) // to a port that is no longer in use
		}
		if translated {
			k.in = in
		}
	}
	if p.proto == ICMP {
		p.translate(outward, t.outer[k], k.in)
		return true
	}
	last, known := t.seen[k]
	if known {
		t.longest = max(t.longest, now-last)
	}
	expired := known && now-last >= t.idle
	switch {
	case !expired || p.kind == SYN:
	case p.proto == TCP:
		return t.forget(n, now, p)
	case t.how == Rebind && !outward:
		return t.forget(n, now, p)
	case t.how == Rebind:
		t.fault.hits++
		t.rebind(n, k)
	}
	t.seen[k] = now
	p.translate(outward, t.outer[k], k.in)
	return true
}

// rebind gives a flow another port outside. Ports come from the top of the
// range down, where a host inside takes its own last.
func (t *flowTable) rebind(n *Network, k endpoints) {
	if old, ok := t.outer[k]; ok {
		t.inner[endpoints{k.proto, old, k.out}] = netip.AddrPort{}
	}
	t.last++
	at := netip.AddrPortFrom(k.in.Addr(), 65535-t.last%4096)
	t.outer[k] = at
	t.inner[endpoints{k.proto, at, k.out}] = k.in
	n.noteLocked(Event{Why: fmt.Sprintf("%s: %v is now %v", t.fault.name, k.in, at)})
}

// translate rewrites the address of the end inside. outer is invalid where the
// two are the same.
func (p *packet) translate(outward bool, outer, inner netip.AddrPort) {
	if outward && outer.IsValid() {
		p.src = outer
	} else if !outward {
		p.dst = inner
	}
}

func (t *flowTable) forget(n *Network, now time.Duration, p *packet) bool {
	t.fault.hits++
	if t.how == WithReset && p.proto == TCP {
		n.reject(now, p, Reject, "flow forgotten")
	} else {
		n.lose(now, p, "flow forgotten")
	}
	return false
}
