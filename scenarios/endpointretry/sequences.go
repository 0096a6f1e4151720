package endpointretry

import (
	"strings"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/seed-5a7f77c4/deadair/scenarios"
	"github.com/seed-5a7f77c4/deadair/selection/breaker"
	"github.com/seed-5a7f77c4/deadair/selection/failover"
	"github.com/seed-5a7f77c4/deadair/selection/retry"
)

// sequence is a story of one request: what happens at each attempt, and which
// host each attempt must go to. S is a reset, P a 503, T no answer in time.
type sequence struct {
	id, title string
	endpoints int
	max       int
	outcomes  string
	hosts     string
	lone      bool // no other provider takes over
	status    int
	then      func(w *World, r Result)
	during    func(w *World, n int) // when the n-th request arrives at an endpoint
}

var letters = map[string]string{"S": reset, "P": "503", "T": hang}

func (q sequence) story() story {
	return story{id: q.id, title: q.title, labels: []string{"sequence"}, play: func(p *scenarios.Play, s Subject) {
		providers := []Upstream{{Name: "A", Endpoints: q.endpoints, Attempts: q.max}}
		if !q.lone {
			providers = append(providers, Upstream{Name: "Z", Attempts: 1})
		}
		w := NewWorld(p, s, Layout{Providers: providers, Timeouts: failover.Timeouts{FirstByte: patience}})
		var script []string
		for _, word := range strings.Fields(q.outcomes) {
			if letter, known := letters[word]; known {
				word = letter
			}
			script = append(script, word)
		}
		w.Script(script...)
		if q.during != nil {
			w.OnCall(func(n int) { q.during(w, n) })
		}
		r := w.Do()
		chain := w.Chain()
		w.spaced(script, chain)
		assert.Equal(w, q.hosts, w.Dials(), "hosts that were asked")
		assert.Equal(w, q.status, r.Status)
		for i, e := range chain {
			if e.Provider == "A" {
				assert.Equal(w, i+1, e.Attempt, "attempt number")
			}
		}
		if q.then != nil {
			q.then(w, r)
		}
	}}
}

// spaced checks the pauses between the attempts: the documented wait at the same
// provider, none when the provider changes.
func (w *World) spaced(script []string, chain retry.Chain) {
	w.Helper()
	for i, gap := range w.Gaps() {
		want := time.Duration(0)
		if i < len(script) && script[i] == hang {
			want += patience
		}
		if i+1 < len(chain) && chain[i+1].Provider == chain[i].Provider {
			want += wait
		}
		assert.GreaterOrEqual(w, gap, want, "pause before attempt %d", i+2)
		assert.Less(w, gap, want+tick, "pause before attempt %d", i+2)
	}
}

func sequences() []story {
	nothingLeaks := func(w *World, r Result) {
		assert.NotContains(w, r.Body, "upstream", "the client learns about the providers")
	}
	var out []story
	for _, q := range []sequence{
		{"ER-1", "a system error moves on to the next endpoint", 4, 2, "S ok", "a1 a2", false, 200, func(w *World, r Result) {
			assert.Equal(w, "from a2", r.Body)
			assert.Equal(w, "system_error retry_success", reasons(w.Chain()))
		}, nil},
		{"ER-2", "at the end of the list the last endpoint is repeated", 2, 5, "S S S S ok", "a1 a2 a2 a2 a2", false, 200, nil, nil},
		{"ER-3", "system errors walk along the list", 3, 3, "S S ok", "a1 a2 a3", false, 200, nil, nil},
		{"ER-5", "without endpoints the provider's own URL is asked", 0, 3, "P P ok", "a a a", false, 200, func(w *World, _ Result) { w.Untouched() }, nil},
		{"ER-6", "two attempts are two calls", 4, 2, "S S", "a1 a2", true, 503, func(w *World, r Result) {
			assert.Len(w, w.Calls(), 2)
			nothingLeaks(w, r)
			w.Script("503", reset)
			w.Do()
			assert.Equal(w, "a1 a1", w.Dials())
			chain := w.Chain()
			assert.Equal(w, 0, chain[len(chain)-1].Index, "without an attempt left the plan stays where it is")
		}, nil},
		{"ER-7", "attempts are numbered from one", 3, 3, "S S ok", "a1 a2 a3", false, 200, func(w *World, _ Result) {
			assert.Equal(w, "A/a1#1 system_error, A/a2#2 system_error, A/a3#3 retry_success", w.Chain().String())
		}, nil},
		{"ER-8", "a provider error repeats the same endpoint", 3, 3, "P P ok", "a1 a1 a1", false, 200, func(w *World, _ Result) { w.Untouched() }, nil},
		{"ER-9", "exhausted at the end of the list", 2, 4, "S S S S", "a1 a2 a2 a2", true, 503, nothingLeaks, nil},
		{"ER-10", "mixed errors: only system errors move on", 3, 4, "S P S ok", "a1 a2 a2 a3", false, 200, nil, nil},
		{"ER-11", "time-outs of our own move on; the vendor closes only at the end", 2, 5, "T T T T T", "a1 a2 a2 a2 a2 z", false, 200, func(w *World, _ Result) {
			w.State(retry.VendorLevel, "vendor of A", breaker.Open)
			w.Failures(retry.ProviderLevel, "A", 0)
			w.Failures(retry.EndpointLevel, "a1", 1)
			w.Failures(retry.EndpointLevel, "a2", 1)
			assert.Equal(w, "retry_failed retry_failed retry_failed retry_failed vendor_timeout retry_success", reasons(w.Chain()))
		}, func(w *World, n int) {
			if n <= 5 { // the sixth is the next provider's
				w.State(retry.VendorLevel, "vendor of A", breaker.Closed)
			}
		}},
		{"ER-12", "not found: same endpoint, next provider, no breaker moves", 2, 2, "404 404", "a1 a1 z", false, 200, func(w *World, _ Result) {
			w.Untouched()
			assert.Equal(w, "resource_not_found resource_not_found retry_success", reasons(w.Chain()))
		}, nil},
		{"ER-14", "one attempt, then the next provider", 2, 1, "S", "a1 z", false, 200, func(w *World, _ Result) {
			w.Failures(retry.EndpointLevel, "a1", 1)
			w.Failures(retry.ProviderLevel, "A", 0)
		}, nil},
	} {
		out = append(out, q.story())
	}
	return out
}
