package socksrelay

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/seed-5a7f77c4/deadair/blackhole"
)

// Phase is a part of a SOCKS5 conversation. The zero Phase is none and is refused.
type Phase uint8

const (
	Accept         Phase = iota + 1 // from the accept until the client's first byte has been read
	Greeting                        // the client offers methods
	Method                          // the relay chooses one
	Authentication                  // user name and password, and the relay's verdict
	Request                         // the client asks for a destination
	Dial                            // until the first byte of the reply has gone out
	Reply                           // the rest of the reply
	Data                            // both ways
	Close                           // from the first end of a stream on
)

var phaseNames = [...]string{"none", "accept", "greeting", "method", "authentication", "request", "dial", "reply", "data", "close"}

// String is the phase's name in lower case.
func (p Phase) String() string {
	if int(p) < len(phaseNames) {
		return phaseNames[p]
	}
	return fmt.Sprintf("Phase(%d)", uint8(p))
}

// ParsePhase is the inverse of String.
func ParsePhase(s string) (Phase, error) {
	for p := Accept; p <= Close; p++ {
		if p.String() == s {
			return p, nil
		}
	}
	return 0, fmt.Errorf("socksrelay: phase %q: want one of %v", s, phaseNames[1:])
}

// conversation follows a SOCKS5 conversation byte by byte, seen at the client's connection. It is a pure parser: it
// believes what it sees and leaves judgement to the server.
type conversation struct {
	phase   Phase
	field   []byte // the message so far
	user    string
	host    string
	port    int
	answers bool // authentication: the client has spoken, the relay answers
}

const (
	methodNone     = 0
	methodPassword = 2
	atypIPv4       = 1
	atypName       = 3
	atypIPv6       = 4
)

// destination is host:port as the client asked for it; empty before the request has passed.
func (c *conversation) destination() string {
	if c.phase < Dial || c.port == 0 && c.host == "" {
		return ""
	}
	return net.JoinHostPort(c.host, strconv.Itoa(c.port))
}

// splitDestination undoes net.JoinHostPort for any host: a client may ask for a name that net.SplitHostPort refuses.
func splitDestination(destination string) (host, port string) {
	at := strings.LastIndexByte(destination, ':')
	host, port = destination[:at], destination[at+1:]
	if bare := strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"); len(bare) == len(host)-2 && strings.ContainsAny(bare, ":%") {
		host = bare
	}
	return host, port
}

// speaker is the direction whose bytes the conversation waits for; other bytes are early data and belong to no message.
func (c *conversation) speaker() blackhole.Direction {
	switch {
	case c.phase == Method, c.phase == Dial, c.phase == Reply, c.phase == Authentication && c.answers:
		return blackhole.Down
	case c.phase >= Data:
		return 0
	}
	return blackhole.Up
}

// feed takes one byte.
func (c *conversation) feed(d blackhole.Direction, b byte) {
	if d != c.speaker() {
		return
	}
	c.field = append(c.field, b)
	switch c.phase {
	case Accept:
		c.phase = Greeting
	case Greeting:
		if len(c.field) >= 2 && len(c.field) == 2+int(c.field[1]) {
			c.next(Method)
		}
	case Method:
		if len(c.field) == 2 {
			switch b {
			case methodNone:
				c.next(Request)
			case methodPassword:
				c.next(Authentication)
			default:
				c.next(Close)
			}
		}
	case Authentication:
		c.feedAuthentication()
	case Request:
		if n := addressed(c.field); n > 0 && len(c.field) == n {
			c.host, c.port = address(c.field)
			c.next(Dial)
		}
	case Dial:
		c.phase = Reply
	case Reply:
		if n := addressed(c.field); n > 0 && len(c.field) == n {
			c.next(Data)
		}
	}
}

func (c *conversation) next(p Phase) { c.phase, c.field = p, nil }

func (c *conversation) feedAuthentication() {
	f := c.field
	if c.answers {
		if len(f) == 2 {
			c.next(Request)
		}
		return
	}
	if len(f) < 2 {
		return
	}
	ulen := int(f[1])
	if len(f) >= 3+ulen && len(f) == 3+ulen+int(f[2+ulen]) {
		c.user = string(f[2 : 2+ulen])
		c.field, c.answers = nil, true
	}
}

// addressed is the size of a request or reply, as far as it is known: 0 while it is not.
func addressed(f []byte) int {
	if len(f) < 5 {
		return 0
	}
	switch f[3] {
	case atypIPv4:
		return 4 + 4 + 2
	case atypIPv6:
		return 4 + 16 + 2
	case atypName:
		return 5 + int(f[4]) + 2
	}
	return len(f) // unknown: the message ends here
}

// address takes host and port from a complete request.
func address(f []byte) (string, int) {
	rest := f[4:]
	switch f[3] {
	case atypIPv4, atypIPv6:
		host := rest[:len(rest)-2]
		return net.IP(host).String(), int(rest[len(rest)-2])<<8 | int(rest[len(rest)-1])
	case atypName:
		return string(rest[1 : len(rest)-2]), int(rest[len(rest)-2])<<8 | int(rest[len(rest)-1])
	}
	return "", 0
}

// During is the trigger that is active in one phase of the SOCKS5 conversation on the connection of a client.
func During(p Phase) blackhole.Trigger { return phaseTrigger{from: p, to: p} }

// From is the trigger that fires when a phase begins, or when it has been passed over.
func From(p Phase) blackhole.Trigger { return phaseTrigger{from: p, to: Close} }

type phaseTrigger struct {
	from, to Phase
	sel      Selector
}

func (t phaseTrigger) Validate() error {
	if t.from < Accept || t.from > Close {
		return fmt.Errorf("phase %v does not exist", t.from)
	}
	return nil
}
func (phaseTrigger) Switches() []*blackhole.Switch { return nil }
func (t phaseTrigger) Arm(blackhole.Direction, time.Time) blackhole.Machine {
	return &phaseMachine{plan: t, talk: conversation{phase: Accept}}
}

type phaseMachine struct {
	blackhole.Blind
	plan phaseTrigger
	talk conversation
}

func (m *phaseMachine) Active(time.Time) bool {
	return m.talk.phase >= m.plan.from && m.talk.phase <= m.plan.to && m.plan.sel.matches(m.talk.user, m.talk.destination())
}
func (m *phaseMachine) Begin(_ blackhole.Direction, end bool) {
	if end && m.talk.phase == Data {
		m.talk.phase = Close
	}
}
func (m *phaseMachine) Scan(_ blackhole.Direction, p []byte) int {
	if m.talk.phase >= Data {
		return len(p)
	}
	return 1
}
func (m *phaseMachine) Feed(d blackhole.Direction, p []byte) {
	for _, b := range p {
		m.talk.feed(d, b)
	}
}
func (m *phaseMachine) Free(blackhole.Direction) int64 {
	if m.talk.phase >= Data {
		return blackhole.Unbounded
	}
	return 0
}
func (m *phaseMachine) String() string { return m.talk.phase.String() }
