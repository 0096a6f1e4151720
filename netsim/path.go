package netsim

import (
	"fmt"
	"time"
)

// A pipe is something that packets of one direction go through: a path between
// two hosts, or one direction of an interface.
type pipe struct {
	n          *Network
	name       string
	ends       [2]*Host // nil but for a path's
	conditions *Conditions
	weather    *weather // nil while the conditions are plain
	faults     []*Fault
	cuts       uint64 // how often it was cut: what was on its way then is lost
	lastCut    *Fault
	table      *flowTable
}

func (p *pipe) set(c Conditions) {
	p.conditions = &c
	switch {
	case c.plain():
		p.weather = nil
	case p.weather == nil:
		p.weather = newWeather(p.n.opts.seed, p.name, false, &c)
	default:
		p.weather.set(&c)
	}
}

func (p *pipe) remove(f *Fault) {
	for i, g := range p.faults {
		if g == f {
			p.faults = append(p.faults[:i:i], p.faults[i+1:]...)
			return
		}
	}
	if p.table != nil && p.table.fault == f {
		p.table = nil
	}
}

// quiet reports whether the pipe treats all packets alike, so that a burst may
// pass in one piece.
func (p *pipe) quiet() bool { return p.weather == nil && len(p.faults) == 0 && p.table == nil }

// A Path is one direction between two hosts.
type Path struct {
	pipe
	from, to *Host
}

// path finds or makes a path. It runs under the lock.
func (n *Network) path(from, to *Host) *Path {
	if p := from.recent; p != nil && p.to == to {
		return p
	}
	key := [2]*Host{from, to}
	p := n.paths[key]
	if p == nil {
		p = &Path{pipe: pipe{n: n, name: from.name + ">" + to.name, ends: [2]*Host{from, to}}, from: from, to: to}
		if from == to {
			p.set(Conditions{MTU: loopbackMTU})
			p.weather = nil
		} else {
			p.set(n.opts.defaults)
		}
		n.paths[key] = p
	}
	from.recent = p
	return p
}

const loopbackMTU = 65536

// Path is the direction from one host to another. Paths cost nothing until
// they are used.
func (n *Network) Path(from, to *Host) *Path {
	n.enter()
	defer n.mu.Unlock()
	n.mustOwn("Network.Path", from, to)
	return n.path(from, to)
}

// Link is both directions between two hosts.
func (n *Network) Link(a, b *Host) *Link {
	n.enter()
	defer n.mu.Unlock()
	n.mustOwn("Network.Link", a, b)
	return &Link{n.path(a, b), n.path(b, a)}
}

func (n *Network) mustOwn(call string, hosts ...*Host) {
	n.mustWork(call)
	for _, h := range hosts {
		if h == nil {
			panic(fmt.Errorf("netsim: %s: a host is nil", call))
		}
		if h.n != n {
			panic(fmt.Errorf("netsim: %s: host %q belongs to another network", call, h.name))
		}
	}
}

// A Link is two paths, there and back.
type Link struct{ there, back *Path }

func (l *Link) name() string { return l.there.from.name + "-" + l.there.to.name }

func (l *Link) joins(a, b *Host) bool {
	return l.there.from == a && l.there.to == b || l.there.from == b && l.there.to == a
}

// SetConditions sets the weather, from the next packet on. Invalid conditions
// panic with the field and its value.
func (p *Path) SetConditions(c Conditions) { p.n.setConditions(c, p.name, &p.pipe) }

// SetConditions sets the weather of both directions.
func (l *Link) SetConditions(c Conditions) {
	l.there.n.setConditions(c, l.name(), &l.there.pipe, &l.back.pipe)
}

func (n *Network) setConditions(c Conditions, what string, pipes ...*pipe) {
	if err := c.Validate(); err != nil {
		panic(fmt.Errorf("netsim: SetConditions of %s: %w", what, err))
	}
	n.enter()
	defer n.mu.Unlock()
	n.mustWork("SetConditions of " + what)
	for _, p := range pipes {
		p.set(c)
	}
	n.noteLocked(Event{Why: what + ": " + c.String()})
}

// Conditions is the weather of the path.
func (p *Path) Conditions() Conditions {
	p.n.enter()
	defer p.n.mu.Unlock()
	return *p.conditions
}

// The verbs. Each gives the fault, which counts its hits and can be undone by
// itself; Heal and Release undo all of their kind.

// Cut makes the path silent: packets vanish, those on their way too.
func (p *Path) Cut() *Fault { return p.n.break_("cut", p.name, cutVerdict, 0, &p.pipe) }

// Cut makes both directions silent: packets vanish, those on their way too.
func (l *Link) Cut() *Fault {
	return l.there.n.break_("cut", l.name(), cutVerdict, 0, &l.there.pipe, &l.back.pipe)
}

// Hold keeps packets where they are, those on their way too, until Release.
func (p *Path) Hold() *Fault { return p.n.break_("hold", p.name, Verdict{Action: Hold}, 0, &p.pipe) }

// Hold keeps packets of both directions until Release.
func (l *Link) Hold() *Fault {
	return l.there.n.break_("hold", l.name(), Verdict{Action: Hold}, 0, &l.there.pipe, &l.back.pipe)
}

// Refuse answers every new connection with a reset, as a firewall that rejects
// does: ECONNREFUSED after a round trip. Connections that exist go on.
func (p *Path) Refuse() *Fault {
	return p.n.break_("refuse", p.name, Verdict{Action: Reject}, SYN|Datagram, &p.pipe)
}

// Refuse answers every new connection, whoever opens it, with a reset.
func (l *Link) Refuse() *Fault {
	return l.there.n.break_("refuse", l.name(), Verdict{Action: Reject}, SYN|Datagram, &l.there.pipe, &l.back.pipe)
}

// Unreach answers every packet with a router's word that the host cannot be
// reached: a dial fails with EHOSTUNREACH after a round trip, a dialled packet
// connection's next call likewise; a stream that is established takes it as
// silence, as on Linux.
func (p *Path) Unreach() *Fault {
	return p.n.break_("unreach", p.name, Verdict{Action: Unreach}, 0, &p.pipe)
}

// Unreach answers every packet of both directions with a router's word that the
// host cannot be reached.
func (l *Link) Unreach() *Fault {
	return l.there.n.break_("unreach", l.name(), Verdict{Action: Unreach}, 0, &l.there.pipe, &l.back.pipe)
}

var cutVerdict = Verdict{Action: Drop, Why: "cut"}

// Heal undoes every fault of the path.
func (p *Path) Heal() { p.n.heal("Heal", p.name, func(*Fault) bool { return true }, &p.pipe) }

// Heal undoes every fault of both directions.
func (l *Link) Heal() {
	l.there.n.heal("Heal", l.name(), func(*Fault) bool { return true }, &l.there.pipe, &l.back.pipe)
}

// Release lets go what Hold kept, in order, each packet now.
func (p *Path) Release() { p.n.heal("Release", p.name, holds, &p.pipe) }

// Release lets go what Hold kept in both directions.
func (l *Link) Release() { l.there.n.heal("Release", l.name(), holds, &l.there.pipe, &l.back.pipe) }

func holds(f *Fault) bool { return f.rule.Verdict.Action == Hold }

// break_ puts a fault into pipes.
func (n *Network) break_(verb, what string, v Verdict, kind Kind, pipes ...*pipe) *Fault {
	n.enter()
	defer n.mu.Unlock()
	n.mustWork(verb + " of " + what)
	f := &Fault{n: n, name: verb + " " + what, rule: Rule{Kind: kind, Verdict: v}, since: n.sched.Now(), inPipes: pipes}
	for _, p := range pipes {
		p.faults = append(p.faults, f)
		if v.Action == Drop {
			p.cuts++
			p.lastCut = f
		}
	}
	n.faults = append(n.faults, f)
	n.noteLocked(Event{Why: f.name})
	return f
}

func (n *Network) heal(call, what string, which func(*Fault) bool, pipes ...*pipe) {
	n.enter()
	defer n.mu.Unlock()
	n.mustWork(call + " of " + what)
	for _, p := range pipes {
		for _, f := range append([]*Fault(nil), p.faults...) {
			if which(f) {
				n.undo(f)
			}
		}
		if p.table != nil && which(p.table.fault) {
			n.undo(p.table.fault)
		}
	}
}

// present is the phase of a schedule that holds, or the conditions themselves.
func (c *Conditions) present(now time.Duration) *Conditions {
	if c.Schedule != nil {
		return c.Schedule.at(now)
	}
	return c
}
