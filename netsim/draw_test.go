package netsim

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// moments integrates a shape over its quantiles.
func moments(d Distribution) (mean, variance float64) {
	const n = 1 << 18
	var sum, squares float64
	for i := range n {
		z := d.spread((float64(i) + 0.5) / n)
		sum += z
		squares += z * z
	}
	mean = sum / n
	return mean, squares/n - mean*mean
}

func TestDistributionsHaveTheMomentsTheyAreDocumentedWith(t *testing.T) {
	for _, c := range []struct {
		d                   Distribution
		mean, sigma, within float64
		least               float64
	}{
		{Uniform, 0, 1 / math.Sqrt(3), 0.001, -1},
		{Normal, 0, 1, 0.002, -4},
		{Exponential, 0, 1, 0.06, -1},
		{Pareto, -0.033, 0.82, 0.01, -2.0 / 3},
		{ParetoNormal, -0.025, 0.83, 0.01, -1.5},
	} {
		t.Run(c.d.String(), func(t *testing.T) {
			mean, variance := moments(c.d)
			assert.InDelta(t, c.mean, mean, c.within)
			assert.InDelta(t, c.sigma, math.Sqrt(variance), c.within)
			lowest, highest := math.Inf(1), math.Inf(-1)
			for _, u := range []float64{0, 1e-9, 0.25, 0.5, 0.75, 1 - 1e-9, math.Nextafter(1, 0)} {
				z := c.d.spread(u)
				require.False(t, math.IsNaN(z), "u = %v", u)
				lowest, highest = min(lowest, z), max(highest, z)
			}
			assert.GreaterOrEqual(t, lowest, c.least-1e-6)
			assert.LessOrEqual(t, highest, 4.0)
		})
	}
}

func TestDrawsOfDifferentStreamsAreIndependent(t *testing.T) {
	const n = 100_000
	streams := map[string]func(i uint64) uint64{
		"same key, other kind":  func(i uint64) uint64 { return draw(drawKey(1, "a→b", false), drawDelay, i) },
		"other direction":       func(i uint64) uint64 { return draw(drawKey(1, "a→b", true), drawLoss, i) },
		"other path":            func(i uint64) uint64 { return draw(drawKey(1, "a→c", false), drawLoss, i) },
		"other seed":            func(i uint64) uint64 { return draw(drawKey(2, "a→b", false), drawLoss, i) },
		"the next of the same":  func(i uint64) uint64 { return draw(drawKey(1, "a→b", false), drawLoss, i+1) },
		"seed and kind swapped": func(i uint64) uint64 { return draw(drawKey(uint64(drawLoss), "a→b", false), 1, i) },
	}
	key := drawKey(1, "a→b", false)
	for name, other := range streams {
		t.Run(name, func(t *testing.T) {
			var covariance, mean float64
			for i := range uint64(n) {
				a, b := unit(draw(key, drawLoss, i)), unit(other(i))
				mean += a
				covariance += (a - 0.5) * (b - 0.5)
			}
			assert.InDelta(t, 0.5, mean/n, 0.003)
			assert.InDelta(t, 0, covariance/n*12, 0.012, "coefficient of correlation")
		})
	}
}
