package scenarios

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Quantile is the smallest of the values that at least the share q of them do not exceed, the nearest-rank definition.
// It is the zero value if there are none, and takes q < 0 for 0 and q > 1 for 1.
func Quantile[T cmp.Ordered](values []T, q float64) T {
	if len(values) == 0 {
		var none T
		return none
	}
	sorted := slices.Sorted(slices.Values(values))
	rank := int(math.Ceil(min(max(q, 0), 1) * float64(len(sorted))))
	return sorted[max(rank-1, 0)]
}

// Share is the part of the values that match, from 0 to 1; 0 if there are none.
func Share[T any](values []T, match func(T) bool) float64 {
	if len(values) == 0 {
		return 0
	}
	n := 0
	for _, v := range values {
		if match(v) {
			n++
		}
	}
	return float64(n) / float64(len(values))
}

// ChiSquare is Pearson's test of counts against a law: law has the probability of each class and sums to 1. p is the
// probability of a deviation as large as this one or larger if the law holds, with one degree of freedom less than there
// are classes. An expected count below 5 is an error, because then p means little: put classes together.
func ChiSquare(counts []int, law []float64) (statistic, p float64, err error) {
	if len(counts) != len(law) || len(counts) < 2 {
		return 0, 0, fmt.Errorf("scenarios: ChiSquare: %d counts and %d probabilities; as many of each, 2 at least", len(counts), len(law))
	}
	total, sum := 0, 0.0
	for i, n := range counts {
		if n < 0 {
			return 0, 0, fmt.Errorf("scenarios: ChiSquare: the count %d is negative", n)
		}
		total += n
		sum += law[i]
	}
	if math.Abs(sum-1) > 1e-9 {
		return 0, 0, fmt.Errorf("scenarios: ChiSquare: the probabilities sum to %v, not 1", sum)
	}
	for i, n := range counts {
		expected := float64(total) * law[i]
		if !(expected >= 5) {
			return 0, 0, fmt.Errorf("scenarios: ChiSquare: class %d expects %.2f, less than 5", i, expected)
		}
		d := float64(n) - expected
		statistic += d * d / expected
	}
	return statistic, upperGamma(float64(len(counts)-1)/2, statistic/2), nil
}

// upperGamma is the regularised upper incomplete gamma function Q(a, x) for a > 0, x ≥ 0: by the series of its complement
// where x < a+1, by the continued fraction (Lentz) elsewhere. DLMF 8.7.1 and 8.9.2.
func upperGamma(a, x float64) float64 {
	if x <= 0 {
		return 1
	}
	const most, precision = 10_000, 1e-15
	lg, _ := math.Lgamma(a)
	front := math.Exp(a*math.Log(x) - x - lg)
	if x < a+1 {
		term := 1 / a
		sum := term
		for n := 1; n < most && term > sum*precision; n++ {
			term *= x / (a + float64(n))
			sum += term
		}
		return 1 - front*sum
	}
	b := x + 1 - a
	c := math.Inf(1)
	d := 1 / b
	h := d
	for n := 1; n < most; n++ {
		an := -float64(n) * (float64(n) - a)
		b += 2
		d = 1 / (an*d + b)
		c = b + an/c
		h *= d * c
		if math.Abs(d*c-1) < precision {
			break
		}
	}
	return front * h
}
