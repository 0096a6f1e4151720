package retry_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/selection/retry"
)

var start = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

var errRefused = errors.New("refused")

// answers by the letters of the documented sequences.
var answers = map[string]retry.Answer{
	"ok":    {Status: 200},
	"S":     {Err: errRefused},
	"P":     {Status: 503},
	"T":     {Err: retry.ErrFirstByte},
	"404":   {Status: 404},
	"fault": {Status: 400, Text: "prompt is too long"},
	"abort": {Client: errors.New("context canceled"), Err: errRefused},
	"broke": {Status: 200, Err: errRefused, Content: true},
}

// provider makes a provider with n endpoints: provider A has a1, a2, …
func provider(name string, n, attempts int) retry.Provider {
	p := retry.Provider{Name: name, Vendor: "vendor " + name, URL: "http://" + name, Attempts: attempts}
	for i := 1; i <= n; i++ {
		id := fmt.Sprint(strings.ToLower(name), i)
		p.Endpoints = append(p.Endpoints, retry.Endpoint{ID: id, URL: "http://" + id, Order: i})
	}
	return p
}

func newPool(t require.TestingT, policy retry.Policy, providers ...retry.Provider) *retry.Pool {
	pool, err := retry.NewPool(policy, providers)
	require.NoError(t, err)
	return pool
}

// play runs one request through a pool with the given outcomes, in order, and
// gives the places that were asked: "a1 a2 b1" and so on, URL for a provider's own.
func play(t require.TestingT, pool *retry.Pool, r retry.Request, now time.Time, outcomes ...string) (places string, chain retry.Chain) {
	plan := pool.Plan(r, now)
	defer plan.Close()
	var asked []string
	for {
		a, ok := plan.Next(now)
		if !ok {
			break
		}
		name := a.Endpoint
		if name == "" {
			name = "URL"
		}
		asked = append(asked, name)
		require.LessOrEqual(t, len(asked), len(outcomes), "more attempts than outcomes: %v", asked)
		answer, known := answers[outcomes[len(asked)-1]]
		require.True(t, known, outcomes[len(asked)-1])
		if d := plan.Report(&answer, now); d.Action == retry.Return {
			break
		}
	}
	require.Len(t, asked, len(outcomes), "%v", asked)
	return strings.Join(asked, " "), plan.Chain()
}

func health(t *testing.T, pool *retry.Pool, level retry.Level, name string, now time.Time) retry.Health {
	t.Helper()
	h, ok := pool.Health(level, name, now)
	require.True(t, ok, name)
	return h
}
