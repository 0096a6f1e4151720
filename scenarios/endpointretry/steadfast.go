package endpointretry

import (
	"context"
	"net/http"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/seed-5a7f77c4/deadair/scenarios"
	"github.com/seed-5a7f77c4/deadair/selection/failover"
	"github.com/seed-5a7f77c4/deadair/selection/retry"
)

// steadfast are the stories of what must not be shaken by a failure: the way
// around the selection, the client's will, the count of a provider, the last
// endpoint.
func steadfast() []story {
	return []story{
		{id: "ER-4", title: "a request that passes through never asks the selector", labels: []string{"selector"}, play: passThrough},
		{id: "ER-13", title: "the client leaves during the wait, or during an attempt", labels: []string{"abort"}, play: clientLeaves},
		{id: "ER-15", title: "a provider's breaker counts once per request", labels: []string{"breaker"}, play: countsOnce},
		{id: "ER-16", title: "the last endpoint stays usable after it was repeated", labels: []string{"breaker"},
			observed: "the source left the last endpoint's breaker stuck open", play: lastEndpointUsable},
	}
}

func passThrough(p *scenarios.Play, s Subject) {
	asked := 0
	w := NewWorld(p, s, Layout{
		Providers: []Upstream{{Name: "A", Endpoints: 3, Attempts: 2}},
		Config: func(c *failover.Config) {
			c.PassThrough = func(r *http.Request) bool { return r.URL.Path == "/v1/models" }
			c.Policy.Compare = func(a, b retry.Standing) int { asked++; return retry.Compare(a, b) }
		},
	})
	r := w.Request(w.Context(), "/v1/models", "", "")
	assert.Equal(w, "from a", r.Body)
	assert.Equal(w, "a", w.Dials(), "the provider's own URL")
	assert.Zero(w, asked, "the selector was asked")
	w.Do()
	assert.Equal(w, "a1", w.Dials())
	assert.NotZero(w, asked, "this counter cannot count")
}

func clientLeaves(p *scenarios.Play, s Subject) {
	const stays = 50 * time.Millisecond
	leave := func(w *World) {
		ctx, cancel := context.WithTimeout(w.Context(), stays)
		defer cancel()
		begin := w.elapsed()
		r := w.Request(ctx, "/v1/messages", "c", "a question")
		w.Settle()
		assert.ErrorIs(w, r.Err, context.DeadlineExceeded)
		time.Sleep(2 * wait) // whatever the proxy still has in mind, it has done by then
		served := w.Served()
		if assert.NotEmpty(w, served, "the proxy never came back") {
			assert.Less(w, served[len(served)-1]-begin, stays+tick, "the proxy lingered")
		}
	}
	w := NewWorld(p, s, Layout{Providers: []Upstream{{Name: "A", Endpoints: 2, Attempts: 3}, {Name: "Z"}}})
	w.Script(reset)
	leave(w)
	assert.Equal(w, "a1", w.Dials(), "a second call for nobody")
	assert.Equal(w, "system_error", reasons(w.Chain()))

	w.Script(hang)
	leave(w)
	assert.Equal(w, "a1", w.Dials())
	assert.Equal(w, "client_abort", reasons(w.Chain()))
	w.Failures(retry.EndpointLevel, "a1", 1) // of the first request; leaving counts for nothing
	w.Failures(retry.ProviderLevel, "A", 0)
	_, bound := w.Proxy.Bound("c")
	assert.False(w, bound)

	w.Script(hangContent)
	leave(w)
	assert.Equal(w, "client_abort", reasons(w.Chain()))
	w.Failures(retry.ProviderLevel, "A", 0)
}

func countsOnce(p *scenarios.Play, s Subject) {
	w := NewWorld(p, s, Layout{Providers: []Upstream{{Name: "A", Endpoints: 2, Attempts: 2}, {Name: "B", Endpoints: 1, Attempts: 2}}})
	w.Script("503", "503", ok)
	r := w.Do()
	assert.Equal(w, "from b1", r.Body)
	w.Settle()
	assert.Equal(w, "a1 a1 b1", w.Dials())
	w.Failures(retry.ProviderLevel, "A", 1)
	w.Failures(retry.EndpointLevel, "a1", 0)
	w.Failures(retry.ProviderLevel, "B", 0)
}

func lastEndpointUsable(p *scenarios.Play, s Subject) {
	w := NewWorld(p, s, Layout{Providers: []Upstream{{Name: "A", Endpoints: 2, Attempts: 5}}})
	w.Script(reset, reset, reset, reset, ok)
	assert.Equal(w, 200, w.Do().Status)
	assert.Equal(w, "a1 a2 a2 a2 a2", w.Dials())
	w.Settle()
	w.Failures(retry.EndpointLevel, "a1", 1)
	w.Failures(retry.EndpointLevel, "a2", 0)

	w.Script(reset, ok)
	assert.Equal(w, "from a2", w.Do().Body)
	assert.Equal(w, "a1 a2", w.Dials(), "the second request")
}
