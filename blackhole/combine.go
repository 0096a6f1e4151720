package blackhole

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

var errNoSwitch = errors.New("Thrown: the switch is nil")

// Then fires when b fires, and b begins to look, and its time to run, only when a has been active. So
// Then(AfterBytes(10), AfterTLSHandshake()) waits for a handshake that follows ten bytes of something else.
func Then(a, b Trigger) Trigger {
	return &sequence{call: "Then", a: a, b: b, active: [3]bool{false, false, true}}
}

// Until is active from the moment a fires until b fires, which begins to look only then. So
// Until(AfterBytes(1024), After(30*time.Second)) heals after half a minute.
func Until(a, b Trigger) Trigger {
	return &sequence{call: "Until", a: a, b: b, active: [3]bool{false, true, false}}
}

// All is active while all of the triggers are.
func All(triggers ...Trigger) Trigger { return &group{call: "All", of: triggers, all: true} }

// Any is active while at least one of the triggers is.
func Any(triggers ...Trigger) Trigger { return &group{call: "Any", of: triggers} }

func validateAll(call string, triggers ...Trigger) error {
	if len(triggers) == 0 {
		return fmt.Errorf("%s: no triggers", call)
	}
	for _, t := range triggers {
		if t == nil {
			return fmt.Errorf("%s: a trigger is nil", call)
		}
		if err := t.Validate(); err != nil {
			return fmt.Errorf("%s: %w", call, err)
		}
	}
	return nil
}

func switchesOf(triggers ...Trigger) []*Switch {
	var all []*Switch
	for _, t := range triggers {
		all = append(all, t.Switches()...)
	}
	return all
}

// sequence is a, then b: it has three stages, before a, between a and b, after b, and active tells in which it is on.
type sequence struct {
	call   string
	a, b   Trigger
	active [3]bool
}

func (t *sequence) Validate() error     { return validateAll(t.call, t.a, t.b) }
func (t *sequence) Switches() []*Switch { return switchesOf(t.a, t.b) }
func (t *sequence) Arm(on Direction, now time.Time) Machine {
	return &sequenceMachine{plan: t, on: on, now: t.a.Arm(on, now)}
}

type sequenceMachine struct {
	plan  *sequence
	on    Direction
	now   Machine // the machine of the trigger that is waited for; nil when both have fired
	stage int
}

func (m *sequenceMachine) advance(now time.Time) {
	for m.now != nil && m.now.Active(now) {
		m.stage++
		if m.stage == 1 {
			m.now = m.plan.b.Arm(m.on, now)
		} else {
			m.now = nil
		}
	}
}

func (m *sequenceMachine) Active(now time.Time) bool {
	m.advance(now)
	return m.plan.active[m.stage]
}

func (m *sequenceMachine) Next(now time.Time) time.Time {
	m.advance(now)
	if m.now == nil {
		return time.Time{}
	}
	return m.now.Next(now)
}

func (m *sequenceMachine) Begin(d Direction, end bool) {
	if m.now != nil {
		m.now.Begin(d, end)
	}
}

func (m *sequenceMachine) Scan(d Direction, p []byte) int {
	if m.now == nil {
		return len(p)
	}
	return m.now.Scan(d, p)
}

func (m *sequenceMachine) Feed(d Direction, p []byte) {
	if m.now != nil {
		m.now.Feed(d, p)
	}
}

func (m *sequenceMachine) Free(d Direction) int64 {
	if m.now == nil {
		return Unbounded
	}
	return m.now.Free(d)
}

func (m *sequenceMachine) Skip(d Direction, n int64) {
	if m.now != nil {
		m.now.Skip(d, n)
	}
}

func (m *sequenceMachine) String() string {
	if m.now == nil {
		return state(m.plan.active[m.stage])
	}
	return m.now.String()
}

type group struct {
	call string
	of   []Trigger
	all  bool
}

func (t *group) Validate() error     { return validateAll(t.call, t.of...) }
func (t *group) Switches() []*Switch { return switchesOf(t.of...) }
func (t *group) Arm(on Direction, now time.Time) Machine {
	m := &groupMachine{all: t.all, of: make([]Machine, len(t.of))}
	for i, trigger := range t.of {
		m.of[i] = trigger.Arm(on, now)
	}
	return m
}

type groupMachine struct {
	all bool
	of  []Machine
}

// Active asks every member, so that each of them notices the time.
func (m *groupMachine) Active(now time.Time) bool {
	active := 0
	for _, each := range m.of {
		if each.Active(now) {
			active++
		}
	}
	if m.all {
		return active == len(m.of)
	}
	return active > 0
}

func (m *groupMachine) Next(now time.Time) time.Time {
	var next time.Time
	for _, each := range m.of {
		next = earlier(next, each.Next(now))
	}
	return next
}

func (m *groupMachine) Begin(d Direction, end bool) {
	for _, each := range m.of {
		each.Begin(d, end)
	}
}

func (m *groupMachine) Scan(d Direction, p []byte) int {
	n := len(p)
	for _, each := range m.of {
		n = min(n, each.Scan(d, p[:n]))
	}
	return n
}

func (m *groupMachine) Feed(d Direction, p []byte) {
	for _, each := range m.of {
		each.Feed(d, p)
	}
}

func (m *groupMachine) Free(d Direction) int64 {
	n := int64(Unbounded)
	for _, each := range m.of {
		n = min(n, each.Free(d))
	}
	return n
}

func (m *groupMachine) Skip(d Direction, n int64) {
	for _, each := range m.of {
		each.Skip(d, n)
	}
}

func (m *groupMachine) String() string {
	states := make([]string, len(m.of))
	for i, each := range m.of {
		states[i] = each.String()
	}
	return strings.Join(states, ", ")
}

// earlier is the earlier of two instants, of which zero means never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
