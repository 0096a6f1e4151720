package handshake

import (
	"fmt"
	"os"
	"time"
)

// The windows of the handshake. Ready is shorter than a race, so that a half-open relay fails inside it and is recorded.
const (
	OpenWindow     = 5 * time.Second
	AcceptedWindow = 350 * time.Millisecond
	ReadyWindow    = 7 * time.Second
)

// Policy holds the rules of the handshake: take DefaultPolicy and change what differs.
type Policy struct {
	// OpenWindow, AcceptedWindow and ReadyWindow default to the constants of the same names. ReadyWindow counts from
	// accepted.
	OpenWindow, AcceptedWindow, ReadyWindow time.Duration
	// Extends says that accepted extends the deadline to ReadyWindow. Default true.
	Extends bool
	// InOrder says that a ready before accepted is ignored. Default true.
	InOrder bool
	// TokenWithOpen says that the account's token is fetched while the socket opens. Default true.
	TokenWithOpen bool
	// Redials reports whether a ready=2 socket that timed out is followed by a legacy one. Default: only if accepted
	// never came and the endpoint has never negotiated ready=2.
	Redials func(accepted, negotiated bool) bool
}

// DefaultPolicy gives the rules as they should be.
func DefaultPolicy() Policy {
	return Policy{
		OpenWindow: OpenWindow, AcceptedWindow: AcceptedWindow, ReadyWindow: ReadyWindow,
		Extends: true, InOrder: true, TokenWithOpen: true,
		Redials: func(accepted, negotiated bool) bool { return !accepted && !negotiated },
	}
}

// Phase is where a handshake stands.
type Phase uint8

// The phases, in their order.
const (
	Opening Phase = iota
	AwaitingAccepted
	AwaitingReady
	AwaitingToken
	Greeting
	Done
	Failed
)

// String is the phase in a word.
func (p Phase) String() string {
	return [...]string{"open", "accepted", "ready", "token", "hello", "done", "failed"}[p]
}

// TimeoutError says for what the handshake waited in vain. It is os.ErrDeadlineExceeded.
type TimeoutError struct{ Phase Phase }

// Error implements error.
func (e *TimeoutError) Error() string { return "handshake: timed out waiting for " + e.Phase.String() }

// Timeout is true, as net.Error wants it.
func (e *TimeoutError) Timeout() bool { return true }

// Temporary is false: another attempt is the caller's decision.
func (e *TimeoutError) Temporary() bool { return false }

func (e *TimeoutError) Unwrap() error { return os.ErrDeadlineExceeded }

// Signal is what a relay says before the hello.
type Signal uint8

// The signals of a relay.
const (
	Accepted Signal = iota + 1
	Ready
)

// Op is what a handshake wants done.
type Op uint8

// The operations of a handshake.
const (
	FetchToken Op = iota
	OpenV2
	OpenLegacy // drop the socket there is, open a fresh one without ready=2
	SendHello
)

// Machine is one handshake. It is told what happens, with the time, and answers with what to do.
type Machine struct {
	policy                Policy
	negotiated            bool
	phase                 Phase
	deadline              time.Time
	legacy, accepted      bool
	tokenAsked, tokenHere bool
	err                   error
}

// NewMachine makes a handshake with an endpoint that has, or has not, negotiated ready=2 before.
func NewMachine(p Policy, negotiated bool) *Machine {
	return &Machine{policy: p, negotiated: negotiated}
}

// Start begins: the socket and, at the same time, the token.
func (m *Machine) Start(now time.Time) []Op {
	m.deadline = now.Add(m.policy.OpenWindow)
	if m.policy.TokenWithOpen {
		m.tokenAsked = true
		return []Op{FetchToken, OpenV2}
	}
	return []Op{OpenV2}
}

// Opened says that the socket is open.
func (m *Machine) Opened(now time.Time) []Op {
	if m.phase != Opening {
		return nil
	}
	if m.legacy {
		return m.hello()
	}
	m.phase, m.deadline = AwaitingAccepted, now.Add(m.policy.AcceptedWindow)
	return nil
}

// Heard says that the relay has sent a signal. A ready before accepted is ignored.
func (m *Machine) Heard(now time.Time, s Signal) []Op {
	switch {
	case m.phase == AwaitingAccepted && s == Accepted:
		m.accepted, m.phase = true, AwaitingReady
		if m.policy.Extends {
			m.deadline = now.Add(m.policy.ReadyWindow)
		}
	case s == Ready && (m.phase == AwaitingReady || m.phase == AwaitingAccepted && !m.policy.InOrder):
		return m.hello()
	}
	return nil
}

// Token says that the token is here, or why it is not.
func (m *Machine) Token(err error) []Op {
	if err != nil {
		m.fail(fmt.Errorf("handshake: token: %w", err))
		return nil
	}
	m.tokenHere = true
	if m.phase == AwaitingToken {
		return m.hello()
	}
	return nil
}

// Greeted says how the hello ended.
func (m *Machine) Greeted(err error) {
	if err != nil {
		m.fail(err)
	} else if m.phase == Greeting {
		m.phase = Done
	}
}

// Broken says that the socket could not be opened, or is gone.
func (m *Machine) Broken(err error) { m.fail(err) }

// Tick does what has come due: a time-out is a failure, or the reason to try the legacy way.
func (m *Machine) Tick(now time.Time) []Op {
	wake, ok := m.Wake()
	if !ok || now.Before(wake) {
		return nil
	}
	if m.phase != Opening && m.policy.Redials(m.accepted, m.negotiated) {
		m.legacy, m.phase, m.deadline = true, Opening, now.Add(m.policy.OpenWindow)
		return []Op{OpenLegacy}
	}
	m.fail(&TimeoutError{Phase: m.phase})
	return nil
}

// Wake gives the time of the next Tick; false when there is nothing to wait for. The token and the answer to the hello
// have the caller's time.
func (m *Machine) Wake() (time.Time, bool) { return m.deadline, m.phase <= AwaitingReady }

// Listening reports whether a signal may come.
func (m *Machine) Listening() bool { return m.phase == AwaitingAccepted || m.phase == AwaitingReady }

// Result gives the end: over, on a ready=2 socket or not, and the error.
func (m *Machine) Result() (over, v2 bool, err error) {
	return m.phase >= Done, m.phase == Done && !m.legacy, m.err
}

func (m *Machine) hello() []Op {
	if m.tokenHere {
		m.phase = Greeting
		return []Op{SendHello}
	}
	m.phase = AwaitingToken
	if m.tokenAsked {
		return nil
	}
	m.tokenAsked = true
	return []Op{FetchToken}
}

func (m *Machine) fail(err error) {
	if m.phase < Done {
		m.phase, m.err = Failed, err
	}
}
