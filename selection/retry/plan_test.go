package retry_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/selection/breaker"
	"github.com/seed-5a7f77c4/deadair/selection/retry"
)

// The documented sequences: which endpoint each attempt goes to.
func TestSequences(t *testing.T) {
	for _, tt := range []struct {
		name      string
		endpoints int
		max       int
		outcomes  string
		places    string
		old       string // places of the rule it replaced: attempt number modulo the list
	}{
		{"second endpoint after a system error", 4, 2, "S ok", "a1 a2", "a1 a2"},
		{"stays on the last", 2, 5, "S S S S ok", "a1 a2 a2 a2 a2", "a1 a2 a1 a2 a1"},
		{"walks along", 3, 3, "S S ok", "a1 a2 a3", "a1 a2 a3"},
		{"none listed", 0, 3, "P P ok", "URL URL URL", "URL URL URL"},
		{"exhausted", 4, 2, "S S", "a1 a2", "a1 a2"},
		{"provider errors stay", 3, 3, "P P ok", "a1 a1 a1", "a1 a2 a3"},
		{"exhausted at the end of the list", 2, 4, "S S S S", "a1 a2 a2 a2", "a1 a2 a1 a2"},
		{"mixed", 3, 4, "S P S ok", "a1 a2 a2 a3", "a1 a2 a3 a1"},
		{"own time-outs advance", 2, 5, "T T T T T", "a1 a2 a2 a2 a2", "a1 a2 a1 a2 a1"},
		{"not found stays", 2, 2, "404 404", "a1 a1", "a1 a2"},
		{"one attempt", 2, 1, "S", "a1", "a1"},
		{"attempts are clamped to ten", 20, 99, "S S S S S S S S S S", "a1 a2 a3 a4 a5 a6 a7 a8 a9 a10", "a1 a2 a3 a4 a5 a6 a7 a8 a9 a10"},
		{"negative attempts are one", 2, -3, "P", "a1", "a1"},
		{"client's fault ends it", 2, 3, "P fault", "a1 a1", "a1 a2"},
		{"client abort ends it", 2, 3, "S abort", "a1 a2", "a1 a2"},
		{"a broken stream ends it", 2, 3, "broke", "a1", "a1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			policy := retry.DefaultPolicy()
			policy.Classifier = retry.NewClassifier(func(_ int, text string) bool { return strings.Contains(text, "too long") })
			outcomes := strings.Fields(tt.outcomes)
			places, chain := play(t, newPool(t, policy, provider("A", tt.endpoints, tt.max)), retry.Request{}, start, outcomes...)
			assert.Equal(t, tt.places, places)
			for i, e := range chain {
				assert.Equal(t, i+1, e.Attempt)
			}
			policy.Place = func(_, attempt, n int) int { return (attempt - 1) % n }
			places, _ = play(t, newPool(t, policy, provider("A", tt.endpoints, tt.max)), retry.Request{}, start, outcomes...)
			assert.Equal(t, tt.old, places, "old rule")
		})
	}
}

// A rule of one's own may come back to an endpoint: it still counts once per request.
func TestAnEndpointCountsOncePerRequest(t *testing.T) {
	policy := retry.DefaultPolicy()
	policy.Place = func(_, attempt, n int) int { return (attempt - 1) % n }
	pool := newPool(t, policy, provider("A", 2, 6))
	places, _ := play(t, pool, retry.Request{}, start, "S", "S", "S", "S", "S", "S")
	require.Equal(t, "a1 a2 a1 a2 a1 a2", places)
	assert.Equal(t, 1, health(t, pool, retry.EndpointLevel, "a1", start).Failures)
	assert.Equal(t, 1, health(t, pool, retry.EndpointLevel, "a2", start).Failures)
}

// What a rule such as VendorOut can ask a turn.
func TestWhatATurnKnows(t *testing.T) {
	policy := retry.DefaultPolicy()
	turn := retry.NewTurn(&policy, 2, true, 3)
	for i, k := range []retry.Kind{retry.OwnTimeout, retry.SystemError, retry.OwnTimeout} {
		assert.Equal(t, i >= 3, turn.Exhausted())
		turn.Begin()
		turn.Report(k)
		assert.Equal(t, i+1, turn.Attempt())
	}
	assert.Equal(t, 2, turn.Timeouts())
	assert.Equal(t, 2, turn.Candidates())
	assert.True(t, turn.AllTimedOut())
	assert.True(t, turn.Exhausted())
	assert.Equal(t, "Kind(8)", fmt.Sprint(retry.Kind(retry.Kinds)))
	assert.Equal(t, "broken stream", fmt.Sprint(retry.BrokenStream))
}

func TestWaits(t *testing.T) {
	plan := newPool(t, retry.DefaultPolicy(), provider("A", 2, 2), provider("B", 1, 1)).Plan(retry.Request{}, start)
	defer plan.Close()
	answer := answers["S"]
	_, _ = plan.Next(start)
	d := plan.Report(&answer, start)
	assert.Equal(t, retry.Again, d.Action)
	assert.Equal(t, 100*time.Millisecond, d.Wait)
	_, _ = plan.Next(start)
	d = plan.Report(&answer, start)
	assert.Equal(t, retry.NextProvider, d.Action)
	assert.Zero(t, d.Wait, "no wait when the provider changes")
}

func TestAtMostTwentyProviders(t *testing.T) {
	var providers []retry.Provider
	for i := range 30 {
		providers = append(providers, retry.Provider{Name: fmt.Sprint(i), URL: "http://x", Attempts: 1})
	}
	outcomes := strings.Fields(strings.Repeat("P ", 20))
	_, chain := play(t, newPool(t, retry.DefaultPolicy(), providers...), retry.Request{}, start, outcomes...)
	assert.Len(t, chain, retry.MaxProviders)
}

func TestBreakersCount(t *testing.T) {
	for _, tt := range []struct {
		name     string
		outcomes string // of one request at a provider with 2 endpoints and 4 attempts
		a1, a2   int
		provider int
		vendor   breaker.State
	}{
		{"system errors: each endpoint once, the provider never", "S S S S", 1, 1, 0, breaker.Closed},
		{"provider errors: the provider once", "P P P P", 0, 0, 1, breaker.Closed},
		{"time-outs everywhere: the vendor instead of the provider", "T T T T", 1, 1, 0, breaker.Open},
		{"time-outs at one endpoint only: the provider", "S T T T", 1, 1, 1, breaker.Closed},
		{"time-outs everywhere, but not at the end: no exhaustion by time-out", "T T T P", 1, 1, 1, breaker.Closed},
		{"not found: nothing", "404 404 404 404", 0, 0, 0, breaker.Closed},
		{"client abort: nothing", "abort", 0, 0, 0, breaker.Closed},
		{"a stream that breaks: the provider", "broke", 0, 0, 1, breaker.Closed},
		{"a success takes its own endpoint's failure back", "S S S ok", 1, 0, 0, breaker.Closed},
		{"not found at last: the provider is spared", "P P P 404", 0, 0, 0, breaker.Closed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pool := newPool(t, retry.DefaultPolicy(), provider("A", 2, 4))
			play(t, pool, retry.Request{}, start, strings.Fields(tt.outcomes)...)
			assert.Equal(t, tt.a1, health(t, pool, retry.EndpointLevel, "a1", start).Failures, "endpoint 1")
			assert.Equal(t, tt.a2, health(t, pool, retry.EndpointLevel, "a2", start).Failures, "endpoint 2")
			assert.Equal(t, tt.provider, health(t, pool, retry.ProviderLevel, "A", start).Failures, "provider")
			assert.Equal(t, tt.vendor, health(t, pool, retry.VendorLevel, "vendor A", start).State, "vendor")
		})
	}
	t.Run("system errors count at the provider when switched on", func(t *testing.T) {
		policy := retry.DefaultPolicy()
		policy.CountSystemErrors()
		pool := newPool(t, policy, provider("A", 2, 4))
		play(t, pool, retry.Request{}, start, "S", "S", "S", "S")
		assert.Equal(t, 1, health(t, pool, retry.ProviderLevel, "A", start).Failures)
	})
	t.Run("without a vendor time-outs count at the provider", func(t *testing.T) {
		p := provider("A", 2, 2)
		p.Vendor = ""
		pool := newPool(t, retry.DefaultPolicy(), p)
		play(t, pool, retry.Request{}, start, "T", "T")
		assert.Equal(t, 1, health(t, pool, retry.ProviderLevel, "A", start).Failures)
	})
	t.Run("the provider's own URL has no endpoint breaker and no vendor rule", func(t *testing.T) {
		pool := newPool(t, retry.DefaultPolicy(), provider("A", 0, 2))
		play(t, pool, retry.Request{}, start, "T", "T")
		assert.Equal(t, 1, health(t, pool, retry.ProviderLevel, "A", start).Failures)
		assert.Equal(t, breaker.Closed, health(t, pool, retry.VendorLevel, "vendor A", start).State)
	})
}

func TestOpenBreakersAreLeftOut(t *testing.T) {
	pool := newPool(t, retry.DefaultPolicy(), provider("A", 2, 1), provider("B", 1, 1))
	for range 3 {
		play(t, pool, retry.Request{}, start, "S", "ok") // a1, then b1
	}
	places, _ := play(t, pool, retry.Request{}, start, "S", "ok")
	assert.Equal(t, "a2 b1", places, "endpoint 1 is open")
	for range 2 {
		play(t, pool, retry.Request{}, start, "S", "ok")
	}
	places, _ = play(t, pool, retry.Request{}, start, "P", "ok")
	assert.Equal(t, "URL b1", places, "both are open: the provider's own URL")
	later := start.Add(300 * time.Second)
	places, _ = play(t, pool, retry.Request{}, later, "ok")
	assert.Equal(t, "a1", places)

	for range 5 {
		play(t, pool, retry.Request{}, later, "P", "ok")
	}
	places, _ = play(t, pool, retry.Request{}, later, "ok")
	assert.Equal(t, "b1", places, "provider A is open")

	vendor := newPool(t, retry.DefaultPolicy(), provider("A", 2, 2), provider("B", 1, 1))
	play(t, vendor, retry.Request{}, start, "T", "T", "ok")
	places, _ = play(t, vendor, retry.Request{}, start.Add(59*time.Second), "ok")
	assert.Equal(t, "b1", places, "vendor A is open")
	places, _ = play(t, vendor, retry.Request{}, start.Add(60*time.Second), "ok")
	assert.Equal(t, "a1", places)
}

func TestHalfOpenIsReservedForOneRequest(t *testing.T) {
	pool := newPool(t, retry.DefaultPolicy(), provider("A", 1, 1), provider("B", 1, 1))
	for range 3 {
		play(t, pool, retry.Request{}, start, "S", "ok")
	}
	now := start.Add(300 * time.Second)
	trial := pool.Plan(retry.Request{}, now)
	a, _ := trial.Next(now)
	require.Equal(t, "a1", a.Endpoint)
	places, _ := play(t, pool, retry.Request{}, now, "ok")
	assert.Equal(t, "URL", places, "endpoint 1 is being tried by another request")

	trial.Close() // the client left
	trial = pool.Plan(retry.Request{}, now)
	a, _ = trial.Next(now)
	require.Equal(t, "a1", a.Endpoint, "the trial came back")
	trial.Content(now)
	assert.Equal(t, breaker.Closed, health(t, pool, retry.EndpointLevel, "a1", now).State, "content closes it, before the end of the stream")
	broke := answers["broke"]
	trial.Report(&broke, now)
	assert.Equal(t, breaker.Closed, health(t, pool, retry.EndpointLevel, "a1", now).State)
	assert.Equal(t, 1, health(t, pool, retry.ProviderLevel, "A", now).Failures)
}

func TestReservedEndpointsAreFreeOnceContentFlows(t *testing.T) {
	pool := newPool(t, retry.DefaultPolicy(), provider("A", 2, 2))
	for range 3 {
		play(t, pool, retry.Request{}, start, "S", "S")
	}
	now := start.Add(300 * time.Second)
	first := pool.Plan(retry.Request{}, now)
	defer first.Close()
	a, _ := first.Next(now)
	require.Equal(t, "a1", a.Endpoint)
	first.Content(now)
	second := pool.Plan(retry.Request{}, now)
	defer second.Close()
	refused := answers["S"]
	a, _ = second.Next(now)
	require.Equal(t, "a1", a.Endpoint)
	second.Report(&refused, now)
	a, _ = second.Next(now)
	assert.Equal(t, "a2", a.Endpoint)
}

func TestConversations(t *testing.T) {
	pool := newPool(t, retry.DefaultPolicy(), provider("A", 1, 1), provider("B", 1, 1))
	r := retry.Request{Conversation: "c"}
	places, _ := play(t, pool, r, start, "P", "ok")
	assert.Equal(t, "a1 b1", places)
	bound, _ := pool.Bound("c", start)
	assert.Equal(t, "B", bound, "bound by success, not by trying")
	places, _ = play(t, pool, r, start.Add(299*time.Second), "P", "P")
	assert.Equal(t, "b1 a1", places, "the bound one first")
	bound, _ = pool.Bound("c", start.Add(299*time.Second))
	assert.Equal(t, "B", bound, "a failure binds nothing and frees nothing")
	places, _ = play(t, pool, r, start.Add(300*time.Second), "ok")
	assert.Equal(t, "a1", places, "free again")
	places, _ = play(t, pool, retry.Request{Conversation: "d"}, start, "ok")
	assert.Equal(t, "a1", places)
}

func TestPassThrough(t *testing.T) {
	policy := retry.DefaultPolicy()
	compared := 0
	policy.Compare = func(a, b retry.Standing) int { compared++; return retry.Compare(a, b) }
	pool := newPool(t, policy, provider("A", 3, 2))
	places, _ := play(t, pool, retry.Request{PassThrough: true}, start, "P", "ok")
	assert.Equal(t, "URL URL", places)
	assert.Zero(t, compared, "the endpoints were looked at")
}

func TestChain(t *testing.T) {
	pool := newPool(t, retry.DefaultPolicy(), provider("A", 2, 2), provider("B", 2, 2), provider("C", 0, 2))
	_, chain := play(t, pool, retry.Request{}, start, "S", "404", "T", "T", "P", "ok")
	assert.Equal(t, "A/a1#1 system_error, A/a2#2 resource_not_found, B/b1#1 retry_failed, "+
		"B/b2#2 vendor_timeout, C#1 retry_failed, C#2 retry_success", chain.String())
	assert.Equal(t, 503, chain[4].Status)
	assert.ErrorIs(t, chain[0].Err, errRefused)
	assert.Equal(t, 1, chain[0].Index, "the plan stood on the next endpoint")
	assert.Equal(t, 1, chain[1].Index, "and did not move without an attempt left")

	_, chain = play(t, pool, retry.Request{}, start, "ok")
	assert.Equal(t, "A/a1#1 request_success", chain.String())
	_, chain = play(t, pool, retry.Request{}, start, "P", "ok")
	assert.Equal(t, "A/a1#1 retry_failed, A/a1#2 retry_success", chain.String())
	_, chain = play(t, pool, retry.Request{}, start, "abort")
	assert.Equal(t, "A/a1#1 client_abort", chain.String())
}

func TestBadPools(t *testing.T) {
	ok := provider("A", 1, 1)
	for want, providers := range map[string][]retry.Provider{
		"no providers":                   nil,
		"a provider has no name":         {{URL: "http://x"}},
		`two providers are named "A"`:    {ok, {Name: "A", URL: "http://x"}},
		`"B" has neither URL`:            {{Name: "B"}},
		"lacks ID or URL":                {{Name: "B", Endpoints: []retry.Endpoint{{ID: "x"}}}},
		`two endpoints have the ID "a1"`: {ok, {Name: "B", Endpoints: ok.Endpoints}},
	} {
		_, err := retry.NewPool(retry.DefaultPolicy(), providers)
		assert.ErrorContains(t, err, "retry.NewPool: ")
		assert.ErrorContains(t, err, want)
	}
	for want, change := range map[string]func(*retry.Policy){
		"Policy.Wait is -1s":                 func(p *retry.Policy) { p.Wait = -time.Second },
		"a rule that is nil":                 func(p *retry.Policy) { p.Place = nil },
		"Policy.Affinity is 0s":              func(p *retry.Policy) { p.Affinity = 0 },
		"Policy.VendorBreaker: breaker: Set": func(p *retry.Policy) { p.VendorBreaker.Failures = 0 },
	} {
		policy := retry.DefaultPolicy()
		change(&policy)
		_, err := retry.NewPool(policy, []retry.Provider{ok})
		assert.ErrorContains(t, err, want)
	}
	policy := retry.DefaultPolicy()
	policy.AffinityCapacity = 0
	assert.ErrorContains(t, policy.Validate(), "for 0 conversations")
	policy = retry.DefaultPolicy()
	policy.Wait = 0
	assert.NoError(t, policy.Validate(), "no wait is a wait")
	assert.ErrorContains(t, newPool(t, retry.DefaultPolicy(), ok).RecordProbe("zz", retry.Probe{}, start), `no endpoint "zz"`)
}
