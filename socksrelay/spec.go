package socksrelay

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/seed-5a7f77c4/deadair/blackhole"
)

// Spec describes a fault in words and figures: the form in which the command and its API take faults. Its JSON names
// are those of the fields in lower case.
type Spec struct {
	Name  string `json:"name"`
	Phase string `json:"phase"`
	// On is up, down or both; empty means both.
	On string `json:"on,omitempty"`
	// Effect is swallow, stall, delay, throttle, slice, truncate, corrupt, reset, close, half-close or answer.
	Effect string `json:"effect"`
	// Size is bytes: of a slice, of what truncate leaves, of a run for corrupt.
	Size int `json:"size,omitempty"`
	// Rate is for throttle, in bytes a second.
	Rate int `json:"rate,omitempty"`
	// Pause is for delay and slice.
	Pause Duration `json:"pause,omitempty"`
	// Code is for answer: the reply code.
	Code byte `json:"code,omitempty"`
	// Early is for answer: success before the dial is done.
	Early bool `json:"early,omitempty"`
	// Bound is for answer: the bound address that the reply gives instead of the right one, such as "192.0.2.1:1".
	Bound netip.AddrPort `json:"bound,omitzero"`
	// AfterBytes, AfterExchanges, AfterTime and AfterTLS begin to look when the phase begins; at most one is set.
	AfterBytes     int64    `json:"afterbytes,omitempty"`
	AfterExchanges int      `json:"afterexchanges,omitempty"`
	AfterTime      Duration `json:"aftertime,omitempty"`
	AfterTLS       bool     `json:"aftertls,omitempty"`
	// Destination, User, Nth, Chance and Seed select connections as in Selector.
	Destination string  `json:"destination,omitempty"`
	User        string  `json:"user,omitempty"`
	Nth         int     `json:"nth,omitempty"`
	Chance      float64 `json:"chance,omitempty"`
	Seed        uint64  `json:"seed,omitempty"`
	// Active is whether the fault's switch is on.
	Active bool `json:"active"`
}

// Duration is a time.Duration that JSON writes as "1.5s".
type Duration time.Duration

// MarshalJSON writes the duration as a string.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).String()) }

// UnmarshalJSON reads what time.ParseDuration understands.
func (d *Duration) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("duration %s: want a string such as \"1.5s\"", b)
	}
	v, err := time.ParseDuration(s)
	if err != nil {
		return fmt.Errorf("duration %q: want a string such as \"1.5s\"", s)
	}
	*d = Duration(v)
	return nil
}

// Fault makes the fault, with a switch of its own, thrown if Active is set.
func (s Spec) Fault() (*Fault, error) {
	f, err := s.fault()
	if err != nil {
		return nil, fmt.Errorf("socksrelay: fault %q: %w", s.Name, err)
	}
	if err := f.prepare(); err != nil {
		return nil, fmt.Errorf("%s: %w", s.describe(), err)
	}
	f.Switch.Set(s.Active)
	return f, nil
}

func (s Spec) fault() (*Fault, error) {
	if s.Name == "" {
		return nil, errors.New("the name is missing")
	}
	f := &Fault{Name: s.Name, Switch: new(blackhole.Switch), Select: Selector{
		Destination: s.Destination, User: s.User, Nth: s.Nth, Chance: s.Chance, Seed: s.Seed,
	}}
	var err error
	if f.Phase, err = ParsePhase(s.Phase); err != nil {
		return nil, err
	}
	if s.On != "" {
		if f.On, err = blackhole.ParseDirection(s.On); err != nil {
			return nil, err
		}
	}
	if f.When, err = s.when(); err != nil {
		return nil, err
	}
	kind, ok := effects[s.Effect]
	if !ok {
		return nil, fmt.Errorf("effect %q is unknown", s.Effect)
	}
	if err := s.checkFigures(); err != nil {
		return nil, err
	}
	if kind.make == nil {
		f.Answer = &Answer{Code: s.Code, Early: s.Early, Bound: s.Bound}
		return f, nil
	}
	f.Do = kind.make(s)
	return f, nil
}

// effects are the kinds of effect by name: how each is made, and the figures that belong to it.
var effects = map[string]struct {
	make    func(Spec) blackhole.Effect // nil for an Answer
	figures string
}{
	"swallow":    {func(Spec) blackhole.Effect { return blackhole.Swallow() }, "on"},
	"stall":      {func(Spec) blackhole.Effect { return blackhole.Stall() }, "on"},
	"reset":      {func(Spec) blackhole.Effect { return blackhole.Reset() }, "on"},
	"close":      {func(Spec) blackhole.Effect { return blackhole.Close() }, "on"},
	"half-close": {func(Spec) blackhole.Effect { return blackhole.HalfClose() }, "on"},
	"delay":      {func(s Spec) blackhole.Effect { return blackhole.Delay(time.Duration(s.Pause)) }, "on pause"},
	"throttle":   {func(s Spec) blackhole.Effect { return blackhole.Throttle(s.Rate) }, "on rate"},
	"slice":      {func(s Spec) blackhole.Effect { return blackhole.Slice(s.Size, time.Duration(s.Pause)) }, "on size pause"},
	"truncate":   {func(s Spec) blackhole.Effect { return blackhole.Truncate(s.Size) }, "on size"},
	"corrupt":    {func(s Spec) blackhole.Effect { return blackhole.Corrupt(s.Seed, s.Size) }, "on size seed"},
	"answer":     {nil, "code early bound"},
}

// figures lists the fields that only some effects have, and their values.
func (s Spec) figures() []figure {
	return []figure{
		{"on", s.On, s.On != ""}, {"size", s.Size, s.Size != 0}, {"rate", s.Rate, s.Rate != 0},
		{"pause", time.Duration(s.Pause), s.Pause != 0}, {"seed", s.Seed, s.Seed != 0 && s.Chance == 0},
		{"code", s.Code, s.Code != 0}, {"early", s.Early, s.Early}, {"bound", s.Bound, s.Bound != netip.AddrPort{}},
	}
}

type figure struct {
	name  string
	value any
	set   bool
}

// checkFigures refuses figures that the effect does not have, because nothing would come of them.
func (s Spec) checkFigures() error {
	own := strings.Fields(effects[s.Effect].figures)
	for _, f := range s.figures() {
		if f.set && !slices.Contains(own, f.name) {
			return fmt.Errorf("%s %v does not belong to effect %q", f.name, f.value, s.Effect)
		}
	}
	return nil
}

// describe gives the effect and its figures.
func (s Spec) describe() string {
	text := fmt.Sprintf("effect %q", s.Effect)
	for _, f := range s.figures() {
		if f.set {
			text += fmt.Sprintf(", %s %v", f.name, f.value)
		}
	}
	return text
}

func (s Spec) when() (blackhole.Trigger, error) {
	var all []blackhole.Trigger
	if s.AfterBytes != 0 {
		all = append(all, blackhole.AfterBytes(s.AfterBytes))
	}
	if s.AfterExchanges != 0 {
		all = append(all, blackhole.AfterExchanges(s.AfterExchanges))
	}
	if s.AfterTime != 0 {
		all = append(all, blackhole.After(time.Duration(s.AfterTime)))
	}
	if s.AfterTLS {
		all = append(all, blackhole.AfterTLSHandshake())
	}
	switch len(all) {
	case 0:
		return nil, nil
	case 1:
		return all[0], nil
	}
	return nil, errors.New("more than one of afterbytes, afterexchanges, aftertime and aftertls")
}
