package retry

import (
	"fmt"
	"slices"
	"time"

	"github.com/seed-5a7f77c4/deadair/selection/affinity"
	"github.com/seed-5a7f77c4/deadair/selection/breaker"
)

// Provider is one upstream.
type Provider struct {
	Name string // unique in the pool

	// Vendor is shared by the providers that one vendor's outage takes down
	// together. Empty: the provider has no vendor breaker.
	Vendor string

	// URL is the provider's own base URL. It is the only candidate when the
	// list of endpoints comes out empty and for requests that pass through.
	// Empty: such requests go to the next provider.
	URL string

	Endpoints []Endpoint
	Attempts  int // 0: the policy's
	Disabled  bool
}

// Pool is what outlives a request: the providers in their order of preference,
// their breakers, the probe results and the bindings of conversations. It has no
// lock: the caller serialises the calls on a pool and on its plans.
type Pool struct {
	policy    Policy
	providers []*provider
	endpoints map[string]*endpoint
	vendors   map[string]*breaker.Breaker
	bindings  *affinity.Table
}

type provider struct {
	Provider
	breaker   *breaker.Breaker
	vendor    *breaker.Breaker // nil without a vendor
	endpoints []*endpoint
}

type endpoint struct {
	Standing
	breaker *breaker.Breaker
}

// NewPool checks the policy and the providers and gives a pool in which every
// breaker is closed and nothing has been probed.
func NewPool(policy Policy, providers []Provider) (*Pool, error) {
	if err := policy.Validate(); err != nil {
		return nil, fmt.Errorf("retry.NewPool: %w", err)
	}
	if len(providers) == 0 {
		return nil, fmt.Errorf("retry.NewPool: no providers")
	}
	if policy.Attempts == 0 {
		policy.Attempts = DefaultPolicy().Attempts
	}
	p := &Pool{
		policy:    policy,
		endpoints: make(map[string]*endpoint),
		vendors:   make(map[string]*breaker.Breaker),
		bindings:  affinity.New(policy.Affinity, policy.AffinityCapacity),
	}
	for _, given := range providers {
		if err := p.add(given); err != nil {
			return nil, fmt.Errorf("retry.NewPool: %w", err)
		}
	}
	return p, nil
}

func (p *Pool) add(given Provider) error {
	switch {
	case given.Name == "":
		return fmt.Errorf("a provider has no name")
	case p.find(given.Name) != nil:
		return fmt.Errorf("two providers are named %q", given.Name)
	case given.URL == "" && len(given.Endpoints) == 0:
		return fmt.Errorf("provider %q has neither URL nor endpoints", given.Name)
	}
	entry := &provider{Provider: given, breaker: breaker.New(p.policy.ProviderBreaker)}
	if given.Vendor != "" {
		if p.vendors[given.Vendor] == nil {
			p.vendors[given.Vendor] = breaker.New(p.policy.VendorBreaker)
		}
		entry.vendor = p.vendors[given.Vendor]
	}
	for _, e := range given.Endpoints {
		switch {
		case e.ID == "" || e.URL == "":
			return fmt.Errorf("an endpoint of provider %q lacks ID or URL: %+v", given.Name, e)
		case p.endpoints[e.ID] != nil:
			return fmt.Errorf("two endpoints have the ID %q", e.ID)
		}
		listed := &endpoint{Standing: Standing{Endpoint: e}, breaker: breaker.New(p.policy.EndpointBreaker)}
		p.endpoints[e.ID] = listed
		entry.endpoints = append(entry.endpoints, listed)
	}
	p.providers = append(p.providers, entry)
	return nil
}

func (p *Pool) find(name string) *provider {
	for _, candidate := range p.providers {
		if candidate.Name == name {
			return candidate
		}
	}
	return nil
}

// RecordProbe takes the result of a health probe. It moves the endpoint in the
// order of candidates, and counts at its breaker while that is closed; it neither
// opens the way back nor bars it.
func (p *Pool) RecordProbe(endpointID string, probe Probe, now time.Time) error {
	e := p.endpoints[endpointID]
	if e == nil {
		return fmt.Errorf("retry.Pool.RecordProbe: no endpoint %q", endpointID)
	}
	if probe.At.IsZero() {
		probe.At = now
	}
	e.Probe = probe
	if !probe.OK {
		e.breaker.Observe(breaker.Failure, now)
	}
	return nil
}

// Level is one of the three places at which a pool has breakers.
type Level uint8

const (
	EndpointLevel Level = iota // by endpoint ID
	ProviderLevel              // by provider name
	VendorLevel                // by vendor name
)

// Health is what a breaker looks like from outside.
type Health struct {
	State    breaker.State
	Failures int       // consecutive, while closed
	Until    time.Time // when an open breaker's time is over
}

// Health shows one breaker at now; ok is false if there is none of that name.
func (p *Pool) Health(level Level, name string, now time.Time) (h Health, ok bool) {
	var b *breaker.Breaker
	switch level {
	case EndpointLevel:
		if e := p.endpoints[name]; e != nil {
			b = e.breaker
		}
	case ProviderLevel:
		if found := p.find(name); found != nil {
			b = found.breaker
		}
	case VendorLevel:
		b = p.vendors[name]
	}
	if b == nil {
		return Health{}, false
	}
	return Health{State: b.State(now), Failures: b.Failures(), Until: b.Deadline()}, true
}

// Bound says which provider a conversation sticks to at now.
func (p *Pool) Bound(conversation string, now time.Time) (provider string, ok bool) {
	return p.bindings.Lookup(conversation, now)
}

// candidate is one entry of a turn's list: a place to send an attempt to.
type candidate struct {
	url      string
	endpoint *endpoint // nil for the provider's own URL
	grant    grant     // of the endpoint's breaker
}

// candidates builds the list of a turn: endpoints that are enabled and whose
// breaker lets a request pass now, in order, cut to max. A half-open endpoint in
// it is reserved for this request until the request has its answer. The
// provider's own URL stands in for an empty list.
func (p *Pool) candidates(from *provider, passThrough bool, max int, now time.Time) []candidate {
	var list []candidate
	if !passThrough {
		ready := make([]*endpoint, 0, len(from.endpoints))
		for _, e := range from.endpoints {
			if !e.Disabled && e.breaker.Ready(now) {
				ready = append(ready, e)
			}
		}
		slices.SortStableFunc(ready, func(a, b *endpoint) int { return p.policy.Compare(a.Standing, b.Standing) })
		ready = ready[:min(len(ready), max)]
		list = make([]candidate, 0, max)
		for _, e := range ready {
			if grant, ok := acquire(e.breaker, now); ok {
				list = append(list, candidate{url: e.URL, endpoint: e, grant: grant})
			}
		}
	}
	if len(list) == 0 && from.URL != "" {
		list = append(list, candidate{url: from.URL})
	}
	return list
}
