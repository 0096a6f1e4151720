package endpointretry

import (
	"github.com/stretchr/testify/assert"

	"github.com/seed-5a7f77c4/deadair/scenarios"
	"github.com/seed-5a7f77c4/deadair/selection/breaker"
	"github.com/seed-5a7f77c4/deadair/selection/failover"
	"github.com/seed-5a7f77c4/deadair/selection/retry"
)

// streams are the stories of answers that begin well.
func streams() []story {
	return []story{
		{id: "ER-18", title: "an error event as the first event of a stream", labels: []string{"stream"}, play: errorEventFirst},
		{id: "ER-19", title: "a stream that breaks after content", labels: []string{"stream"}, play: breaksAfterContent},
		{id: "ER-20", title: "first-byte, idle and whole timers, each alone", labels: []string{"stream", "timer"}, play: timers},
	}
}

func errorEventFirst(p *scenarios.Play, s Subject) {
	w := NewWorld(p, s, Layout{Providers: []Upstream{{Name: "A", Endpoints: 2, Attempts: 2}, {Name: "B", Attempts: 1}}})
	w.Script(errorEvent, ok)
	r := w.Do()
	assert.Equal(w, "from a1", r.Body, "the client saw something of the error")
	assert.Equal(w, "a1 a1", w.Dials(), "a provider error stays")
	w.Settle()
	w.Untouched()

	w.Script(breakPing, empty, ok)
	assert.Equal(w, "from b", w.Do().Body)
	assert.Equal(w, "a1 a1 b", w.Dials())
	w.Settle()
	w.Failures(retry.ProviderLevel, "A", 1)
}

func breaksAfterContent(p *scenarios.Play, s Subject) {
	w := NewWorld(p, s, Layout{Providers: []Upstream{{Name: "A", Endpoints: 2, Attempts: 2}, {Name: "B", Attempts: 1}}})
	w.Script(breakBody)
	r := w.Request(w.Context(), "/v1/messages", "c", "a question")
	assert.Equal(w, 200, r.Status)
	assert.Equal(w, content, r.Body)
	assert.Error(w, r.Err, "the client has to see the break")
	assert.Equal(w, "a1", w.Dials(), "another attempt after content")
	w.Settle()
	w.Failures(retry.ProviderLevel, "A", 1)
	w.Failures(retry.EndpointLevel, "a1", 0)
	assert.Equal(w, "retry_failed", reasons(w.Chain()))
	_, bound := w.Proxy.Bound("c")
	assert.False(w, bound, "bound to a provider that failed")
}

func timers(p *scenarios.Play, s Subject) {
	for _, tt := range []struct {
		name     string
		timeouts failover.Timeouts
		script   []string
		hosts    string
		broken   bool
		a1, a2   int
		provider int
		vendor   breaker.State
	}{
		{"first-", failover.Timeouts{FirstByte: patience}, []string{hang, hangHeaders}, "a1 a2 z", false, 1, 1, 0, breaker.Open},
		{"half-", failover.Timeouts{FirstByte: patience}, []string{reset, hang}, "a1 a2 z", false, 1, 1, 1, breaker.Closed},
		{"whole-", failover.Timeouts{Whole: patience}, []string{hangPing, hang}, "a1 a2 z", false, 1, 1, 0, breaker.Open},
		{"whole-content-", failover.Timeouts{Whole: patience}, []string{hangContent}, "a1", true, 0, 0, 1, breaker.Closed},
		{"idle-", failover.Timeouts{Idle: patience}, []string{hangPing, hangPing}, "a1 a1 z", false, 0, 0, 1, breaker.Closed},
		{"idle-content-", failover.Timeouts{Idle: patience}, []string{hangContent}, "a1", true, 0, 0, 1, breaker.Closed},
	} {
		w := NewWorld(p, s, Layout{Prefix: tt.name, Timeouts: tt.timeouts,
			Providers: []Upstream{{Name: "A", Endpoints: 2, Attempts: 2}, {Name: "Z", Attempts: 1}}})
		w.Script(tt.script...)
		r := w.Do()
		w.Settle()
		assert.Equal(w, tt.hosts, w.Dials(), tt.name)
		assert.Equal(w, tt.broken, r.Err != nil, "%s: %v", tt.name, r.Err)
		w.Failures(retry.EndpointLevel, "a1", tt.a1)
		w.Failures(retry.EndpointLevel, "a2", tt.a2)
		w.Failures(retry.ProviderLevel, "A", tt.provider)
		w.State(retry.VendorLevel, "vendor of A", tt.vendor)
	}

	// Time-outs at one endpoint only, however many, say nothing about the vendor.
	w := NewWorld(p, s, Layout{Prefix: "one-", Timeouts: failover.Timeouts{FirstByte: patience},
		Providers: []Upstream{{Name: "A", Endpoints: 2, Attempts: 4}, {Name: "Z", Attempts: 1}}})
	w.Script(reset, hang, hang, hang)
	w.Do()
	w.Settle()
	assert.Equal(w, "a1 a2 a2 a2 z", w.Dials())
	w.State(retry.VendorLevel, "vendor of A", breaker.Closed)
	w.Failures(retry.ProviderLevel, "A", 1)
}
