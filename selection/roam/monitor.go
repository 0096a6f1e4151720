package roam

import (
	"time"

	"github.com/seed-5a7f77c4/deadair/selection/route"
)

// Monitor turns updates into decisions. It is told the time and never waits.
type Monitor struct {
	policy   Policy
	path     route.Path
	known    bool // a first snapshot has set the base
	changed  bool // interfaces have changed since the last race began; stays until the next one
	observed Observed
	live     bool
	since    time.Time // of the live connection
	current  route.Class
	roamed   time.Time // last roam, zero for none
	due      time.Time // of the next decision, zero for none
}

// NewMonitor makes a monitor that has seen nothing yet.
func NewMonitor(p Policy) *Monitor { return &Monitor{policy: p} }

// Path takes a path update. The first one sets the base. The decision falls when the updates have been quiet for
// Debounce; a change that is taken back meanwhile is still a change, since it may have cost the live socket its network.
func (m *Monitor) Path(now time.Time, p route.Path) {
	m.changed = m.changed || m.known && m.policy.Changes(m.path, p)
	m.path, m.known = p, true
	m.due = now.Add(m.policy.Debounce)
}

// Observe takes what discovery and the profile say; the path in it is ignored. The decision falls at once.
func (m *Monitor) Observe(now time.Time, o Observed) {
	m.observed = o
	if m.due.IsZero() {
		m.due = now
	}
}

// Current gives the last path; false before the first snapshot.
func (m *Monitor) Current() (route.Path, bool) { return m.path, m.known }

// Racing says that a race over the present path begins: what has changed until now is taken care of.
func (m *Monitor) Racing() { m.changed = false }

// Up says that a connection of this class is live. What changed during its race is decided at once.
func (m *Monitor) Up(now time.Time, c route.Class) {
	m.live, m.since, m.current = true, now, c
	if m.changed && m.due.IsZero() {
		m.due = now
	}
}

// Down says that there is no live connection.
func (m *Monitor) Down() { m.live = false }

// Live reports whether there is a live connection, and its class.
func (m *Monitor) Live() (route.Class, bool) { return m.current, m.live }

// Wake gives the time of the next Tick; false when there is nothing to decide.
func (m *Monitor) Wake() (time.Time, bool) { return m.due, !m.due.IsZero() }

// Tick decides, if a decision is due. A roam counts from here.
func (m *Monitor) Tick(now time.Time) Decision {
	if m.due.IsZero() || now.Before(m.due) {
		return None
	}
	m.due = time.Time{}
	o := m.observed
	o.Path = m.path
	in := Input{Live: m.live, Satisfied: m.path.Satisfied, Changed: m.changed, Current: m.current, Best: m.policy.Best(o)}
	if m.live {
		in.Age = now.Sub(m.since)
	}
	if !m.roamed.IsZero() {
		since := now.Sub(m.roamed)
		in.SinceRoam = &since
	}
	decision, again := Decide(in, m.policy)
	if again > 0 {
		m.due = now.Add(again)
	}
	if decision != None {
		m.roamed = now
		m.changed = false
	}
	return decision
}
