package netsim

import (
	"fmt"
	"net/netip"
	"slices"
	"syscall"
	"time"
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

// GoneMode is what happens to a host's sockets whose address goes away.
type GoneMode uint8

// The modes.
const (
	// Vanish: packets vanish, as on Linux; the program notices by its time-outs.
	Vanish GoneMode = iota
	// Abort: calls fail at once with ECONNABORTED, as on mobile systems.
	Abort
	// NetDown: calls fail at once with ENETDOWN.
	NetDown
)

// An Interface connects a host to a zone. Private addresses mean something in
// their own zone only; all others are reachable from every interface that
// leads to the internet.
type Interface struct {
	host     *Host
	name     string
	medium   Medium
	zone     string
	isolated bool // does not lead to the internet
	addrs    []netip.Addr
	isUp     bool
	gone     GoneMode
	up, down *pipe // nil until they have conditions or faults
}

// InterfaceOption sets something about an interface.
type InterfaceOption func(*Interface)

// Zone puts the interface into a zone: a LAN, a tailnet. Default: "", where
// hosts are that say nothing.
func Zone(name string) InterfaceOption { return func(i *Interface) { i.zone = name } }

// Isolated says that nothing outside the interface's zone can be reached
// through it.
func Isolated() InterfaceOption { return func(i *Interface) { i.isolated = true } }

// StartsDown says that the interface is down at first.
func StartsDown() InterfaceOption { return func(i *Interface) { i.isUp = false } }

// WhenGone says what happens to sockets when the interface goes down or loses
// their address. Default: [Vanish].
func WhenGone(m GoneMode) InterfaceOption { return func(i *Interface) { i.gone = m } }

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
	h.n.mu.Lock()
	defer h.n.mu.Unlock()
	h.n.mustWork(fmt.Sprintf("Host.Interface(%q) of %s", name, h.name))
	if h.implicit {
		if len(h.conns) > 0 || len(h.listeners) > 0 || len(h.sockets) > 0 {
			panic(fmt.Errorf("netsim: Host.Interface(%q) of %s: the host is in use already", name, h.name))
		}
		for _, i := range h.interfaces {
			i.release()
		}
		h.interfaces, h.implicit = nil, false
	}
	for _, i := range h.interfaces {
		if i.name == name {
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
	for _, a := range i.addrs {
		h.n.claim(i, a)
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
		if n.owners[place{"", a}] == nil {
			return a
		}
	}
}

// scope is where an address of an interface in zone means something.
func scope(zone string, a netip.Addr) place {
	if a.IsPrivate() || a.IsLinkLocalUnicast() || sharedSpace.Contains(a) {
		return place{zone, a}
	}
	return place{"", a}
}

// sharedSpace is carrier-grade NAT's range (RFC 6598), which tailnets use.
var sharedSpace = netip.MustParsePrefix("100.64.0.0/10")

func (n *Network) claim(i *Interface, a netip.Addr) {
	at := scope(i.zone, a)
	if o := n.owners[at]; o != nil {
		panic(fmt.Errorf("netsim: address %v of %s is taken by %s", a, i.host.name, o.host.name))
	}
	n.owners[at] = i
	n.past[a] = true
}

func (i *Interface) release() {
	for _, a := range i.addrs {
		delete(i.host.n.owners, scope(i.zone, a))
	}
}

// Name is the interface's name.
func (i *Interface) Name() string { return i.name }

// Medium is what the interface is made of.
func (i *Interface) Medium() Medium { return i.medium }

// Addrs are the interface's present addresses.
func (i *Interface) Addrs() []netip.Addr {
	i.host.n.mu.Lock()
	defer i.host.n.mu.Unlock()
	return slices.Clone(i.addrs)
}

// IsUp reports whether the interface is up.
func (i *Interface) IsUp() bool {
	i.host.n.mu.Lock()
	defer i.host.n.mu.Unlock()
	return i.isUp
}

func (i *Interface) working() bool          { return i.isUp }
func (i *Interface) has(a netip.Addr) bool  { return slices.Contains(i.addrs, a) || a.IsLoopback() }
func (i *Interface) label() string          { return i.host.name + "/" + i.name }
func (i *Interface) reaches(p place) bool   { return p.zone == i.zone || p.zone == "" && !i.isolated }
func (i *Interface) find(a netip.Addr) bool { return i.owner(a) != nil }

// owner is the interface that has a, seen from i.
func (i *Interface) owner(a netip.Addr) *Interface {
	if o := i.host.n.owners[place{i.zone, a}]; o != nil {
		return o
	}
	if o := i.host.n.owners[place{"", a}]; o != nil && i.reaches(place{"", a}) && scope(i.zone, a).zone == "" {
		return o
	}
	return nil
}

// Down takes the interface down: what is on its way to or from it vanishes.
func (i *Interface) Down() { i.turn(false) }

// Up brings the interface up.
func (i *Interface) Up() { i.turn(true) }

func (i *Interface) turn(up bool) {
	n := i.host.n
	n.mu.Lock()
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
// network. Sockets of addresses that are gone fare as [WhenGone] says.
func (i *Interface) SetAddresses(addrs ...string) {
	var as []netip.Addr
	for _, s := range addrs {
		as = append(as, mustAddr("SetAddresses", s))
	}
	n := i.host.n
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mustWork("SetAddresses of " + i.label())
	old := i.addrs
	i.release()
	i.addrs = as
	for _, a := range as {
		n.claim(i, a)
	}
	var gone []netip.Addr
	for _, a := range old {
		if !slices.Contains(as, a) {
			gone = append(gone, a)
		}
	}
	n.noteLocked(Event{Why: fmt.Sprintf("%s has %v", i.label(), as)})
	i.goneFrom(gone)
	i.host.pathChanged()
}

// Move puts the interface into another zone, with other addresses.
func (i *Interface) Move(zone string, addrs ...string) {
	n := i.host.n
	n.mu.Lock()
	i.release()
	old := i.addrs
	i.addrs, i.zone = nil, zone
	i.goneFrom(old)
	n.mu.Unlock()
	i.SetAddresses(addrs...)
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
		if slices.Contains(gone, c.local.Addr()) {
			c.failAt(errno)
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
	n.mu.Lock()
	defer n.mu.Unlock()
	if i.up == nil {
		i.up = &pipe{n: n, name: i.label() + " up", conditions: &Conditions{}}
		i.down = &pipe{n: n, name: i.label() + " down", conditions: &Conditions{}}
	}
}

// Connectivity is what a host knows of its ways into the network, as a mobile
// system tells its apps.
type Connectivity struct {
	At        time.Duration // when it was so
	Satisfied bool          // some interface that leads to the internet is up
	Wired     bool
	Wireless  bool
	Cellular  bool
	Tailnet   bool
	Expensive bool
	Addrs     map[string][]netip.Addr // of interfaces that are up
}

func (h *Host) connectivity() Connectivity {
	c := Connectivity{At: h.n.sched.Now(), Addrs: map[string][]netip.Addr{}, Expensive: h.expensive}
	for _, i := range h.interfaces {
		if !i.isUp {
			continue
		}
		c.Satisfied = c.Satisfied || !i.isolated
		switch i.medium {
		case Wired:
			c.Wired = true
		case Wireless:
			c.Wireless = true
		case Cellular:
			c.Cellular = true
		case Tailnet:
			c.Tailnet = true
		}
		c.Addrs[i.name] = slices.Clone(i.addrs)
	}
	return c
}

// Connectivity is the present state of the host's interfaces.
func (h *Host) Connectivity() Connectivity {
	h.n.mu.Lock()
	defer h.n.mu.Unlock()
	return h.connectivity()
}

// SetExpensive marks the host's connection as metered or not, which is told to
// those who watch and changes nothing else.
func (h *Host) SetExpensive(on bool) {
	h.n.mu.Lock()
	defer h.n.mu.Unlock()
	h.n.mustOwn("Host.SetExpensive", h)
	h.expensive = on
	h.pathChanged()
}

// WatchConnectivity calls f with the present state and after each change,
// delay later: systems tell late. Calls come one after another, each in an
// instant of its own. It gives the function that ends it.
func (h *Host) WatchConnectivity(delay time.Duration, f func(Connectivity)) (stop func()) {
	if delay < 0 {
		panic(fmt.Errorf("netsim: Host.WatchConnectivity(%v): the delay is negative", delay))
	}
	w := &watcher{h: h, delay: delay, f: f}
	h.n.mu.Lock()
	defer h.n.mu.Unlock()
	h.n.mustOwn("Host.WatchConnectivity", h)
	h.watchers = append(h.watchers, w)
	w.tell(h.connectivity(), 0)
	return func() {
		h.n.mu.Lock()
		defer h.n.mu.Unlock()
		w.stopped = true
		h.watchers = slices.DeleteFunc(h.watchers, func(x *watcher) bool { return x == w })
	}
}

type watcher struct {
	h       *Host
	delay   time.Duration
	f       func(Connectivity)
	queue   []Connectivity
	running bool
	stopped bool
}

func (w *watcher) tell(c Connectivity, delay time.Duration) {
	n := w.h.n
	n.at("watch "+w.h.name, kindStart, n.sched.Now()+delay, func(time.Duration) bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		if w.stopped || n.closed {
			return false
		}
		w.queue = append(w.queue, c)
		if !w.running {
			w.running = true
			go w.run()
		}
		return true
	})
}

func (w *watcher) run() {
	n := w.h.n
	for {
		n.mu.Lock()
		if len(w.queue) == 0 || w.stopped {
			w.running = false
			n.mu.Unlock()
			return
		}
		c := w.queue[0]
		w.queue = w.queue[1:]
		n.mu.Unlock()
		w.f(c)
	}
}

func (h *Host) pathChanged() {
	for _, w := range h.watchers {
		w.tell(h.connectivity(), w.delay)
	}
}

// carries reports whether the host itself knows the interface to carry a packet
// of that size. What a path carries it does not know.
func (i *Interface) carries(size int) bool {
	return i.up == nil || i.up.conditions.MTU == 0 || size <= i.up.conditions.MTU
}
