package socksrelay

import (
	"encoding/json"
	"errors"
	"fmt"
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
	*d = Duration(v)
	return err
}

// Fault makes the fault, with a switch of its own, thrown if Active is set.
func (s Spec) Fault() (*Fault, error) {
	f, err := s.fault()
	if err == nil {
		err = f.prepare()
	}
	if err != nil {
		return nil, fmt.Errorf("fault %q: %w", s.Name, err)
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
	if s.Effect == "answer" {
		f.Answer = &Answer{Code: s.Code, Early: s.Early}
		return f, nil
	}
	effects := map[string]blackhole.Effect{
		"swallow": blackhole.Swallow(), "stall": blackhole.Stall(), "reset": blackhole.Reset(), "close": blackhole.Close(),
		"half-close": blackhole.HalfClose(), "delay": blackhole.Delay(time.Duration(s.Pause)), "throttle": blackhole.Throttle(s.Rate),
		"slice": blackhole.Slice(s.Size, time.Duration(s.Pause)), "truncate": blackhole.Truncate(s.Size), "corrupt": blackhole.Corrupt(s.Seed, s.Size),
	}
	do, ok := effects[s.Effect]
	if !ok {
		return nil, fmt.Errorf("effect %q is unknown", s.Effect)
	}
	f.Do = do
	return f, nil
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
