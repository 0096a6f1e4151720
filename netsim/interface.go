package netsim

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"syscall"
)

// Medium is what an interface is made of.
type Medium uint8

// The media, in the order in which a host prefers them.
const (
	Wired Medium = iota + 1
	Wireless
	Cellular
	Tailnet
)

// String is the medium in a word.
func (m Medium) String() string {
	switch m {
	case Wired:
		return "wired"
	case Wireless:
		return "wifi"
	case Cellular:
		return "cellular"
	case Tailnet:
		return "tailnet"
	}
	return "unknown"
}

// GoneMode is what happens to a host's sockets whose address goes away. Streams
// end with the error, those under way too; of a packet connection the next call
// fails. Listeners, and packet connections that are bound to no address, stay.
type GoneMode uint8

// The modes.
const (
	// Vanish: packets vanish, as on Linux; the program notices by its time-outs.
	// A stream goes on if the address comes back in time.
	Vanish GoneMode = iota
	// Abort: calls fail at once with ECONNABORTED, as on mobile systems.
	Abort
	// NetDown: calls fail at once with ENETDOWN.
	NetDown
)

// An Interface connects a host to a zone. Private addresses mean something in
// their own zone only; all others are reachable from every interface that
// leads to the internet. A private address can dial out of its zone; there is no
// address translation, so the other side sees it as it is, and can only answer.
//
// A host leaves by the first of its interfaces, in the order of [Medium], that is
// up and reaches the destination; the source is that interface's first address
// of the destination's family.
type Interface struct {
	host     *Host
	name     string
	medium   Medium
	zone     string
	isolated bool // does not lead to the internet
	addrs    []netip.Addr
	isUp     bool
	gone     GoneMode
	up, down *pipe                 // nil until they have conditions or faults
	left     map[string]*Interface // stands for this one in zones that it moved out of
}

// InterfaceOption sets something about an interface.
type InterfaceOption func(*Interface)

// Zone puts the interface into a zone: a LAN, a tailnet. Default: "", where
// hosts are that say nothing.
func Zone(name string) InterfaceOption { return func(i *Interface) { i.zone = name } }

// Isolated says that nothing outside the interface's zone can be reached
// through it, nor it from there.
func Isolated() InterfaceOption { return func(i *Interface) { i.isolated = true } }

// StartsDown says that the interface is down at first.
func StartsDown() InterfaceOption { return func(i *Interface) { i.isUp = false } }

// WhenGone says what happens to sockets when the interface goes down or loses
// their address. Default: [Vanish].
func WhenGone(m GoneMode) InterfaceOption {
	if m > NetDown {
		panic(fmt.Errorf("netsim: WhenGone(%d): there is no such mode", m))
	}
	return func(i *Interface) { i.gone = m }
}

// Addresses are the interface's. Default: one is assigned from 198.18.0.0/15.
func Addresses(addrs ...string) InterfaceOption {
	return func(i *Interface) {
		for _, s := range addrs {
			i.addrs = append(i.addrs, mustAddr("Addresses", s))
		}
	}
}

func mustAddr(call, s string) netip.Addr {
	a, err := netip.ParseAddr(s)
	if err != nil || a.IsUnspecified() || a.IsMulticast() || a.IsLoopback() {
		panic(fmt.Errorf("netsim: %s(%q): not an address that an interface can have", call, s))
	}
	return a.Unmap()
}

// Interface adds an interface to a host. The first one that is added takes the
// place of the interface that a host has by default, if nothing used it yet.
func (h *Host) Interface(name string, medium Medium, opts ...InterfaceOption) *Interface {
	h.n.enter()
	defer h.n.mu.Unlock()
	h.n.mustWork(fmt.Sprintf("Host.Interface(%q) of %s", name, h.name))
	if h.implicit {
		if len(h.conns) > 0 || len(h.listeners) > 0 || len(h.sockets) > 0 {
			panic(fmt.Errorf("netsim: Host.Interface(%q) of %s: the host is in use already", name, h.name))
		}
	}
	if name == "" || strings.ContainsFunc(name, odd) {
		panic(fmt.Errorf("netsim: Host.Interface(%q) of %s: a name has no spaces and none of : > # ! / [ ]", name, h.name))
	}
	if medium < Wired || medium > Tailnet {
		panic(fmt.Errorf("netsim: Host.Interface(%q) of %s: there is no medium %d", name, h.name, medium))
	}
	if slices.ContainsFunc(opts, func(o InterfaceOption) bool { return o == nil }) {
		panic(fmt.Errorf("netsim: Host.Interface(%q) of %s: an option is nil", name, h.name))
	}
	for _, i := range h.interfaces {
		if i.name == name && !h.implicit {
			panic(fmt.Errorf("netsim: Host.Interface(%q) of %s: there is one of that name", name, h.name))
		}
	}
	i := &Interface{host: h, name: name, medium: medium, isUp: true}
	for _, opt := range opts {
		opt(i)
	}
	if len(i.addrs) == 0 {
		i.addrs = []netip.Addr{h.n.assign()}
	}
	var replaced []*Interface
	if h.implicit {
		replaced = h.interfaces
	}
	i.claim(i.zone, i.addrs, replaced...)
	if h.implicit {
		h.interfaces, h.implicit = nil, false
	}
	h.interfaces = append(h.interfaces, i)
	slices.SortStableFunc(h.interfaces, func(a, b *Interface) int { return int(a.medium) - int(b.medium) })
	h.pathChanged()
	return i
}

// assign gives the next free address of 198.18.0.0/15.
func (n *Network) assign() netip.Addr {
	for {
		n.next++
		a := netip.AddrFrom4([4]byte{198, 18 + byte(n.next>>16&1), byte(n.next >> 8), byte(n.next)})
		if n.next >= 1<<17 {
			panic(fmt.Errorf("netsim: Network.Host: 198.18.0.0/15 has no address left, give the hosts addresses"))
		}
		if n.owners[place{"", a}] == nil && !n.past[a] {
			return a
		}
	}
}

// scope is where an address of an interface in zone means something.
func scope(zone string, a netip.Addr) place {
	if private(a) {
		return place{zone, a}
	}
	return place{"", a}
}

func private(a netip.Addr) bool {
	return a.IsPrivate() || a.IsLinkLocalUnicast() || sharedSpace.Contains(a)
}

// sharedSpace is carrier-grade NAT's range (RFC 6598), which tailnets use.
var sharedSpace = netip.MustParsePrefix("100.64.0.0/10")

// claim makes the addresses in a zone the interface's, instead of what it and
// those that it replaces had. Nothing has changed when it panics.
func (i *Interface) claim(zone string, addrs []netip.Addr, replaced ...*Interface) {
	n := i.host.n
	replaced = append(replaced, i)
	for k, a := range addrs {
		if o := n.owners[scope(zone, a)]; o != nil && !slices.Contains(replaced, o) {
			panic(fmt.Errorf("netsim: address %v of %s is taken by %s", a, i.host.name, o.host.name))
		}
		if slices.Contains(addrs[:k], a) {
			panic(fmt.Errorf("netsim: address %v of %s is there twice", a, i.host.name))
		}
	}
	for _, r := range replaced {
		for _, a := range r.addrs {
			if at := scope(r.zone, a); n.owners[at] == r {
				delete(n.owners, at)
			}
		}
	}
	i.zone, i.addrs = zone, addrs
	for _, a := range addrs {
		n.owners[scope(zone, a)] = i
		n.past[a] = true
	}
}

// Name is the interface's name.
func (i *Interface) Name() string { return i.name }

// Medium is what the interface is made of.
func (i *Interface) Medium() Medium { return i.medium }

// Addrs are the interface's present addresses.
func (i *Interface) Addrs() []netip.Addr {
	i.host.n.enter()
	defer i.host.n.mu.Unlock()
	return slices.Clone(i.addrs)
}

// IsUp reports whether the interface is up.
func (i *Interface) IsUp() bool {
	i.host.n.enter()
	defer i.host.n.mu.Unlock()
	return i.isUp
}

func (i *Interface) label() string { return i.host.name + "/" + i.name }

// works reports whether packets from or to the interface's address a pass.
func (i *Interface) works(a netip.Addr) bool {
	if i == i.host.lo {
		return i.host.own(a) != nil
	}
	return i.isUp && slices.Contains(i.addrs, a)
}

// owner is the interface that has a, if it can be reached from i.
func (i *Interface) owner(a netip.Addr) *Interface {
	o := i.host.n.owners[scope(i.zone, a)]
	if o == nil || o.zone != i.zone && (o.isolated || i.isolated) {
		return nil
	}
	return o
}

// Down takes the interface down: what the host sends by it vanishes, and what
// arrives there meanwhile.
func (i *Interface) Down() { i.turn(false) }

// Up brings the interface up.
func (i *Interface) Up() { i.turn(true) }

func (i *Interface) turn(up bool) {
	n := i.host.n
	n.enter()
	defer n.mu.Unlock()
	n.mustWork("Up or Down of " + i.label())
	if i.isUp == up {
		return
	}
	i.isUp = up
	n.noteLocked(Event{Why: i.label() + map[bool]string{true: " up", false: " down"}[up]})
	if !up {
		i.goneFrom(i.addrs)
	}
	i.host.pathChanged()
}

// SetAddresses changes the interface's addresses, as when a phone joins another
// network; with none it has none. Sockets of addresses that are gone fare as
// [WhenGone] says.
func (i *Interface) SetAddresses(addrs ...string) {
	i.readdress("SetAddresses", nil, addrs)
}

// Move puts the interface into another zone, with other addresses. A private
// address is another one there, even where it reads the same.
func (i *Interface) Move(zone string, addrs ...string) {
	i.readdress("Move", &zone, addrs)
}

// readdress gives the interface other addresses; zone is nil where it stays.
func (i *Interface) readdress(call string, zone *string, addrs []string) {
	var as []netip.Addr
	for _, s := range addrs {
		as = append(as, mustAddr(call, s))
	}
	n := i.host.n
	n.enter()
	defer n.mu.Unlock()
	n.mustWork(call + " of " + i.label())
	was, to, old := i.zone, i.zone, i.addrs
	if zone != nil {
		to = *zone
	}
	if to == was && slices.Equal(as, old) {
		return
	}
	i.claim(to, as)
	var gone []netip.Addr
	for _, a := range old {
		if !slices.Contains(as, a) || scope(was, a) != scope(to, a) {
			gone = append(gone, a)
		}
	}
	where := ""
	if to != was {
		where = fmt.Sprintf(" in zone %q", to)
		n.reroute(i, i.remnant(was))
		n.reroute(i.remnant(to), i)
	}
	n.noteLocked(Event{Why: fmt.Sprintf("%s has %v%s", i.label(), as, where)})
	i.goneFrom(gone)
	i.host.pathChanged()
}

// remnant is what stands for the interface in a zone that it has left: something
// that is down, for the streams that were begun there.
func (i *Interface) remnant(zone string) *Interface {
	if i.left == nil {
		i.left = map[string]*Interface{}
	}
	if i.left[zone] == nil {
		i.left[zone] = &Interface{host: i.host, name: i.name, medium: i.medium, zone: zone}
	}
	return i.left[zone]
}

// reroute makes the streams of private addresses use to instead of from.
func (n *Network) reroute(from, to *Interface) {
	swap := func(at **Interface, a netip.Addr) {
		if *at == from && private(a) {
			*at = to
		}
	}
	for _, h := range n.order {
		for _, c := range h.conns {
			swap(&c.out, c.local.Addr())
			swap(&c.in, c.remote.Addr())
		}
	}
}

// goneFrom deals with the sockets of addresses that went.
func (i *Interface) goneFrom(gone []netip.Addr) {
	if i.gone == Vanish {
		return
	}
	errno := syscall.ECONNABORTED
	if i.gone == NetDown {
		errno = syscall.ENETDOWN
	}
	for _, c := range i.host.sortedConns() {
		switch {
		case !slices.Contains(gone, c.local.Addr()):
		case c.start || i.host.paused:
			c.failAt(errno) // when it has begun, or when it wakes
		default:
			c.ep.Fail(errno)
			c.settle(i.host.n.sched.Now())
		}
	}
	for _, s := range i.host.sockets {
		if slices.Contains(gone, s.local.Addr()) {
			s.errno = errno
			s.wake()
		}
	}
}

// SetConditions sets the weather of everything that enters (down) or leaves
// (up) the host by this interface, on top of the paths' own.
func (i *Interface) SetConditions(up, down Conditions) {
	for _, c := range [2]struct {
		side string
		Conditions
	}{{"up", up}, {"down", down}} {
		if err := c.Validate(); err != nil {
			panic(fmt.Errorf("netsim: Interface.SetConditions of %s %s: %w", i.label(), c.side, err))
		}
	}
	n := i.host.n
	i.makePipes()
	n.setConditions(up, i.label()+" up", i.up)
	n.setConditions(down, i.label()+" down", i.down)
}

// Cut makes the interface silent without telling the host, as a dead access
// point does. It gives the fault.
func (i *Interface) Cut() *Fault {
	i.makePipes()
	return i.host.n.break_("cut", i.label(), cutVerdict, 0, i.up, i.down)
}

// Heal undoes every fault of the interface.
func (i *Interface) Heal() {
	i.makePipes()
	i.host.n.heal("Heal", i.label(), func(*Fault) bool { return true }, i.up, i.down)
}

func (i *Interface) makePipes() {
	n := i.host.n
	n.enter()
	defer n.mu.Unlock()
	if i.up == nil {
		i.up = &pipe{n: n, name: i.label() + " up", conditions: &Conditions{}}
		i.down = &pipe{n: n, name: i.label() + " down", conditions: &Conditions{}}
	}
}

// carries reports whether the host itself knows the interface to carry a packet
// of that size. What a path carries it does not know.
func (i *Interface) carries(size int) bool {
	return i.up == nil || i.up.conditions.MTU == 0 || size <= i.up.conditions.MTU
}
