package blackhole

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"time"
)

// Trigger says when a fault is active. It is a plan without state: each connection gets a [Machine] of its own.
//
// The triggers of this package latch: once they have fired they stay active. The exceptions are [Switch.Thrown], which
// follows its switch, and [Until]. Other packages may bring triggers of their own.
type Trigger interface {
	// Validate returns an error that names the value if the trigger could never fire.
	Validate() error
	// Switches lists the switches that the trigger follows. A connection asks its machines anew when one is thrown.
	Switches() []*Switch
	// Arm makes the machine for one connection that begins at now. on is the direction of the fault.
	Arm(on Direction, now time.Time) Machine
}

// Machine is the state of a [Trigger] on one connection. It reads no clock, starts nothing and is never called
// concurrently. The connection calls Begin, Active, Scan and Feed, in this order, for every piece of traffic that
// reaches the fault, in both directions.
type Machine interface {
	// Active reports whether the fault acts on what passes next.
	Active(now time.Time) bool
	// Next is the instant after now at which Active may change by the passing of time alone; zero if there is none.
	Next(now time.Time) time.Time
	// Begin announces that bytes, or the end of the stream, are about to pass in direction d. It may be repeated.
	Begin(d Direction, end bool)
	// Scan returns how many bytes of p, which is not empty, may pass in direction d before Active may change: at least 1.
	Scan(d Direction, p []byte) int
	// Feed tells that p has passed in direction d.
	Feed(d Direction, p []byte)
	// Free is the number of bytes that may pass in direction d, whatever they are, without changing Active.
	Free(d Direction) int64
	// Skip tells that n bytes, at most Free, have passed in direction d unseen.
	Skip(d Direction, n int64)
	// String describes the state in a few words.
	String() string
}

// Unbounded is the Free of a machine that does not look at bytes.
const Unbounded = math.MaxInt64

// Blind is the part of a [Machine] that looks at nothing; embed it and override what the trigger needs.
type Blind struct{}

// Next is never.
func (Blind) Next(time.Time) time.Time { return time.Time{} }

// Begin does nothing.
func (Blind) Begin(Direction, bool) {}

// Scan lets all of p pass.
func (Blind) Scan(_ Direction, p []byte) int { return len(p) }

// Feed does nothing.
func (Blind) Feed(Direction, []byte) {}

// Free is Unbounded.
func (Blind) Free(Direction) int64 { return Unbounded }

// Skip does nothing.
func (Blind) Skip(Direction, int64) {}

func state(active bool) string {
	if active {
		return "active"
	}
	return "waiting"
}

// AtOnce is active from the start of the connection.
func AtOnce() Trigger { return AfterBytes(0) }

// AfterBytes fires when n bytes have passed in the direction of the fault (in both together, if it is Both). Byte n
// passes, byte n+1 does not, wherever the calls to Read and Write cut the stream.
func AfterBytes(n int64) Trigger { return afterBytes(n) }

type afterBytes int64

func (n afterBytes) Validate() error {
	if n < 0 {
		return fmt.Errorf("AfterBytes(%d): the count is negative", int64(n))
	}
	return nil
}
func (afterBytes) Switches() []*Switch { return nil }
func (n afterBytes) Arm(on Direction, _ time.Time) Machine {
	return &byteCount{on: on, left: int64(n)}
}

type byteCount struct {
	Blind
	on   Direction
	left int64
}

func (m *byteCount) Active(time.Time) bool { return m.left == 0 }
func (m *byteCount) Scan(d Direction, p []byte) int {
	return int(min(int64(len(p)), m.Free(d)))
}
func (m *byteCount) Feed(d Direction, p []byte) { m.Skip(d, int64(len(p))) }
func (m *byteCount) Free(d Direction) int64 {
	if m.left == 0 || !m.on.has(d) {
		return Unbounded
	}
	return m.left
}
func (m *byteCount) Skip(d Direction, n int64) {
	if m.on.has(d) {
		m.left -= min(n, m.left)
	}
}
func (m *byteCount) String() string {
	if m.left == 0 {
		return state(true)
	}
	return fmt.Sprintf("%d bytes to go", m.left)
}

// AfterTurns fires when the direction of the traffic has turned n times: the byte that makes the n-th turn is the first
// one that meets the fault. With n = 1 the request passes and the answer does not. Traffic that flows both ways at
// once turns as often as its pieces happen to alternate.
func AfterTurns(n int) Trigger { return afterTurns{n: n, call: "AfterTurns", unit: 1} }

// AfterExchanges fires when n exchanges have passed: an exchange is bytes one way, then bytes the other way. The first
// byte of exchange n+1 meets the fault. It is AfterTurns(2n).
func AfterExchanges(n int) Trigger { return afterTurns{n: n, call: "AfterExchanges", unit: 2} }

type afterTurns struct {
	n, unit int
	call    string
}

func (t afterTurns) Validate() error {
	if t.n < 0 {
		return fmt.Errorf("%s(%d): the count is negative", t.call, t.n)
	}
	return nil
}
func (afterTurns) Switches() []*Switch { return nil }
func (t afterTurns) Arm(Direction, time.Time) Machine {
	return &turnCount{left: t.n * t.unit}
}

type turnCount struct {
	Blind
	left int
	last Direction
}

func (m *turnCount) Active(time.Time) bool { return m.left == 0 }
func (m *turnCount) Begin(d Direction, end bool) {
	if end || m.left == 0 {
		return
	}
	if m.last != 0 && m.last != d {
		m.left--
	}
	m.last = d
}
func (m *turnCount) Free(Direction) int64 {
	if m.left == 0 {
		return Unbounded
	}
	return 0
}
func (m *turnCount) String() string {
	if m.left == 0 {
		return state(true)
	}
	return fmt.Sprintf("%d turns to go", m.left)
}

// After fires when the connection has existed for d, also while nothing flows.
func After(d time.Duration) Trigger { return after(d) }

type after time.Duration

func (d after) Validate() error {
	if d < 0 {
		return fmt.Errorf("After(%v): the duration is negative", time.Duration(d))
	}
	return nil
}
func (after) Switches() []*Switch { return nil }
func (d after) Arm(_ Direction, now time.Time) Machine {
	return &alarm{at: now.Add(time.Duration(d))}
}

type alarm struct {
	Blind
	at time.Time
}

func (m *alarm) Active(now time.Time) bool { return !now.Before(m.at) }
func (m *alarm) Next(now time.Time) time.Time {
	if m.Active(now) {
		return time.Time{}
	}
	return m.at
}
func (m *alarm) String() string { return "at " + m.at.UTC().Format("15:04:05.000") }

// OnMatch fires when pattern has passed in one of the fault's directions, however the stream is cut into pieces. The
// pattern itself passes; what follows meets the fault.
func OnMatch(pattern []byte) Trigger { return onMatch(bytes.Clone(pattern)) }

type onMatch []byte

func (p onMatch) Validate() error {
	if len(p) == 0 {
		return errors.New("OnMatch: the pattern is empty")
	}
	return nil
}
func (onMatch) Switches() []*Switch { return nil }
func (p onMatch) Arm(on Direction, _ time.Time) Machine {
	m := &matcher{on: on, pattern: p, fail: make([]int, len(p))}
	for i, k := 1, 0; i < len(p); i++ {
		for k > 0 && p[i] != p[k] {
			k = m.fail[k-1]
		}
		if p[i] == p[k] {
			k++
		}
		m.fail[i] = k
	}
	return m
}

// matcher is the automaton of Knuth, Morris and Pratt, one position a direction.
type matcher struct {
	Blind
	on      Direction
	pattern []byte
	fail    []int
	at      [2]int
	done    bool
}

func (m *matcher) Active(time.Time) bool { return m.done }

// run returns how many bytes of p pass up to the end of the first match, the position after them, and if it matched.
func (m *matcher) run(at int, p []byte) (n, pos int, matched bool) {
	for i, b := range p {
		for at > 0 && b != m.pattern[at] {
			at = m.fail[at-1]
		}
		if b == m.pattern[at] {
			at++
		}
		if at == len(m.pattern) {
			return i + 1, 0, true
		}
	}
	return len(p), at, false
}

func (m *matcher) Scan(d Direction, p []byte) int {
	if m.done || !m.on.has(d) {
		return len(p)
	}
	n, _, _ := m.run(m.at[d.lane()], p)
	return n
}

func (m *matcher) Feed(d Direction, p []byte) {
	if m.done || !m.on.has(d) {
		return
	}
	_, m.at[d.lane()], m.done = m.run(m.at[d.lane()], p)
}

func (m *matcher) Free(d Direction) int64 {
	if m.done || !m.on.has(d) {
		return Unbounded
	}
	return 0
}
func (m *matcher) String() string { return state(m.done) }
