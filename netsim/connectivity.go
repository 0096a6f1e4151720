package netsim

import (
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// Connectivity is what a host knows of its ways into the network, as a mobile
// system tells its apps.
type Connectivity struct {
	At        time.Duration // when it was so
	Satisfied bool          // some interface that leads to the internet is up and has an address
	Wired     bool
	Wireless  bool
	Cellular  bool
	Tailnet   bool
	Expensive bool
	Addrs     map[string][]netip.Addr // of interfaces that are up, by name
}

func (h *Host) connectivity() Connectivity {
	c := Connectivity{At: h.n.sched.Now(), Addrs: map[string][]netip.Addr{}, Expensive: h.expensive}
	for _, i := range h.interfaces {
		if !i.isUp {
			continue
		}
		c.Satisfied = c.Satisfied || !i.isolated && len(i.addrs) > 0
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
	h.n.enter()
	defer h.n.mu.Unlock()
	return h.connectivity()
}

// SetExpensive marks the host's connection as metered or not, which is told to
// those who watch and changes nothing else.
func (h *Host) SetExpensive(on bool) {
	h.n.enter()
	defer h.n.mu.Unlock()
	h.n.mustOwn("Host.SetExpensive", h)
	if h.expensive != on {
		h.expensive = on
		h.pathChanged()
	}
}

// WatchConnectivity calls f with the present state and after each change,
// delay later: systems tell late. Calls come one after another, each in an
// instant of its own; none is left out, however short the change was. A host that
// is paused hears when it resumes. It gives the function that ends it, which does
// not wait for a call under way.
func (h *Host) WatchConnectivity(delay time.Duration, f func(Connectivity)) (stop func()) {
	if delay < 0 {
		panic(fmt.Errorf("netsim: Host.WatchConnectivity(%v): the delay is negative", delay))
	}
	if delay > maxDelay {
		panic(fmt.Errorf("netsim: Host.WatchConnectivity(%v): the delay is more than %v", delay, maxDelay))
	}
	if f == nil {
		panic(fmt.Errorf("netsim: Host.WatchConnectivity(%v, nil): there is nothing to call", delay))
	}
	w := &watcher{h: h, delay: delay, f: f}
	h.n.enter()
	defer h.n.mu.Unlock()
	h.n.mustOwn("Host.WatchConnectivity", h)
	h.watchers = append(h.watchers, w)
	w.tell(h.connectivity(), 0)
	return func() {
		h.n.enter()
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

// tell says c when delay has passed.
func (w *watcher) tell(c Connectivity, delay time.Duration) {
	w.after(delay, func() {
		w.queue = append(w.queue, c)
		w.call()
	})
}

// next says what is next in the queue.
func (w *watcher) next() { w.after(0, w.call) }

// after does something in an event, under the lock.
func (w *watcher) after(delay time.Duration, do func()) {
	n := w.h.n
	n.at("watch "+w.h.name, kindStart, n.sched.Now()+delay, func(time.Duration) {
		n.mu.Lock()
		defer n.mu.Unlock()
		if !w.stopped && !n.closed {
			do()
		}
	})
}

// call calls f with the first of the queue, unless a call is under way or the
// host sleeps.
func (w *watcher) call() {
	switch {
	case w.running || len(w.queue) == 0:
	case w.h.paused:
		if !slices.Contains(w.h.untold, w) {
			w.h.untold = append(w.h.untold, w)
		}
	default:
		c := w.queue[0]
		w.queue = w.queue[1:]
		w.running = true
		go func() {
			defer func() { // also when f ends its goroutine
				w.h.n.enter()
				defer w.h.n.mu.Unlock()
				w.running = false
				w.next()
			}()
			w.f(c)
		}()
	}
}

func (h *Host) pathChanged() {
	for _, w := range h.watchers {
		w.tell(h.connectivity(), w.delay)
	}
}
