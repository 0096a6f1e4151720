package netsim

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/seed-5a7f77c4/deadair/clock"
	"github.com/seed-5a7f77c4/deadair/netsim/internal/tcp"
)

// A Network is a simulated network: hosts, and what lies between them. Make one
// with [Run], or with [New] where there is no bubble to make. Its methods may
// be called from any goroutine of the bubble that it was made in.
//
// Mistakes in building it (a name taken twice, a negative delay) panic with an
// error that names the call and the value; [Run] turns that into a failed test.
type Network struct {
	opts   options
	sched  *clock.Scheduler
	bubble bool
	home   chan struct{} // made in the bubble; nothing is ever sent

	mu     sync.Mutex
	closed bool
	pool   tcp.Pool
	hosts  map[string]*Host
	order  []*Host
	owners map[place]*Interface
	past   map[netip.Addr]bool // addresses that somebody has or had, or that are dark
	names  map[string][]*Host
	paths  map[[2]*Host]*Path
	next   int // for addresses that are assigned
	rules  []*Fault
	faults []*Fault // all that were ever applied, for the question which never bit
	flows  map[flowKey]int
	trace  *Trace
	idle   *packet // free list
}

// place is where an address means something: private ones only in their zone.
type place struct {
	zone string
	addr netip.Addr
}

// New makes a network outside a bubble's [Run]: in real time, or inside a
// bubble that somebody else made. Close it.
func New(opts ...Option) *Network {
	o := defaultOptions()
	for _, opt := range opts {
		opt(&o)
	}
	if o.noSeed != nil {
		panic(fmt.Errorf("netsim: New: %w", o.noSeed))
	}
	n := &Network{
		opts:   o,
		sched:  clock.NewScheduler(),
		bubble: clock.InBubble(),
		hosts:  map[string]*Host{},
		owners: map[place]*Interface{},
		past:   map[netip.Addr]bool{},
		names:  map[string][]*Host{},
		paths:  map[[2]*Host]*Path{},
		flows:  map[flowKey]int{},
	}
	if n.bubble {
		n.home = make(chan struct{})
	}
	n.trace = newTrace(n, &n.opts)
	return n
}

// Seed is what all of the network's randomness comes from.
func (n *Network) Seed() uint64 { return n.opts.seed }

// Now is the time since the network was made; the times of the trace count
// likewise.
func (n *Network) Now() time.Duration { return n.sched.Now() }

// Trace is what has happened so far.
func (n *Network) Trace() *Trace { return n.trace }

// Notef writes a line of one's own into the trace.
func (n *Network) Notef(format string, args ...any) {
	n.mustBeOpen("Notef", format)
	n.note(Event{Why: fmt.Sprintf(format, args...)})
}

// Kinds of events, in the order in which they happen within one name and
// instant.
const (
	kindNote uint8 = iota
	kindStart
	kindTransmit
	kindArrive
	kindTimer
	kindDeadline
)

// note puts e into the trace by an event of its own, since what several
// goroutines do in one instant has no other order.
func (n *Network) note(e Event) {
	name := "!" + e.From + " " + e.To + " " + e.Why
	n.at(name, kindNote, n.sched.Now(), func(now time.Duration) {
		n.mu.Lock()
		defer n.mu.Unlock()
		e.At, e.Sent, e.Fate = now, now, Note
		n.trace.add(e)
	})
}

// at schedules a function.
func (n *Network) at(name string, kind uint8, when time.Duration, f func(now time.Duration)) *clock.Event {
	e := &clock.Event{Key: clock.Key{Name: name, Kind: kind}, Handler: clock.HandlerFunc(f)}
	n.sched.Schedule(e, when)
	return e
}

// Go starts f in a goroutine. All that are started so begin one per instant, in
// the order of their names: a hundred clients that a loop starts dial in order.
// The name also shows in the trace.
func (n *Network) Go(name string, f func()) {
	n.mustBeOpen("Go", name)
	if f == nil {
		panic(fmt.Errorf("netsim: Network.Go(%q, nil): there is nothing to call", name))
	}
	n.at("go "+name, kindStart, n.sched.Now(), func(now time.Duration) {
		go f()
	})
}

// After calls f, in a goroutine of its own, when d has passed. It is for
// scripts: "at 20 s, cut the link".
func (n *Network) After(d time.Duration, name string, f func()) {
	n.mustBeOpen("After", name)
	switch {
	case d < 0:
		panic(fmt.Errorf("netsim: Network.After(%v, %q): the time is negative", d, name))
	case d > maxDelay:
		panic(fmt.Errorf("netsim: Network.After(%v, %q): the time is more than %v", d, name, maxDelay))
	case f == nil:
		panic(fmt.Errorf("netsim: Network.After(%v, %q, nil): there is nothing to call", d, name))
	}
	n.at("go "+name, kindStart, n.sched.Now()+d, func(now time.Duration) {
		go f()
	})
}

func (n *Network) mustBeOpen(call string, what any) {
	n.enter()
	defer n.mu.Unlock()
	if n.usable() != nil {
		n.mustWork(fmt.Sprintf("Network.%s(%v)", call, what))
	}
}

// errElsewhere is what calls from another time than the network's get.
var errElsewhere = errors.New("the network lives in a bubble's virtual time and the caller in real time, or the other way round")

// usable says why a call cannot be served: the network is closed, or the caller
// is on the other side of a bubble's wall, where waiting would never end. It
// runs under the lock.
func (n *Network) usable() error {
	if n.closed {
		return net.ErrClosed
	}
	if n.bubble != timeIsVirtual() {
		return errElsewhere
	}
	return nil
}

// timeIsVirtual reports what clock.InBubble does, by a sign that costs next to
// nothing: the times of a bubble have no monotonic part.
func timeIsVirtual() bool {
	t := time.Now()
	return t == t.Round(0)
}

// enter is how a call begins: what the network could put off happens, then the
// lock is taken. The handlers of events take the lock alone.
//
// A caller from another bubble ends the process here, as Go itself has it for
// whoever touches a channel of another bubble: nothing tells two bubbles apart
// that costs less than a stack dump. The trace of the fatal error shows the call.
// One from outside of all bubbles can be told, and is left to usable.
func (n *Network) enter() {
	if n.bubble == timeIsVirtual() {
		if n.bubble {
			select {
			case <-n.home:
			default:
			}
		}
		n.sched.CatchUp()
	}
	n.mu.Lock()
}

// mustWork panics where usable says no. It runs under the lock.
func (n *Network) mustWork(call string) {
	if err := n.usable(); err == net.ErrClosed {
		panic(fmt.Errorf("netsim: %s: the network is closed", call))
	} else if err != nil {
		panic(fmt.Errorf("netsim: %s: %w", call, err))
	}
}

// Host makes a host. Without options it has one interface, up, with an address
// from 198.18.0.0/15 (the range of RFC 2544, which nobody owns), and reaches
// every other host.
func (n *Network) Host(name string, opts ...HostOption) *Host {
	n.enter()
	defer n.mu.Unlock()
	n.mustWork(fmt.Sprintf("Network.Host(%q)", name))
	if err := validName(name); err != nil {
		panic(fmt.Errorf("netsim: Network.Host(%q): %w", name, err))
	}
	if n.hosts[fold(name)] != nil {
		panic(fmt.Errorf("netsim: Network.Host(%q): there is a host of that name", name))
	}
	if len(n.names[fold(name)]) > 0 {
		panic(fmt.Errorf("netsim: Network.Host(%q): there is an alias of that name", name))
	}
	if slices.ContainsFunc(opts, func(o HostOption) bool { return o == nil }) {
		panic(fmt.Errorf("netsim: Network.Host(%q): an option is nil", name))
	}
	h := newHost(n, name)
	for _, opt := range opts {
		opt(h)
	}
	h.settle()
	n.hosts[fold(name)] = h
	n.order = append(n.order, h)
	return h
}

// Lookup gives the host of that name, nil when there is none.
func (n *Network) Lookup(name string) *Host {
	n.enter()
	defer n.mu.Unlock()
	return n.hosts[fold(name)]
}

// Hosts gives all hosts in the order in which they were made.
func (n *Network) Hosts() []*Host {
	n.enter()
	defer n.mu.Unlock()
	return slices.Clone(n.order)
}

// Alias makes name resolve to the addresses of hosts, in that order.
func (n *Network) Alias(name string, hosts ...*Host) {
	n.enter()
	defer n.mu.Unlock()
	n.mustWork(fmt.Sprintf("Network.Alias(%q)", name))
	if err := validName(name); err != nil {
		panic(fmt.Errorf("netsim: Network.Alias(%q, %v): %w", name, hosts, err))
	}
	if n.hosts[fold(name)] != nil || len(hosts) == 0 || slices.Contains(hosts, nil) {
		panic(fmt.Errorf("netsim: Network.Alias(%q, %v): the name is taken, or a host is missing", name, hosts))
	}
	n.names[fold(name)] = slices.Clone(hosts)
}

// odd are the runes of no name: the trace would be misread.
func odd(r rune) bool {
	return !unicode.IsGraphic(r) || unicode.IsSpace(r) || strings.ContainsRune(":>#!/[]", r)
}

// validName says why a name could not be dialled, or not be told apart in the trace.
func validName(name string) error {
	_, err := netip.ParseAddr(name)
	switch {
	case fold(name) == "" || strings.ContainsFunc(name, odd):
		return errors.New("a name is a host name, without spaces or any of : > # ! / [ ]")
	case err == nil:
		return errors.New("a dial takes the name for an address: give the host that address, and another name")
	case fold(name) == "localhost":
		return errors.New("every host has that name for itself")
	}
	return nil
}

// maxDelay bounds what a delay can be, so that the sum of a few still is a duration.
const maxDelay = 10 * 365 * 24 * time.Hour

// fold makes one of the names that DNS takes for the same.
func fold(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

// Dark declares addresses that nobody answers for: packets to them vanish, as
// those to a machine that is switched off. Dialling an address that is neither
// a host's nor dark is taken for a mistake and fails at once.
func (n *Network) Dark(addrs ...string) {
	n.enter()
	defer n.mu.Unlock()
	n.mustWork(fmt.Sprintf("Network.Dark(%q)", addrs))
	for _, s := range addrs {
		a, err := netip.ParseAddr(s)
		if err != nil {
			panic(fmt.Errorf("netsim: Network.Dark(%q): %w", s, err))
		}
		if o := n.owners[place{"", a.Unmap()}]; o != nil {
			panic(fmt.Errorf("netsim: Network.Dark(%q): it is an address of %s, which answers", s, o.host.name))
		}
		n.past[a.Unmap()] = true
	}
}

// Close ends everything: connections and listeners return net.ErrClosed, names
// resolve no more, no packet moves. It reports the faults that never bit, as
// one error. Closing twice does nothing.
func (n *Network) Close() error {
	n.enter()
	if n.closed {
		n.mu.Unlock()
		return nil
	}
	n.closed = true
	for _, h := range n.order {
		h.abandon()
	}
	var errs []error
	for _, f := range n.faults {
		if f.hits == 0 && !f.mayMiss {
			errs = append(errs, f.missed())
		}
	}
	n.mu.Unlock()
	n.sched.Close()
	return errors.Join(errs...)
}
