package retry

import (
	"cmp"
	"time"
)

// Endpoint is one address of a provider.
type Endpoint struct {
	ID       string // unique in the pool
	URL      string // base URL: scheme, host and optional path
	Order    int    // manual order, lowest first
	Disabled bool
}

// Probe is the last health probe of an endpoint. The zero value means never
// probed.
type Probe struct {
	At      time.Time     // zero: never
	OK      bool          //
	Latency time.Duration // 0: unknown
}

// Standing is what the order of candidates is made from.
type Standing struct {
	Endpoint
	Probe Probe
}

// Compare orders endpoints: the last probe succeeded, never probed, failed; then
// manual order; then the probe's latency, unknown last; then the ID.
func Compare(a, b Standing) int {
	return cmp.Or(
		cmp.Compare(a.Probe.class(), b.Probe.class()),
		cmp.Compare(a.Order, b.Order),
		cmp.Compare(a.Probe.latency(), b.Probe.latency()),
		cmp.Compare(a.ID, b.ID),
	)
}

func (p Probe) class() int {
	switch {
	case p.At.IsZero():
		return 1
	case p.OK:
		return 0
	default:
		return 2
	}
}

func (p Probe) latency() time.Duration {
	if p.At.IsZero() || p.Latency <= 0 {
		return 1<<63 - 1
	}
	return p.Latency
}
