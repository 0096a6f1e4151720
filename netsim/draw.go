package netsim

import "math"

// Randomness in a network is stateless: a draw is a hash of the seed, the path and direction it is made for, the kind
// of fault that asks, and the number of the packet. Nobody's draw moves anybody else's, so switching one fault on, or
// adding one host, leaves all other faults where they were.

// drawKind names the stream a draw comes from: one for every kind of fault.
type drawKind uint64

const (
	drawDelay drawKind = iota + 1
	drawDupDelay
	drawLoss
	drawBurst     // the change of state
	drawBurstLoss // the loss within a state
	drawDuplicate
	drawCorrupt
	drawCorruptBit
	drawReorder
	drawSlot
)

// golden is 2^64 divided by the golden ratio, the increment of splitmix64.
const golden = 0x9e3779b97f4a7c15

// mix is the finisher of splitmix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014, with
// Stafford's constants). It is a bijection, and every bit of the input moves half of the bits of the output.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// drawKey makes the key of one direction of one path. Names go in, never numbers that depend on the order of calls.
func drawKey(seed uint64, path string, back bool) uint64 {
	h := uint64(0xcbf29ce484222325) // FNV-1a
	for i := 0; i < len(path); i++ {
		h = (h ^ uint64(path[i])) * 0x100000001b3
	}
	key := mix(mix(seed+golden) ^ h)
	if back {
		key = mix(key ^ golden)
	}
	return key
}

// draw gives the n-th number of one kind under a key.
func draw(key uint64, kind drawKind, n uint64) uint64 {
	return mix(mix(key+uint64(kind)*golden) + n*golden)
}

// unit turns a draw into a number in [0, 1).
func unit(x uint64) float64 { return float64(x>>11) * (1.0 / (1 << 53)) }

// spread gives the deviate of a distribution that belongs to the quantile u in [0, 1): mean 0, scaled so that 1 stands
// for the jitter. Everything but Uniform is cut at ±4, as netem's tables are.
func (d Distribution) spread(u float64) float64 {
	u += 1.0 / (1 << 54) // the middle of the cell: never 0, where quantiles are infinite
	switch d {
	case Normal:
		return cut(normalQuantile(u))
	case Exponential:
		return cut(-math.Log(u) - 1)
	case Pareto:
		return paretoQuantile(u)
	case ParetoNormal:
		return cut(0.25*cut(normalQuantile(1-u)) + 0.75*paretoQuantile(u))
	default:
		return 2*u - 1
	}
}

func cut(z float64) float64 { return max(-4, min(4, z)) }

func normalQuantile(u float64) float64 { return math.Sqrt2 * math.Erfinv(2*u-1) }

// paretoQuantile has shape 3, shifted to mean 0, and the factor 4/3 of iproute2's pareto.c. u counts from the top.
func paretoQuantile(u float64) float64 { return cut((1/math.Cbrt(u) - 1.5) * 4 / 3) }
