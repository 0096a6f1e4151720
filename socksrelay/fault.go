package socksrelay

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync/atomic"

	"github.com/seed-5a7f77c4/deadair/blackhole"
)

// Fault is one way in which the relay fails. Fill it in and give it to [Config] or [Relay.Add]; it must not be copied
// or changed after that.
type Fault struct {
	// Name identifies the fault in errors, logs and the API; without it the fault describes itself.
	Name string
	// Phase is when it happens.
	Phase Phase
	// When narrows it further and begins to look when the phase begins; the fault then lasts to the end of the
	// connection. nil means: in this phase only, but from Data on, and with the effect Swallow, to the end.
	When blackhole.Trigger
	// Do is what happens to the bytes. Either Do or Answer is set.
	Do blackhole.Effect
	// On says to which bytes, as the client sees them: Up is what it sends. The zero value means Both.
	On blackhole.Direction
	// Answer is what the relay itself says or does; its phase must be Dial or Reply.
	Answer *Answer
	// Select says which connections it concerns; the zero value means all of them.
	Select Selector
	// Switch, if set, turns the fault on and off, also while it acts.
	Switch *blackhole.Switch

	wire *blackhole.Fault
	hits atomic.Int64
}

// Answer is a false answer to a request.
type Answer struct {
	// Code is the reply code: 1 to 8 as in RFC 1928, or any nonsense. Unless it is 0 nothing is dialled.
	Code byte
	// Bound, if valid, is the bound address that the reply gives instead of the right one.
	Bound netip.AddrPort
	// Early makes the relay report success at once and dial then; if the dial fails, the client sees the connection end.
	Early bool
}

// Selector says which connections a fault concerns. All conditions that are set must hold.
type Selector struct {
	// Destination is the host, or host:port, that the client asks for, in its own spelling. The phase must be Dial or later.
	Destination string
	// User is the name with which the client authenticates. The phase must be Request or later.
	User string
	// Nth is the number of the connection, the first one being 1; 0 means every one.
	Nth int
	// Chance between 0 and 1 draws for each connection; 0 means every one.
	Chance float64
	// Seed is where the draws come from, together with the number of the connection.
	Seed uint64
}

func (s Selector) validate(p Phase) error {
	switch {
	case s.Destination != "" && p < Dial:
		return fmt.Errorf("the destination %q is not known in phase %v", s.Destination, p)
	case s.User != "" && p < Request:
		return fmt.Errorf("the user %q is not known in phase %v", s.User, p)
	case s.Nth < 0:
		return fmt.Errorf("Nth %d is negative", s.Nth)
	case !(s.Chance >= 0 && s.Chance <= 1):
		return fmt.Errorf("Chance %v is not between 0 and 1", s.Chance)
	}
	return nil
}

// picks reports whether connection number n may be concerned.
func (s Selector) picks(n int) bool {
	if s.Nth != 0 && s.Nth != n {
		return false
	}
	return s.Chance == 0 || rand.New(rand.NewPCG(s.Seed, uint64(n))).Float64() < s.Chance
}

// matches reports whether a connection of a user to a destination is concerned.
func (s Selector) matches(user, destination string) bool {
	if s.User != "" && s.User != user {
		return false
	}
	if s.Destination == "" || s.Destination == destination {
		return true
	}
	if destination == "" {
		return false // not known yet
	}
	host, _ := splitDestination(destination)
	return host == s.Destination
}

// BlackHole is the fault that swallows every byte of both directions once when fires; when begins to look after the
// SOCKS reply. nil means right after the reply.
func BlackHole(when blackhole.Trigger) *Fault {
	return &Fault{Name: "black hole", Phase: Data, When: when, Do: blackhole.Swallow(), On: blackhole.Both}
}

// Refuse is the fault that answers every request with a reply code and dials nothing.
func Refuse(code byte) *Fault {
	return &Fault{Name: fmt.Sprintf("reply %d", code), Phase: Dial, Answer: &Answer{Code: code}}
}

// Hits is how often the fault has taken effect.
func (f *Fault) Hits() int64 {
	if f.wire != nil {
		return f.wire.Hits()
	}
	return f.hits.Load()
}

// String is the name, or what happens when.
func (f *Fault) String() string {
	if f.Name != "" {
		return f.Name
	}
	if f.Answer != nil {
		return fmt.Sprintf("answer %d", f.Answer.Code)
	}
	return fmt.Sprintf("%v in %v", f.Do, f.Phase)
}

// prepare checks the fault and makes the wire fault from it.
func (f *Fault) prepare() error {
	if f == nil {
		return errors.New("socksrelay: fault is nil")
	}
	if err := f.check(); err != nil {
		return fmt.Errorf("socksrelay: fault %q: %w", f.String(), err)
	}
	if f.Answer != nil || f.wire != nil {
		return nil
	}
	wire := &blackhole.Fault{Name: f.String(), When: f.trigger(), Do: f.Do, On: f.On}
	if wire.On == 0 {
		wire.On = blackhole.Both
	}
	if err := wire.Validate(); err != nil {
		return fmt.Errorf("socksrelay: %w", err)
	}
	f.wire = wire
	return nil
}

func (f *Fault) check() error {
	if err := (phaseTrigger{from: f.Phase}).Validate(); err != nil {
		return err
	}
	if err := f.Select.validate(f.Phase); err != nil {
		return err
	}
	if f.Answer == nil {
		return nil
	}
	switch {
	case f.Do != blackhole.Effect{}:
		return errors.New("both Do and Answer are set")
	case f.When != nil:
		return errors.New("When does not go with an Answer")
	case f.Phase != Dial && f.Phase != Reply:
		return fmt.Errorf("an Answer in phase %v: want dial or reply", f.Phase)
	case f.Answer.Code != 0 && f.Answer.Early:
		return fmt.Errorf("an early success with code %d", f.Answer.Code)
	case *f.Answer == Answer{}:
		return errors.New("the Answer changes nothing")
	}
	return nil
}

// trigger joins phase, condition, selection and switch.
func (f *Fault) trigger() blackhole.Trigger {
	var t blackhole.Trigger = phaseTrigger{from: f.Phase, to: f.Phase, sel: f.Select}
	if f.Phase == Data || f.When != nil || f.Do == blackhole.Swallow() {
		t = phaseTrigger{from: f.Phase, to: Close, sel: f.Select}
	}
	if f.When != nil {
		t = blackhole.Then(t, f.When)
	}
	if f.Switch != nil {
		t = blackhole.All(t, f.Switch.Thrown())
	}
	return t
}

// answers reports whether the fault gives a false answer to this request, and counts it.
func (f *Fault) answers(user, destination string) bool {
	if f.Answer == nil || f.Switch != nil && !f.Switch.IsOn() || !f.Select.matches(user, destination) {
		return false
	}
	f.hits.Add(1)
	return true
}
