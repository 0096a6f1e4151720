package transportrace

import "sync"

// discovery says whether the phone sees the machine on its network.
type discovery struct {
	hub hub[bool]
	mu  sync.Mutex
	now bool
}

// watch calls f with the present state and at every update, until stop.
func (d *discovery) watch(f func(seen bool)) (stop func()) {
	stop = d.hub.add(f)
	f(d.sees())
	return stop
}

func (d *discovery) sees() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.now
}

// Discover lets the machine appear in the phone's discovery, or vanish from it. Each call is an update, also one that
// says nothing new.
func (w *World) Discover(seen bool) {
	w.discovery.mu.Lock()
	w.discovery.now = seen
	w.discovery.mu.Unlock()
	w.discovery.hub.tell(seen)
}
