package netsim

import (
	"fmt"
	"time"
)

// Expiry is what a middlebox does with packets of a flow that it has forgotten.
type Expiry uint8

// The ways to treat forgotten flows.
const (
	Silently  Expiry = iota // they vanish
	WithReset               // they are answered by a RST
)

// flowTable is the memory of a NAT or a firewall: flows that were idle for too
// long are unknown, until a SYN or a datagram from inside makes them known.
type flowTable struct {
	fault *Fault
	idle  time.Duration
	how   Expiry
	seen  map[*flow]time.Duration
}

// ForgetIdle puts a NAT or a firewall between the hosts that forgets a flow in
// which nothing has passed for a while; both directions count, as they do for a
// connection tracker. Datagrams make a flow known again.
func (l *Link) ForgetIdle(idle time.Duration, how Expiry) *Fault {
	n := l.there.n
	n.mu.Lock()
	defer n.mu.Unlock()
	if idle <= 0 {
		panic(fmt.Errorf("netsim: Link.ForgetIdle(%v) of %s: the time must be positive", idle, l.name()))
	}
	f := &Fault{n: n, name: fmt.Sprintf("forget %s after %v", l.name(), idle), since: n.sched.Now()}
	t := &flowTable{fault: f, idle: idle, how: how, seen: map[*flow]time.Duration{}}
	l.there.table, l.back.table = t, t
	n.faults = append(n.faults, f)
	n.noteLocked(Event{Why: f.name})
	return f
}

// pass lets a packet through, or not; it then owns the packet.
func (t *flowTable) pass(n *Network, now time.Duration, p *packet) bool {
	last, known := t.seen[p.flow]
	fresh := p.kind&(SYN|Datagram) != 0 || !known
	if t.fault.undone || fresh || now-last < t.idle {
		t.seen[p.flow] = now
		return true
	}
	t.fault.hits++
	if t.how == WithReset {
		n.reject(now, p, "flow forgotten")
	} else {
		n.lose(now, p, "flow forgotten")
	}
	return false
}
