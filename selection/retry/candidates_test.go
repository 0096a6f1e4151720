package retry_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-5a7f77c4/deadair/selection/retry"
)

func standing(id string, order int, probe string, latency int) retry.Standing {
	s := retry.Standing{Endpoint: retry.Endpoint{ID: id, Order: order}}
	if probe != "never" {
		s.Probe = retry.Probe{At: start, OK: probe == "ok", Latency: time.Duration(latency) * time.Millisecond}
	}
	return s
}

func TestOrder(t *testing.T) {
	want := []retry.Standing{
		standing("z", 1, "ok", 0),
		standing("f", 2, "ok", 10),
		standing("a", 2, "ok", 20),
		standing("b", 2, "ok", 0), // latency unknown
		standing("c", 2, "ok", 0),
		standing("e", 9, "ok", 1),
		standing("g", 1, "never", 0),
		standing("h", 2, "never", 0),
		standing("d", 0, "failed", 1),
		standing("i", 1, "failed", 1),
	}
	rapid.Check(t, func(t *rapid.T) {
		got := rapid.Permutation(want).Draw(t, "shuffled")
		slices.SortFunc(got, retry.Compare)
		if !slices.Equal(got, want) {
			t.Fatalf("%v", got)
		}
	})
}

func TestCandidates(t *testing.T) {
	p := provider("A", 5, 3)
	p.Endpoints[1].Disabled = true
	pool := newPool(t, retry.DefaultPolicy(), p)
	places, _ := play(t, pool, retry.Request{}, start, "S", "S", "S")
	assert.Equal(t, "a1 a3 a4", places, "the disabled one is left out, then the list is cut to three")
	require.NoError(t, pool.RecordProbe("a5", retry.Probe{OK: true}, start))
	require.NoError(t, pool.RecordProbe("a1", retry.Probe{OK: false}, start))
	places, _ = play(t, pool, retry.Request{}, start, "S", "S", "S")
	assert.Equal(t, "a5 a3 a4", places)

	none := retry.Provider{Name: "B", Endpoints: []retry.Endpoint{{ID: "b1", URL: "http://b1", Disabled: true}}}
	off := retry.Provider{Name: "C", URL: "http://c", Disabled: true}
	pool = newPool(t, retry.DefaultPolicy(), none, off, provider("D", 0, 1))
	_, chain := play(t, pool, retry.Request{}, start, "ok")
	assert.Equal(t, "D#1 request_success", chain.String(), "no candidate: on to the next provider")
}

// Failing probes against a dead endpoint open its breaker and do not keep it open.
func TestProbesDoNotBarTheWayBack(t *testing.T) {
	pool := newPool(t, retry.DefaultPolicy(), provider("A", 2, 2))
	for _, id := range []string{"a1", "a2"} {
		require.NoError(t, pool.RecordProbe(id, retry.Probe{OK: false}, start))
	}
	for range 2 {
		play(t, pool, retry.Request{}, start, "S", "ok")
	}
	var tried []string
	for s := 10; s <= 310; s += 10 {
		now := start.Add(time.Duration(s) * time.Second)
		plan := pool.Plan(retry.Request{}, now)
		a, ok := plan.Next(now)
		require.True(t, ok)
		tried = append(tried, a.Endpoint)
		plan.Close()
		require.NoError(t, pool.RecordProbe("a1", retry.Probe{OK: false}, now))
	}
	assert.Equal(t, 29, strings.Count(strings.Join(tried, " "), "a2"), "%v", tried)
	assert.Equal(t, []string{"a1", "a1"}, tried[29:])
}
