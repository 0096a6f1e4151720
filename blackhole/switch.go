package blackhole

import (
	"sync"
	"time"
)

// Switch turns faults on and off by hand. The zero Switch is off and ready. It may be thrown before, while and after
// connections exist, from any goroutine; connections that exist react at once, also while they are blocked.
type Switch struct {
	mu    sync.Mutex
	on    bool
	conns map[*Conn]struct{}
}

// On throws the switch.
func (s *Switch) On() { s.Set(true) }

// Off takes it back. Bytes that a stall held back flow on; bytes that were swallowed are lost.
func (s *Switch) Off() { s.Set(false) }

// Set throws the switch or takes it back. It returns when every connection that follows the switch has taken notice.
func (s *Switch) Set(on bool) {
	s.mu.Lock()
	changed := s.on != on
	s.on = on
	conns := make([]*Conn, 0, len(s.conns))
	for c := range s.conns {
		conns = append(conns, c)
	}
	s.mu.Unlock()
	if !changed {
		return
	}
	sortByAge(conns)
	for _, c := range conns {
		c.notice()
	}
}

// IsOn reports whether the switch is on.
func (s *Switch) IsOn() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.on
}

// Thrown is the trigger that is active while the switch is on.
func (s *Switch) Thrown() Trigger { return thrown{s} }

func (s *Switch) follow(c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conns == nil {
		s.conns = make(map[*Conn]struct{})
	}
	s.conns[c] = struct{}{}
}

func (s *Switch) forget(c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

type thrown struct{ s *Switch }

func (t thrown) Validate() error {
	if t.s == nil {
		return errNoSwitch
	}
	return nil
}
func (t thrown) Switches() []*Switch              { return []*Switch{t.s} }
func (t thrown) Arm(Direction, time.Time) Machine { return &follower{s: t.s} }

type follower struct {
	Blind
	s *Switch
}

func (m *follower) Active(time.Time) bool { return m.s.IsOn() }
func (m *follower) String() string {
	if m.s.IsOn() {
		return "switch on"
	}
	return "switch off"
}
