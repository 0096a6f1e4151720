package endpointretry

import (
	"net/http"
	"strings"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/seed-5a7f77c4/deadair/scenarios"
	"github.com/seed-5a7f77c4/deadair/selection/failover"
	"github.com/seed-5a7f77c4/deadair/selection/retry"
)

// multitude are the stories of several providers.
func multitude() []story {
	return []story{
		{id: "ER-21", title: "three providers, the first two dying in all ways", labels: []string{"providers"}, play: allWaysToDie},
		{id: "ER-22", title: "everything dies", labels: []string{"providers"}, play: everythingDies},
		{id: "ER-23", title: "a conversation sticks to its provider for 300 s", labels: []string{"conversation"}, play: conversation},
		{id: "ER-24", title: "a provider that answers 503 to a long-lived conversation", labels: []string{"conversation", "field"},
			observed: "the report behind the change", play: longLived},
	}
}

func allWaysToDie(p *scenarios.Play, s Subject) {
	w := NewWorld(p, s, Layout{
		Timeouts: failover.Timeouts{FirstByte: time.Minute},
		Providers: []Upstream{
			{Name: "A", Endpoints: 7, Attempts: 7, Deaf: []int{1}, Absent: []int{2}, Impostors: []int{3}, Silent: []int{6}},
			{Name: "B", Endpoints: 1, Attempts: 6},
			{Name: "C", Endpoints: 1},
		},
	})
	w.ScriptOf("a4", reset)
	w.ScriptOf("a5", hangUp)
	w.ScriptOf("a7", hang)
	w.ScriptOf("b1", "503", "429", errorEvent, empty, breakPing, "401")
	question := strings.Repeat("a long question\x00\xff", 1000)
	r := w.Request(w.Context(), "/v1/messages", "", question)
	assert.Equal(w, 200, r.Status)
	assert.Equal(w, "from c1", r.Body)
	assert.Equal(w, "a1 a2 a3 a4 a5 a6 a7 b1 b1 b1 b1 b1 b1 c1", w.Dials())
	for i, c := range w.Calls() {
		assert.True(w, string(c.Body) == question, "call %d at %s: the body differs", i+1, c.Host)
	}
	assert.Len(w, w.Calls(), 3+6+1)
	chain := w.Chain()
	assert.Equal(w, strings.Repeat("system_error ", 6)+strings.Repeat("retry_failed ", 7)+"retry_success", reasons(chain))
	var causes []string
	for _, e := range chain[:min(6, len(chain))] {
		causes = append(causes, string(retry.CauseOf(e.Err)))
	}
	want := "refused dns tls reset eof timeout"
	if s.HTTP2 { // where the end of a stream is a frame, whatever the reason
		want = "refused dns tls protocol protocol timeout"
	}
	assert.Equal(w, want, strings.Join(causes, " "))
	if len(chain) > 6 {
		assert.Equal(w, failover.ConnectTimeout, chain[5].Ended.Sub(chain[5].Started).Round(tick), "a silent endpoint costs the connect time-out")
	}
	for _, id := range []string{"a1", "a2", "a3", "a4", "a5", "a6", "a7"} {
		w.Failures(retry.EndpointLevel, id, 1)
	}
	w.Failures(retry.ProviderLevel, "A", 1) // its last attempt was a time-out of ours, and not all of them were
	w.Failures(retry.ProviderLevel, "B", 1)
	w.Failures(retry.ProviderLevel, "C", 0)
}

func everythingDies(p *scenarios.Play, s Subject) {
	w := NewWorld(p, s, Layout{
		Timeouts: failover.Timeouts{FirstByte: patience},
		Providers: []Upstream{
			{Name: "A", Endpoints: 2, Attempts: 2, Deaf: []int{1, 2}},
			{Name: "B", Endpoints: 2, Attempts: 2},
			{Name: "C", Endpoints: 2, Attempts: 2},
		},
	})
	w.Script("500", errorEvent, hang, hang)
	r := w.Do()
	assert.NoError(w, r.Err)
	assert.Equal(w, http.StatusServiceUnavailable, r.Status)
	for _, word := range []string{"upstream", "a1", "b1", "c1", "500", "refused"} {
		assert.NotContains(w, r.Body, word, "detail of an upstream")
	}
	w.Settle()
	assert.Equal(w, "a1 a2 b1 b1 c1 c2", w.Dials())
	assert.LessOrEqual(w, len(w.Chain()), 3*2, "calls")

	// The client's own fault is no reason to ask anybody else.
	w.Script(fault)
	r = w.Do()
	assert.Equal(w, 400, r.Status)
	assert.Equal(w, tooLong, r.Body)
	assert.Equal(w, "a1 a2 b1", w.Dials())
}

func conversation(p *scenarios.Play, s Subject) {
	w := NewWorld(p, s, Layout{
		Providers: []Upstream{{Name: "A", Endpoints: 1, Attempts: 1}, {Name: "B", Endpoints: 1, Attempts: 1}},
		Config: func(c *failover.Config) {
			c.Conversation = func(r *http.Request) string { return r.Header.Get("X-Conversation") }
		},
	})
	ask := func(conversation, hosts string, script ...string) {
		w.Helper()
		w.Script(script...)
		w.Request(w.Context(), "/v1/messages", conversation, "a question")
		w.Settle()
		assert.Equal(w, hosts, w.Dials(), "hosts that were asked")
	}
	bound := func(provider string) {
		w.Helper()
		got, _ := w.Proxy.Bound("c")
		assert.Equal(w, provider, got, "bound to")
	}
	ask("c", "a1 b1", "503", "503")
	bound("")
	ask("c", "a1 b1", "503", ok)
	bound("B")
	time.Sleep(299 * time.Second)
	ask("c", "b1", ok)
	time.Sleep(299 * time.Second)
	ask("other", "a1", ok)
	ask("c", "b1 a1", "503", "503") // all fail: nothing is bound and nothing freed
	bound("B")
	ask("c", "b1 a1", "503", ok)
	bound("A")
	time.Sleep(299 * time.Second)
	bound("A")
	time.Sleep(time.Second)
	bound("")
}

func longLived(p *scenarios.Play, s Subject) {
	w := NewWorld(p, s, Layout{
		Providers: []Upstream{{Name: "A", Endpoints: 3, Attempts: 2}, {Name: "B", Endpoints: 1, Attempts: 2}},
		Config: func(c *failover.Config) {
			c.Conversation = func(r *http.Request) string { return r.Header.Get("X-Conversation") }
		},
	})
	for range 5 {
		assert.Equal(w, "from a1", w.Request(w.Context(), "/v1/messages", "c", "a question").Body)
		time.Sleep(time.Minute)
	}
	w.Dials()
	w.Script("503", "503")
	r := w.Request(w.Context(), "/v1/messages", "c", "one more")
	assert.Equal(w, 200, r.Status)
	assert.Equal(w, "from b1", r.Body)
	assert.Less(w, r.Took, wait+2*tick, "within the same request")
	assert.Equal(w, "a1 a1 b1", w.Dials())
	w.Settle()
	bound, _ := w.Proxy.Bound("c")
	assert.Equal(w, "B", bound)
}
