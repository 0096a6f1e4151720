package netsim

import (
	"syscall"
	"time"

	"github.com/seed-5a7f77c4/deadair/netsim/internal/tcp"
)

// A RST counts only if its numbers fit what its receiver expects (RFC 5961), so
// one that a router makes up from the packet in its hands, as iptables' REJECT
// does, is stale to an end for which more is on its way. What resets here knows
// the numbers of both directions, as connection trackers, load balancers and
// their likes do that end a connection for good: its RST always counts.

// Reset resets every connection between the hosts: both ends get a RST at once.
// A dial that is under way is refused. The fault counts the ends.
func (l *Link) Reset() *Fault {
	a, b := l.there.from, l.there.to
	return l.there.n.resetAll(l.name(), func(c *Conn) bool {
		return c.host == a && c.peerHost == b || c.host == b && c.peerHost == a
	})
}

// Reset sends a RST along the path on every connection between the hosts: the
// host at its end sees ECONNRESET, the other notices when it next sends.
func (p *Path) Reset() *Fault {
	return p.n.resetAll(p.name, func(c *Conn) bool { return c.host == p.to && c.peerHost == p.from })
}

// ResetFlow resets the one connection of that name, which is what [Conn.Flow] and
// the trace call it: both ends get a RST at once. To reset it by what passes on
// it, give a [Rule] the action Reset.
func (n *Network) ResetFlow(flow string) *Fault {
	return n.resetAll(flow, func(c *Conn) bool { return c.flow.name == flow })
}

// resetAll resets the ends that match.
func (n *Network) resetAll(what string, match func(*Conn) bool) *Fault {
	n.enter()
	defer n.mu.Unlock()
	n.mustWork("Reset of " + what)
	now := n.sched.Now()
	f := &Fault{n: n, name: "reset " + what, since: now}
	n.faults = append(n.faults, f)
	n.noteLocked(Event{Why: f.name})
	for _, h := range n.order {
		for _, c := range h.sortedConns() {
			if match(c) && c.getReset(now) {
				f.hits++
			}
		}
	}
	return f
}

// getReset lets an end have a RST, in an event. It reports whether it minds.
func (c *Conn) getReset(now time.Duration) bool {
	switch c.ep.State() {
	case tcp.Closed:
		if !c.start {
			return false
		}
		c.failAt(syscall.ECONNREFUSED)
	case tcp.TimeWaiting:
		return false
	case tcp.SynSent:
		c.failAt(syscall.ECONNREFUSED)
	default:
		c.resetAt(now)
	}
	return true
}

// resetEnds resets both ends of the connection that p belongs to: one when p would
// have arrived, behind what is on its way, and p's sender a round trip later.
func (n *Network) resetEnds(now time.Duration, p *packet) {
	back := n.answer(p)
	there := now + p.latency(now)
	for _, end := range [2]struct {
		c  *Conn
		at time.Duration
	}{{p.to.conns[connKey{p.dst, p.src}], there}, {p.from.conns[connKey{p.src, p.dst}], there + back.latency(now)}} {
		if end.c != nil {
			n.at(end.c.key, kindArrive, end.at, func(now time.Duration) {
				n.mu.Lock()
				defer n.mu.Unlock()
				end.c.getReset(now)
			})
		}
	}
	n.freePacket(back)
}
