package endpointretry

import (
	"sync"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/scenarios"
	"github.com/seed-5a7f77c4/deadair/selection/breaker"
	"github.com/seed-5a7f77c4/deadair/selection/failover"
	"github.com/seed-5a7f77c4/deadair/selection/retry"
)

// timelines are the stories of breakers over time.
func timelines() []story {
	return []story{
		{id: "ER-17", title: "probes that fail do not bar the way back", labels: []string{"breaker", "probe"},
			observed: "the source never tried the endpoint again", play: probesFail},
		{id: "ER-25", title: "the timelines of all three breakers", labels: []string{"breaker"}, play: breakers},
	}
}

func probesFail(p *scenarios.Play, s Subject) {
	w := NewWorld(p, s, Layout{Providers: []Upstream{{Name: "A", Endpoints: 2, Attempts: 2}}})
	probe := func(id string) { require.NoError(w, w.Proxy.RecordProbe(id, false, 0)) }
	probe("a1") // both failed, so that the manual order decides
	probe("a2")
	for range 2 {
		w.Script(reset, ok)
		w.Do()
		w.Settle()
	}
	assert.Equal(w, "a1 a2 a1 a2", w.Dials(), "endpoint 1 is tried first")
	w.State(retry.EndpointLevel, "a1", breaker.Open)
	opened := w.health(retry.EndpointLevel, "a1").Until.Add(-300 * time.Second)
	for i := range 29 {
		time.Sleep(10 * time.Second)
		probe("a1")
		if i%7 == 0 { // the last time at 290 s
			w.Do()
			assert.Equal(w, "a2", w.Dials(), "%v after opening", time.Since(opened))
		}
	}
	time.Sleep(time.Until(opened.Add(300 * time.Second)))
	probe("a1")
	assert.Equal(w, "from a1", w.Do().Body)
	w.Settle()
	w.Failures(retry.EndpointLevel, "a1", 0)
}

func breakers(p *scenarios.Play, s Subject) {
	endpointBreaker(NewWorld(p, s, Layout{Prefix: "endpoint-", Providers: []Upstream{{Name: "A", Endpoints: 2, Attempts: 2}}}))
	providerBreaker(NewWorld(p, s, Layout{Prefix: "provider-", Providers: []Upstream{{Name: "A", Attempts: 1}, {Name: "Z", Attempts: 1}}}))
	vendorBreaker(NewWorld(p, s, Layout{Prefix: "vendor-", Timeouts: failover.Timeouts{FirstByte: patience},
		Providers: []Upstream{{Name: "A", Endpoints: 2, Attempts: 2}, {Name: "Z", Attempts: 1}}}))
}

// endpointBreaker: three failures, 300 s, one success; half-open admits one.
func endpointBreaker(w *World) {
	fail := func() {
		w.Script(reset, ok)
		w.Do()
		w.Settle()
	}
	fail()
	fail()
	w.Failures(retry.EndpointLevel, "a1", 2)
	w.Do()
	w.Settle()
	w.Failures(retry.EndpointLevel, "a1", 0) // a success in between starts anew
	fail()
	fail()
	fail()
	w.State(retry.EndpointLevel, "a1", breaker.Open)
	w.Dials()
	time.Sleep(299 * time.Second)
	w.Do()
	assert.Equal(w, "a2", w.Dials(), "endpoint 1 is open")
	time.Sleep(time.Second)
	w.State(retry.EndpointLevel, "a1", breaker.HalfOpen)

	// A failed trial opens it for the whole time again.
	fail()
	w.State(retry.EndpointLevel, "a1", breaker.Open)
	time.Sleep(299 * time.Second)
	w.State(retry.EndpointLevel, "a1", breaker.Open)
	time.Sleep(time.Second)
	w.State(retry.EndpointLevel, "a1", breaker.HalfOpen)

	// One trial at a time.
	w.Dials()
	w.Script(slow)
	var trial sync.WaitGroup
	trial.Go(func() { w.Do() })
	w.Settle()
	assert.Equal(w, "a1", w.Dials())
	w.Do()
	assert.Equal(w, "a2", w.Dials(), "a second request at the half-open endpoint")
	trial.Wait()
	w.Settle()
	w.Failures(retry.EndpointLevel, "a1", 0)
}

// providerBreaker: five failures, 1800 s, two successes.
func providerBreaker(w *World) {
	for i := range 5 {
		w.Failures(retry.ProviderLevel, "A", i)
		w.Script("503", ok)
		w.Do()
		w.Settle()
	}
	w.State(retry.ProviderLevel, "A", breaker.Open)
	w.Dials()
	time.Sleep(1799 * time.Second)
	w.Do()
	assert.Equal(w, "z", w.Dials(), "provider A is open")
	time.Sleep(time.Second)
	for _, state := range []breaker.State{breaker.HalfOpen, breaker.Closed} {
		w.Do()
		w.Settle()
		assert.Equal(w, "a", w.Dials())
		w.State(retry.ProviderLevel, "A", state)
	}
}

// vendorBreaker: every endpoint timed out, 60 s, closes by itself.
func vendorBreaker(w *World) {
	w.Script(hang, hang, ok)
	w.Do()
	w.Settle()
	assert.Equal(w, "a1 a2 z", w.Dials())
	w.State(retry.VendorLevel, "vendor of A", breaker.Open)
	time.Sleep(59 * time.Second)
	w.Do()
	assert.Equal(w, "z", w.Dials(), "the vendor is open")
	time.Sleep(time.Second)
	w.Failures(retry.VendorLevel, "vendor of A", 0)
	w.Do()
	assert.Equal(w, "a1", w.Dials())
}
