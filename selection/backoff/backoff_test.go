package backoff_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-5a7f77c4/deadair/selection/backoff"
)

func delays(p backoff.Policy, n int) []float64 {
	l := p.Start()
	out := make([]float64, n)
	for i := range out {
		out[i] = l.Next().Seconds()
	}
	return out
}

func TestLadders(t *testing.T) {
	tests := []struct {
		name   string
		policy backoff.Policy
		want   []float64
	}{
		{"background", backoff.Background, []float64{2, 2, 2, 2, 2, 3, 4.5, 6.75, 10.125, 15.1875, 22.78125, 34.171875,
			51.2578125, 76.88671875, 115.330078125, 120, 120}},
		{"quota", backoff.Quota, []float64{300, 450, 675, 1012.5, 1518.75, 2278.125, 3417.1875, 5125.78125, 7688.671875,
			11533.0078125, 17299.51171875, 21600, 21600}},
		{"subscription", backoff.Subscription, []float64{2, 2, 2, 2, 2, 3, 4.5, 6.75, 10.125, 15.1875, 22.78125, 34.171875,
			51.2578125, 76.88671875, 115.330078125, 172.9951171875, 180}},
		{"grows at once", backoff.Policy{Initial: 4, GrowAfter: 0, Max: 10}, []float64{4e-9, 6e-9, 9e-9, 10e-9}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			assert.InDeltaSlice(t, test.want, delays(test.policy, len(test.want)), 1e-9)
		})
	}
}

func TestValidate(t *testing.T) {
	require.NoError(t, backoff.Background.Validate())
	require.NoError(t, backoff.Policy{Initial: 1, Max: 1}.Validate())
	for _, test := range []struct {
		policy backoff.Policy
		names  string
	}{
		{backoff.Policy{Initial: 0, Max: time.Second}, "Initial 0s"},
		{backoff.Policy{Initial: time.Second, GrowAfter: -1, Max: time.Second}, "GrowAfter -1ns"},
		{backoff.Policy{Initial: time.Second, Max: time.Millisecond}, "Max 1ms"},
	} {
		require.ErrorContains(t, test.policy.Validate(), test.names)
	}
}

func TestLadderNeverShrinksAndNeverPassesMax(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := backoff.Policy{
			Initial:   time.Duration(rapid.Int64Range(1, 1000).Draw(t, "initial")),
			GrowAfter: time.Duration(rapid.Int64Range(0, 10000).Draw(t, "growAfter")),
		}
		p.Max = p.Initial + time.Duration(rapid.Int64Range(0, 10000).Draw(t, "room"))
		require.NoError(t, p.Validate())
		l, last, slept := p.Start(), time.Duration(0), time.Duration(0)
		for range 30 {
			d := l.Next()
			if d < last || d > p.Max {
				t.Fatalf("%v after %v with %+v", d, last, p)
			}
			if slept < p.GrowAfter && d != p.Initial {
				t.Fatalf("grew to %v when only %v had been slept", d, slept)
			}
			last, slept = d, slept+d
		}
	})
}

func ExamplePolicy_Start() {
	l := backoff.Background.Start()
	for range 7 {
		fmt.Print(l.Next(), " ")
	}
	// Output: 2s 2s 2s 2s 2s 3s 4.5s
}
