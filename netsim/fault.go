package netsim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Action is what a [Verdict] does with a packet.
type Action uint8

// The actions. Pass is the zero value, so that a verdict which only delays
// passes.
const (
	Pass    Action = iota
	Drop           // it vanishes
	Reject         // it vanishes, and its sender is told: a RST with the packet's numbers for TCP, an ICMP error for UDP
	Hold           // it waits until the fault is undone
	Unreach        // it vanishes, and a router tells its sender that the host cannot be reached: EHOSTUNREACH
	Reset          // it vanishes, and both ends of its connection get a RST that they cannot take for stale, the sender a round trip later; TCP only
)

// Verdict is what a [Rule] does with the packets that it matches.
type Verdict struct {
	Action    Action
	Delay     time.Duration // on top of the path's own
	Duplicate int           // how many copies arrive besides
	Corrupt   bool          // one bit is inverted; a stream's segment then fails its checksum and is lost
	Truncate  int           // a datagram's payload is cut to so many bytes; a longer segment fails its checksum; 0 cuts nothing
	Why       string        // what the trace says; default: the action
}

// Packet is what a rule can look at. Its addresses are those of the ends, whatever
// a NAT makes of them on the way.
type Packet struct {
	From, To *Host
	Event                  // Fate is not known yet; Payload is complete
	Conn     int           // the n-th connection, from 1, between these hosts and this port
	Age      time.Duration // since the connection's first packet
}

// A Rule says which packets a [Verdict] applies to. Fields that are zero match
// everything; those that are set must all match. A rule that can match nothing
// panics when it is applied.
type Rule struct {
	Name string // for the trace, and for the error if the rule never bites

	From, To *Host // direction
	Between  *Link // either direction
	Proto    Proto
	Port     uint16 // source or destination
	SrcPort  uint16
	DstPort  uint16
	Kind     Kind // any of these
	Conn     int  // only the n-th connection, from 1
	Flow     string
	MinSize  int // with headers, in bytes
	MaxSize  int
	// First and Last are the range of packets, from 1, among those that match all
	// the rest. Last 0 means First only if First is set.
	First, Last int
	Every       int           // every n-th of those
	Established bool          // only streams that were established when the rule was applied
	New         bool          // only what was not: streams opened later, and datagrams
	After       time.Duration // only after this time since the network was made
	// Match looks at the packet itself. It runs in the network's midst: it must
	// not call the network, and should depend on nothing but the packets.
	Match func(Packet) bool

	Verdict Verdict
	// MayMiss says that the rule need not bite. Otherwise a run in which nothing
	// matched it ends with an error: a test that passes because its fault missed
	// is the worst kind.
	MayMiss bool
}

// A Fault is something that was broken: a rule, or a verb such as Cut.
type Fault struct {
	n       *Network
	name    string
	rule    Rule
	since   time.Duration
	matched int
	hits    int
	mayMiss bool
	undone  bool
	inPipes []*pipe
	held    []*packet
}

// Name is what the fault is called in the trace.
func (f *Fault) Name() string { return f.name }

// Hits is how many packets it has changed.
func (f *Fault) Hits() int {
	f.n.enter()
	defer f.n.mu.Unlock()
	return f.hits
}

// MayMiss says that it is no mistake if the fault never bites.
func (f *Fault) MayMiss() *Fault {
	f.n.enter()
	defer f.n.mu.Unlock()
	f.mayMiss = true
	f.forget()
	return f
}

// Undo takes the fault back. Packets that it held go on. Undoing twice does
// nothing.
func (f *Fault) Undo() {
	f.n.enter()
	defer f.n.mu.Unlock()
	f.n.undo(f)
}

// Apply puts a rule in force, also for connections that do not exist yet. It
// gives the fault, whose Undo takes the rule back.
func (n *Network) Apply(r Rule) *Fault {
	n.enter()
	defer n.mu.Unlock()
	n.mustWork(fmt.Sprintf("Network.Apply(%q)", r.Name))
	if err := n.validRule(&r); err != nil {
		panic(fmt.Errorf("netsim: Network.Apply(%q): %w", r.Name, err))
	}
	if r.Name == "" {
		r.Name = r.String()
	}
	f := &Fault{n: n, name: "rule " + r.Name, rule: r, since: n.sched.Now(), mayMiss: r.MayMiss}
	n.rules = append(n.rules, f)
	n.faults = append(n.faults, f)
	n.noteLocked(Event{Why: "apply " + f.name})
	return f
}

func (n *Network) validRule(r *Rule) error {
	for _, h := range []*Host{r.From, r.To} {
		if h != nil && h.n != n {
			return fmt.Errorf("host %q belongs to another network", h.name)
		}
	}
	if l := r.Between; l != nil && (r.From != nil || r.To != nil) {
		return fmt.Errorf("Between excludes From and To")
	}
	if r.Verdict.Action == Reset && r.Proto == 0 {
		r.Proto = TCP
	}
	if r.First == 0 && r.Last > 0 {
		r.First = 1
	}
	if r.First > 0 && r.Last == 0 {
		r.Last = r.First
	}
	if l := r.Between; l != nil && (l.there == nil || l.there.n != n) {
		return fmt.Errorf("the link of Between belongs to another network, or to none")
	}
	v := r.Verdict
	switch {
	case r.New && r.Established:
		return fmt.Errorf("no connection is both New and Established")
	case r.First < 0 || r.Last < r.First:
		return fmt.Errorf("packets %d to %d are none", r.First, r.Last)
	case r.Every < 0 || r.Conn < 0 || r.MinSize < 0 || r.MaxSize < 0 || r.After < 0:
		return fmt.Errorf("a negative number (Every %d, Conn %d, MinSize %d, MaxSize %d, After %v) matches nothing", r.Every, r.Conn, r.MinSize, r.MaxSize, r.After)
	case r.MinSize > maxPacket:
		return fmt.Errorf("no packet is as large as %d bytes", r.MinSize)
	case r.MaxSize > 0 && r.MaxSize < r.MinSize:
		return fmt.Errorf("sizes %d to %d are none", r.MinSize, r.MaxSize)
	case r.Every > 0 && r.First > 0 && r.Last/r.Every == (r.First-1)/r.Every:
		return fmt.Errorf("none of the packets %d to %d is an %d-th", r.First, r.Last, r.Every)
	case r.MaxSize > 0 && r.MaxSize < ipv4Header+udpHeader:
		return fmt.Errorf("no packet is as small as %d bytes", r.MaxSize)
	case r.Port > 0 && r.SrcPort > 0 && r.DstPort > 0 && r.Port != r.SrcPort && r.Port != r.DstPort:
		return fmt.Errorf("no packet from port %d to port %d has port %d", r.SrcPort, r.DstPort, r.Port)
	case r.Proto > ICMP:
		return fmt.Errorf("there is no transport %d", r.Proto)
	case r.Proto != 0 && r.Kind != 0 && r.Kind&kindsOf(r.Proto) == 0:
		return fmt.Errorf("%v has no %v", r.Proto, r.Kind)
	case r.Established && (r.Proto == UDP || r.Kind != 0 && r.Kind&^(SYN|SYNACK|Datagram) == 0):
		return fmt.Errorf("an established connection sends no %v", cmp.Or(r.Kind, Datagram))
	case v.Action == Reset && r.Proto != TCP:
		return fmt.Errorf("%v has no connection that could be reset", r.Proto)
	case v.Delay < 0 || v.Duplicate < 0 || v.Truncate < 0:
		return fmt.Errorf("a negative number (Delay %v, Duplicate %d, Truncate %d) in the verdict", v.Delay, v.Duplicate, v.Truncate)
	case v.Delay > maxDelay || v.Duplicate > maxCopies:
		return fmt.Errorf("a delay of %v or %d copies in the verdict are more than %v or %d", v.Delay, v.Duplicate, maxDelay, maxCopies)
	case v.Action > Reset:
		return fmt.Errorf("there is no action %d", v.Action)
	case v.Action != Pass && v != Verdict{Action: v.Action, Why: v.Why}:
		return fmt.Errorf("a packet that does not pass cannot be delayed, doubled, corrupted or cut besides")
	case v == Verdict{Why: v.Why}:
		return fmt.Errorf("the verdict does nothing")
	}
	return nil
}

// maxCopies bounds what a verdict makes of one packet.
const maxCopies = 1 << 16

// kindsOf are the kinds of packet that a transport has.
func kindsOf(p Proto) Kind {
	switch p {
	case TCP:
		return SYN | SYNACK | ACK | Data | FIN | RST
	case UDP:
		return Datagram
	}
	return Unreachable
}

// maxPacket is the largest packet there is: 64 KiB behind the largest header.
const maxPacket = 65535 + ipv6Header

var actionNames = [...]string{"pass", "drop", "reject", "hold", "unreach", "reset"}

// String describes the rule.
func (r Rule) String() string {
	s := []string{actionNames[min(int(r.Verdict.Action), len(actionNames)-1)]}
	say := func(on bool, format string, args ...any) {
		if on {
			s = append(s, fmt.Sprintf(format, args...))
		}
	}
	say(r.Verdict.Delay > 0, "+%v", r.Verdict.Delay)
	say(r.Verdict.Duplicate > 0, "doubled %d times", r.Verdict.Duplicate)
	say(r.Verdict.Corrupt, "corrupted")
	say(r.Verdict.Truncate > 0, "cut to %d bytes", r.Verdict.Truncate)
	say(r.Proto != 0, "%v", r.Proto)
	say(r.Kind != 0, "%v", r.Kind)
	if r.From != nil {
		say(true, "from %s", r.From.name)
	}
	if r.To != nil {
		say(true, "to %s", r.To.name)
	}
	if r.Between != nil {
		say(true, "between %s", r.Between.name())
	}
	say(r.Port != 0, "port %d", r.Port)
	say(r.SrcPort != 0, "from port %d", r.SrcPort)
	say(r.DstPort != 0, "to port %d", r.DstPort)
	say(r.Flow != "", "of %s", r.Flow)
	say(r.Conn != 0, "connection %d", r.Conn)
	say(r.MinSize != 0, "of %d bytes or more", r.MinSize)
	say(r.MaxSize != 0, "of %d bytes or less", r.MaxSize)
	say(r.Established, "established before")
	say(r.New, "opened later")
	say(r.After != 0, "after %v", r.After)
	say(r.Match != nil, "that match")
	say(r.First != 0, "packets %d to %d", r.First, r.Last)
	say(r.Every != 0, "every %d.", r.Every)
	return strings.Join(s, " ")
}

// matches asks the rule about p. It counts, so it is asked once a packet.
func (f *Fault) matches(now time.Duration, p *packet) bool {
	r := &f.rule
	if r.From != nil && r.From != p.from || r.To != nil && r.To != p.to ||
		r.Between != nil && !r.Between.joins(p.from, p.to) ||
		r.Proto != 0 && r.Proto != p.proto ||
		r.Kind != 0 && r.Kind&p.kind == 0 ||
		r.Port != 0 && r.Port != p.src.Port() && r.Port != p.dst.Port() ||
		r.SrcPort != 0 && r.SrcPort != p.src.Port() || r.DstPort != 0 && r.DstPort != p.dst.Port() ||
		r.MinSize != 0 && p.size < r.MinSize || r.MaxSize != 0 && p.size > r.MaxSize ||
		r.Flow != "" && r.Flow != p.flow.name || r.Conn != 0 && r.Conn != p.flow.nth ||
		r.After > now ||
		r.Established && !(p.flow.openedAt >= 0 && p.flow.openedAt <= f.since) ||
		r.New && p.flow.openedAt >= 0 && p.flow.openedAt <= f.since {
		return false
	}
	if r.Match != nil && !r.Match(p.view(now)) {
		return false
	}
	f.matched++
	if r.First > 0 && (f.matched < r.First || f.matched > r.Last) {
		return false
	}
	if r.Every > 0 && f.matched%r.Every != 0 {
		return false
	}
	return true
}

// forget lets go of a fault that was taken back, unless it will be asked whether
// it bit. It runs under the lock.
func (f *Fault) forget() {
	if i := slices.Index(f.n.faults, f); i >= 0 && f.undone && (f.hits > 0 || f.mayMiss) {
		f.n.faults = slices.Delete(f.n.faults, i, i+1)
	}
}

// undo takes f out of force. It runs under the lock.
func (n *Network) undo(f *Fault) {
	if f.undone {
		return
	}
	f.undone = true
	for i, g := range n.rules {
		if g == f {
			n.rules = append(n.rules[:i:i], n.rules[i+1:]...)
			break
		}
	}
	for _, p := range f.inPipes {
		p.remove(f)
	}
	f.forget()
	n.noteLocked(Event{Why: "undo " + f.name})
	now := n.sched.Now()
	for _, p := range f.held {
		n.schedule(p, now)
	}
	f.held = nil
}
