package memory

import (
	"slices"
	"time"

	"github.com/seed-5a7f77c4/deadair/selection/route"
)

// Endpoint is what is known about one route.
type Endpoint struct {
	// LastSuccessAt is the time of the most recent success; zero means never, or before stamps were kept.
	LastSuccessAt time.Time
	// LastFailedAt is the time of the most recent failure since the last success.
	LastFailedAt time.Time
	// ConsecutiveFailures counts the races lost to failure since the last success.
	ConsecutiveFailures int
	// NegotiatedReadyV2 says that a relay has once spoken the ready=2 handshake to the end. It stays.
	NegotiatedReadyV2 bool
}

// Network is one entry of the list of networks: the endpoint that worked there last.
type Network struct {
	Fingerprint route.Fingerprint `json:"network"`
	Key         route.Key         `json:"route"`
}

// Success is a race that was won.
type Success struct {
	Key route.Key
	// ReadyV2 says that it was won on a socket that negotiated ready=2.
	ReadyV2 bool
}

// Memory is both memories: what works, per network, and what fails, per endpoint. Use New.
type Memory struct {
	policy    Policy
	networks  []Network // newest first
	endpoints map[route.Key]Endpoint
	lastGood  route.Key
}

// New makes an empty memory with these rules.
func New(p Policy) *Memory {
	return &Memory{policy: p, endpoints: make(map[route.Key]Endpoint)}
}

// Record writes one race down: its failures first, each route once however many of its ports failed, then its success,
// if there was one. The network is the one the race ran on; "" is not remembered.
func (m *Memory) Record(now time.Time, network route.Fingerprint, failed []route.Key, won *Success) {
	struck := make(map[route.Key]bool, len(failed))
	for _, key := range failed {
		if struck[key] {
			continue
		}
		struck[key] = true
		e := m.endpoints[key]
		e.LastFailedAt = now
		e.ConsecutiveFailures++
		m.endpoints[key] = e
	}
	if won == nil {
		return
	}
	e := m.endpoints[won.Key]
	m.endpoints[won.Key] = Endpoint{LastSuccessAt: now, NegotiatedReadyV2: e.NegotiatedReadyV2 || won.ReadyV2}
	m.lastGood = won.Key
	if network != "" && m.policy.Remembers(route.ClassOf(string(won.Key))) {
		m.remember(Network{Fingerprint: network, Key: won.Key})
	}
}

func (m *Memory) remember(n Network) {
	rest := slices.DeleteFunc(m.networks, func(o Network) bool { return o.Fingerprint == n.Fingerprint })
	m.networks = append([]Network{n}, rest...)
	m.networks = m.networks[:min(len(m.networks), m.policy.Capacity)]
}

// Failing reports whether the endpoint is failing recently.
func (m *Memory) Failing(now time.Time, key route.Key) bool {
	e := m.endpoints[key]
	return e.ConsecutiveFailures >= m.policy.Threshold && m.policy.Recent(now.Sub(e.LastFailedAt))
}

// Endpoint gives what is known about a route; the zero Endpoint when nothing is.
func (m *Memory) Endpoint(key route.Key) Endpoint { return m.endpoints[key] }

// Remembered gives the endpoint that worked last on this network, "" if none is known.
func (m *Memory) Remembered(network route.Fingerprint) route.Key {
	for _, n := range m.networks {
		if n.Fingerprint == network {
			return n.Key
		}
	}
	return ""
}

// Networks lists the remembered networks, newest first.
func (m *Memory) Networks() []Network { return slices.Clone(m.networks) }

// LastGood gives the endpoint that worked last on any network.
func (m *Memory) LastGood() route.Key { return m.lastGood }
