package memory

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/seed-5a7f77c4/deadair/selection/route"
)

// Profile is what is stored about one machine. Every field beyond routes and lastGood was added later and is optional,
// so the oldest profile decodes unchanged; fields that this version does not know are kept and written back.
type Profile struct {
	// Routes are the saved ways to the machine.
	Routes []Route
	// Memory holds both memories.
	Memory *Memory

	unknown map[string]json.RawMessage
}

// Route is one saved way to the machine.
type Route struct {
	Address string
	Port    uint16
	Owner   string

	unknown map[string]json.RawMessage
}

// Candidate gives the saved route as a candidate that discovery does not see.
func (r Route) Candidate() route.Candidate {
	return route.Candidate{Address: r.Address, Port: r.Port, Owner: r.Owner}
}

// The stored forms. Names are a contract with profiles that exist: add, never rename.
type (
	storedProfile struct {
		Routes    []json.RawMessage          `json:"routes"`
		LastGood  route.Key                  `json:"lastGood,omitempty"`
		Networks  []Network                  `json:"networks,omitempty"`
		Endpoints map[route.Key]endpointJSON `json:"endpoints,omitempty"`
	}
	storedRoute struct {
		Address string `json:"address"`
		Port    uint16 `json:"port,omitempty"`
		Owner   string `json:"owner,omitempty"`
	}
	endpointJSON struct {
		LastSuccessAt       *time.Time `json:"lastSuccessAt,omitempty"`
		LastFailedAt        *time.Time `json:"lastFailedAt,omitempty"`
		ConsecutiveFailures int        `json:"consecutiveFailures,omitempty"`
		NegotiatedReadyV2   bool       `json:"negotiatedReadyV2,omitempty"`
	}
)

// DecodeProfile reads a stored profile; its memory follows the policy. The error names what could not be read.
func DecodeProfile(data []byte, policy Policy) (*Profile, error) {
	var stored storedProfile
	p := &Profile{Memory: New(policy)}
	var err error
	if p.unknown, err = decode(data, &stored); err != nil {
		return nil, fmt.Errorf("memory.DecodeProfile: %w", err)
	}
	for i, raw := range stored.Routes {
		var r storedRoute
		unknown, err := decode(raw, &r)
		if err != nil {
			return nil, fmt.Errorf("memory.DecodeProfile: route %d: %w", i, err)
		}
		p.Routes = append(p.Routes, Route{Address: r.Address, Port: r.Port, Owner: r.Owner, unknown: unknown})
	}
	m := p.Memory
	m.lastGood = stored.LastGood
	m.networks = stored.Networks[:min(len(stored.Networks), policy.Capacity)]
	for key, e := range stored.Endpoints {
		m.endpoints[key] = Endpoint{
			LastSuccessAt:       deref(e.LastSuccessAt),
			LastFailedAt:        deref(e.LastFailedAt),
			ConsecutiveFailures: e.ConsecutiveFailures,
			NegotiatedReadyV2:   e.NegotiatedReadyV2,
		}
	}
	return p, nil
}

// MarshalJSON writes the profile, the fields it did not understand included. A nil Memory is an empty one.
func (p Profile) MarshalJSON() ([]byte, error) {
	m := p.Memory
	if m == nil {
		m = &Memory{}
	}
	stored := storedProfile{
		Routes:    make([]json.RawMessage, len(p.Routes)),
		LastGood:  m.lastGood,
		Networks:  m.networks,
		Endpoints: make(map[route.Key]endpointJSON, len(m.endpoints)),
	}
	for i, r := range p.Routes {
		raw, err := encode(storedRoute{Address: r.Address, Port: r.Port, Owner: r.Owner}, r.unknown)
		if err != nil {
			return nil, fmt.Errorf("memory.Profile: route %d: %w", i, err)
		}
		stored.Routes[i] = raw
	}
	for key, e := range m.endpoints {
		stored.Endpoints[key] = endpointJSON{
			LastSuccessAt:       ref(e.LastSuccessAt),
			LastFailedAt:        ref(e.LastFailedAt),
			ConsecutiveFailures: e.ConsecutiveFailures,
			NegotiatedReadyV2:   e.NegotiatedReadyV2,
		}
	}
	return encode(stored, p.unknown)
}

// Keys lists every route the memories know of, sorted.
func (m *Memory) Keys() []route.Key {
	return slices.SortedFunc(maps.Keys(m.endpoints), cmp.Compare)
}

// decode reads data into known and gives back the fields that the struct has no place for.
func decode[T any](data []byte, known *T) (map[string]json.RawMessage, error) {
	if err := json.Unmarshal(data, known); err != nil {
		return nil, err
	}
	var unknown map[string]json.RawMessage
	if err := json.Unmarshal(data, &unknown); err != nil {
		return nil, err
	}
	for form, i := reflect.TypeFor[T](), 0; i < form.NumField(); i++ {
		name, _, _ := strings.Cut(form.Field(i).Tag.Get("json"), ",")
		delete(unknown, name)
	}
	return unknown, nil
}

func encode(known any, unknown map[string]json.RawMessage) ([]byte, error) {
	data, err := json.Marshal(known)
	if err != nil || len(unknown) == 0 {
		return data, err
	}
	all := maps.Clone(unknown)
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, err
	}
	return json.Marshal(all)
}

func ref(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func deref(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}
