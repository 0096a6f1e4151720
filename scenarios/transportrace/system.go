package transportrace

import (
	"sync"
	"time"

	"github.com/seed-5a7f77c4/deadair/netsim"
	"github.com/seed-5a7f77c4/deadair/selection/route"
)

// system is what the phone's system says about its network beyond the state of the interfaces.
type system struct {
	hub      hub[route.Path]
	mu       sync.Mutex
	settling int // while it is not 0, no path satisfies the system
	lowData  bool
}

// path is what the system tells the app about these interfaces.
func (w *World) path(c netsim.Connectivity) route.Path {
	w.system.mu.Lock()
	defer w.system.mu.Unlock()
	r := route.Path{
		Satisfied: c.Satisfied && w.system.settling == 0,
		WiFi:      c.Wireless, Cellular: c.Cellular, Wired: c.Wired,
		Expensive: c.Expensive, Constrained: w.system.lowData,
	}
	if a := c.Addrs["wifi"]; len(a) > 0 {
		r.WiFiAddr = a[0]
	}
	if a := c.Addrs["tail"]; len(a) > 0 {
		r.TailnetAddr = a[0]
	}
	return r
}

// watch calls f with the present path and after each change, until stop.
func (w *World) watch(f func(route.Path)) (stop func()) {
	remove := w.system.hub.add(f)
	unwatch := w.phone.WatchConnectivity(0, func(c netsim.Connectivity) { f(w.path(c)) })
	return func() {
		remove()
		unwatch()
	}
}

// tell changes something about the system and tells the apps.
func (w *World) tell(change func(*system)) {
	w.system.mu.Lock()
	change(&w.system)
	w.system.mu.Unlock()
	w.system.hub.tell(w.path(w.phone.Connectivity()))
}

// LowData switches the system's low-data mode, which makes every path constrained.
func (w *World) LowData(on bool) { w.tell(func(s *system) { s.lowData = on }) }

// Unsettled leaves the system without a satisfied path for so long, while the interfaces stay as they are.
func (w *World) Unsettled(d time.Duration) {
	w.tell(func(s *system) { s.settling++ })
	w.Net.After(d, "settled", func() { w.tell(func(s *system) { s.settling-- }) })
}

// reroute is how long a mobile system has no satisfied path when a tunnel goes down, until it has the one below it again.
const reroute = 90 * time.Millisecond

// TailnetOff switches the tailnet off. Its sockets hang, and nothing tells the app so.
func (w *World) TailnetOff() {
	w.Tail.Down()
	w.Unsettled(reroute)
}
