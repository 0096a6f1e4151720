package netsim

import (
	"math"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

const packets = 100_000

// play judges n packets of 1000 bytes, one every gap.
func play(t testing.TB, c Conditions, n int, gap time.Duration) []fate {
	t.Helper()
	require.NoError(t, c.Validate())
	w := newWeather(42, "a→b", false, &c)
	fates := make([]fate, n)
	for i := range fates {
		fates[i] = w.judge(time.Duration(i)*gap, 1000)
	}
	return fates
}

func shareOf(fates []fate, is func(fate) bool) float64 {
	n := 0
	for _, f := range fates {
		if is(f) {
			n++
		}
	}
	return float64(n) / float64(len(fates))
}

func lost(f fate) bool { return f.Drop != notDropped }

// runs gives the mean length of the runs of packets for which is holds.
func runs(fates []fate, is func(fate) bool) float64 {
	count, total, inside := 0, 0, false
	for _, f := range fates {
		now := is(f)
		if now {
			total++
			if !inside {
				count++
			}
		}
		inside = now
	}
	return float64(total) / float64(count)
}

// follows gives the share of packets for which is holds, of those that come after one for which it held.
func follows(fates []fate, is func(fate) bool) float64 {
	after, both := 0, 0
	for i := 1; i < len(fates); i++ {
		if is(fates[i-1]) {
			after++
			if is(fates[i]) {
				both++
			}
		}
	}
	return float64(both) / float64(after)
}

func TestDelayHasTheMeanAndTheVarianceOfItsDistribution(t *testing.T) {
	for d := Uniform; d <= ParetoNormal; d++ {
		t.Run(d.String(), func(t *testing.T) {
			const latency, jitter = 100 * ms, 10 * ms
			var sum, squares float64
			for _, f := range play(t, Conditions{Latency: latency, Jitter: jitter, Distribution: d}, packets, ms) {
				z := float64(f.Delay-latency) / float64(jitter)
				sum += z
				squares += z * z
			}
			mean, variance := sum/packets, squares/packets-sum/packets*sum/packets
			wantMean, wantVariance := moments(d)
			assert.InDelta(t, wantMean, mean, 0.015)
			assert.InEpsilon(t, wantVariance, variance, 0.03)
		})
	}
}

func TestDelayIsNeverNegative(t *testing.T) {
	for _, f := range play(t, Conditions{Latency: ms, Jitter: 50 * ms, Distribution: Normal}, packets, ms) {
		require.GreaterOrEqual(t, f.Delay, time.Duration(0))
	}
}

// x = ρ·last + (1−ρ)·u has mean ½, variance (1−ρ)/(1+ρ)/12 and coefficient of correlation ρ.
func TestCorrelatedDelay(t *testing.T) {
	for _, rho := range []float64{0, 0.25, 0.5, 0.9} {
		const latency, jitter = 100 * ms, 10 * ms
		fates := play(t, Conditions{Latency: latency, Jitter: jitter, DelayCorrelation: rho}, packets, ms)
		var sum, squares, products float64
		for i := range fates {
			z := float64(fates[i].Delay-latency) / float64(jitter)
			sum += z
			squares += z * z
			if i > 0 {
				products += z * float64(fates[i-1].Delay-latency) / float64(jitter)
			}
		}
		assert.InDelta(t, 0, sum/packets, 0.02, "ρ = %v", rho)
		assert.InEpsilon(t, (1-rho)/(1+rho)/3, squares/packets, 0.05, "ρ = %v", rho)
		assert.InDelta(t, rho, products/squares, 0.02, "ρ = %v", rho)
	}
}

func TestShares(t *testing.T) {
	within := func(p float64) float64 { return 4*math.Sqrt(p*(1-p)/packets) + 1e-12 } // 4 σ
	for _, p := range []float64{0, 0.001, 0.1, 0.5, 1} {
		fates := play(t, Conditions{Loss: p}, packets, ms)
		assert.InDelta(t, p, shareOf(fates, lost), within(p), "loss")
		fates = play(t, Conditions{Duplicate: p}, packets, ms)
		assert.InDelta(t, p, shareOf(fates, func(f fate) bool { return f.Dup }), within(p), "duplicates")
		fates = play(t, Conditions{Corrupt: p}, packets, ms)
		assert.InDelta(t, p, shareOf(fates, func(f fate) bool { return f.Corrupt }), within(p), "corrupted")
		fates = play(t, Conditions{Latency: ms, Reorder: p}, packets, ms)
		assert.InDelta(t, p, shareOf(fates, func(f fate) bool { return f.Delay == 0 }), within(p), "reordered")
	}
}

func TestCorrelatedSharesCluster(t *testing.T) {
	for name, c := range map[string]struct {
		c  Conditions
		is func(fate) bool
	}{
		"loss":      {Conditions{Loss: 0.5, LossCorrelation: 0.5}, lost},
		"duplicate": {Conditions{Duplicate: 0.5, DuplicateCorrelation: 0.5}, func(f fate) bool { return f.Dup }},
		"corrupt":   {Conditions{Corrupt: 0.5, CorruptCorrelation: 0.5}, func(f fate) bool { return f.Corrupt }},
		"reorder":   {Conditions{Latency: ms, Reorder: 0.5, ReorderCorrelation: 0.5}, func(f fate) bool { return f.Overtakes }},
	} {
		fates := play(t, c.c, packets, ms)
		// Were x normal, P(x' < ½ | x < ½) would be ½ + asin(ρ)/π = ⅔; a sum of uniform numbers comes near.
		assert.InDelta(t, 0.5, shareOf(fates, c.is), 0.02, name)
		assert.InDelta(t, 2.0/3, follows(fates, c.is), 0.04, name)
	}
}

func TestGilbertElliottAgainstTheory(t *testing.T) {
	for _, g := range []GilbertElliott{
		{P: 0.01, R: 0.25}, {P: 0.05, R: 0.5}, {P: 0.002, R: 0.05}, {P: 0.3}, {P: 0.02, R: 0.2, OneMinusH: 0.7, OneMinusK: 0.01},
	} {
		fates := play(t, Conditions{Burst: g}, packets, ms)
		r, h := orElse(g.R, 1-g.P), orElse(g.OneMinusH, 1)
		bad := g.P / (g.P + r)
		assert.InEpsilon(t, bad*h+(1-bad)*g.OneMinusK, shareOf(fates, lost), 0.12, "%+v", g)
		if h == 1 && g.OneMinusK == 0 {
			assert.InEpsilon(t, 1/r, runs(fates, lost), 0.08, "%+v", g)
		}
	}
}

func TestFourStateAgainstTheory(t *testing.T) {
	for _, s := range []FourState{
		{P13: 0.01, P31: 0.2}, {P13: 0.02, P31: 0.1, P32: 0.3, P23: 0.4, P14: 0.01}, {P14: 0.05}, {P13: 0.1},
	} {
		fates := play(t, Conditions{Burst: s}, packets, ms)
		// Balance: what leaves the gap comes back from the burst or from the single loss.
		p31, p23 := orElse(s.P31, 1-s.P13), orElse(s.P23, 1)
		one := 1.0
		three, four := s.P13/p31, s.P14
		two := three * s.P32 / p23
		assert.InEpsilon(t, (three+four)/(one+two+three+four), shareOf(fates, lost), 0.08, "%+v", s)
		if s.P14 == 0 {
			assert.InEpsilon(t, 1/(p31+s.P32), runs(fates, lost), 0.06, "%+v", s)
		}
	}
}

func TestReorderGap(t *testing.T) {
	fates := play(t, Conditions{Latency: ms, ReorderGap: 5}, 20, ms)
	for i, f := range fates {
		assert.Equal(t, i%5 == 4, f.Overtakes, "packet %d", i+1)
		assert.Equal(t, f.Overtakes, f.Delay == 0)
	}
	fates = play(t, Conditions{Latency: ms, Reorder: 0.5, ReorderGap: 5}, packets, ms)
	last := -1
	for i, f := range fates {
		if f.Overtakes {
			require.GreaterOrEqual(t, i-last, 5)
			last = i
		}
	}
	// Four packets have no chance, then each has one of a half: one in six on the average.
	assert.InEpsilon(t, 1.0/6, shareOf(fates, func(f fate) bool { return f.Overtakes }), 0.02)
}

func TestRateGivesThroughput(t *testing.T) {
	c := Conditions{Latency: 20 * ms, Rate: 8 * mbit} // 1000 bytes take 1 ms
	fates := play(t, c, packets, 500*us)              // twice as many as fit
	for i, f := range fates {
		arrival := time.Duration(i)*500*us + f.Delay
		require.Equal(t, time.Duration(i+1)*ms+20*ms, arrival, "packet %d", i)
		require.Equal(t, f.Delay-20*ms, f.Queue)
	}
	for _, f := range play(t, c, 1000, 2*ms) { // half as many as fit: no queue
		require.Equal(t, 21*ms, f.Delay)
	}
}

func TestQueueIsBoundAndDropsAtItsTail(t *testing.T) {
	c := Conditions{Rate: 8 * mbit, Queue: 10_000}
	fates := play(t, c, packets, 500*us)
	assert.InDelta(t, 0.5, shareOf(fates, func(f fate) bool { return f.Drop == dropQueue }), 0.001)
	for _, f := range fates {
		require.LessOrEqual(t, f.Queue, 10*ms) // 10 000 bytes take 10 ms
	}
	// A burst at one instant: ten fit, and the rest is lost.
	w := newWeather(1, "p", false, &c)
	for i := range 20 {
		assert.Equal(t, i >= 10, lost(w.judge(0, 1000)), "packet %d", i)
	}
	// An idle line takes a packet that is larger than its queue.
	small := Conditions{Rate: 8 * mbit, Queue: 100}
	assert.Equal(t, ms, newWeather(1, "p", false, &small).judge(0, 1000).Delay)
}

func TestBufferbloat(t *testing.T) {
	c := Conditions{Rate: 64 * kbit, Queue: 256 << 10} // 256 KiB at 64 kbit/s: 32.768 s
	w := newWeather(1, "p", false, &c)
	var worst time.Duration
	for range 1000 {
		worst = max(worst, w.judge(0, 1000).Queue)
	}
	assert.InDelta(t, 32.7, worst.Seconds(), 0.1)
}

func TestMTU(t *testing.T) {
	c := Conditions{MTU: 1280}
	w := newWeather(1, "p", false, &c)
	assert.Equal(t, fate{}, w.judge(0, 1280))
	assert.Equal(t, fate{Drop: dropTooLong}, w.judge(0, 1281))
	assert.Equal(t, 1280, c.segmentMTU())
	assert.Equal(t, 1500, (&Conditions{}).segmentMTU())
}

func TestSlotsLetPacketsOutInBursts(t *testing.T) {
	c := Conditions{Slots: &Slots{MinDelay: 10 * ms, MaxDelay: 20 * ms, Packets: 4}}
	fates := play(t, c, 10_000, ms)
	burst, last := 0, time.Duration(-1)
	for i, f := range fates {
		leaves := time.Duration(i)*ms + f.Delay
		require.GreaterOrEqual(t, leaves, last, "order is kept")
		if leaves == last {
			burst++
			require.LessOrEqual(t, burst, 4)
		} else {
			require.GreaterOrEqual(t, leaves-last, 10*ms)
			burst, last = 1, leaves
		}
	}
	bytes := Conditions{Slots: &Slots{MinDelay: 10 * ms, Bytes: 2500}}
	w := newWeather(1, "p", false, &bytes)
	var delays []time.Duration
	for range 7 {
		delays = append(delays, w.judge(1, 1000).Delay)
	}
	assert.Equal(t, []time.Duration{10 * ms, 10 * ms, 10 * ms, 20 * ms, 20 * ms, 20 * ms, 30 * ms}, delays)
}

func TestDuplicateAndLossTogetherLeaveOne(t *testing.T) {
	for _, f := range play(t, Conditions{Loss: 1, Duplicate: 1}, 10, ms) {
		assert.Equal(t, fate{}, f)
	}
}

func TestScheduleChangesTheWeather(t *testing.T) {
	c := Metro
	w := newWeather(7, "phone→tower", false, &c)
	for _, s := range []struct {
		at   time.Duration
		lost bool
	}{{0, false}, {56 * time.Second, true}, {74 * time.Second, true}, {91 * time.Second, false}, {150 * time.Second, true}} {
		assert.Equal(t, s.lost, w.judge(s.at, 100).Drop == dropLoss, "at %v", s.at)
	}
}

// genConditions makes conditions with a random choice of faults.
func genConditions(t *rapid.T) Conditions {
	p := rapid.Float64Range(0, 1)
	span := func(label string) time.Duration { return time.Duration(rapid.IntRange(1, 1e9).Draw(t, label)) }
	c := Conditions{Latency: span("latency")}
	for _, some := range []struct {
		name string
		set  func()
	}{
		{"jitter", func() { c.Jitter, c.Distribution = span("jitter"), Distribution(rapid.IntRange(0, 4).Draw(t, "shape")) }},
		{"ρ delay", func() { c.DelayCorrelation = p.Draw(t, "ρ") }},
		{"loss", func() { c.Loss, c.LossCorrelation = p.Draw(t, "loss"), p.Draw(t, "ρ") }},
		{"duplicate", func() { c.Duplicate, c.DuplicateCorrelation = p.Draw(t, "duplicate"), p.Draw(t, "ρ") }},
		{"corrupt", func() { c.Corrupt, c.CorruptCorrelation = p.Draw(t, "corrupt"), p.Draw(t, "ρ") }},
		{"reorder", func() { c.Reorder, c.ReorderGap = p.Draw(t, "reorder"), rapid.IntRange(0, 9).Draw(t, "gap") }},
	} {
		if rapid.Bool().Draw(t, some.name) {
			some.set()
		}
	}
	return c
}

// What one fault does to a packet is the same whatever other faults are configured.
func TestSwitchingAFaultOnShiftsNoOther(t *testing.T) {
	for name, fault := range map[string]struct {
		on   func(*Conditions)
		kept func(fate) fate // what must stay as it was
	}{
		"loss":      {func(c *Conditions) { c.Loss = 0.5 }, func(f fate) fate { f.Dup, f.DupDelay = false, 0; return f }},
		"burst":     {func(c *Conditions) { c.Loss, c.Burst = 0, GilbertElliott{P: 0.3, R: 0.3} }, func(f fate) fate { f.Dup, f.DupDelay = false, 0; return f }},
		"duplicate": {func(c *Conditions) { c.Duplicate = 0.5 }, func(f fate) fate { f.Dup, f.DupDelay = false, 0; return f }},
		"corrupt":   {func(c *Conditions) { c.Corrupt = 0.5 }, func(f fate) fate { f.Corrupt, f.CorruptBit = false, 0; return f }},
		"jitter":    {func(c *Conditions) { c.Jitter = ms }, func(f fate) fate { f.Delay, f.DupDelay = 0, 0; return f }},
		"reorder":   {func(c *Conditions) { c.Reorder = 0.5 }, func(f fate) fate { f.Overtakes, f.Delay = false, 0; return f }},
		"MTU":       {func(c *Conditions) { c.MTU = 700 }, func(f fate) fate { return f }},
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				before := genConditions(t)
				after := before
				fault.on(&after)
				seed := rapid.Uint64().Draw(t, "seed")
				a, b := newWeather(seed, "p", false, &before), newWeather(seed, "p", false, &after)
				for i := range 200 {
					size := 500 + 300*(i%2)
					x, y := a.judge(time.Duration(i), size), b.judge(time.Duration(i), size)
					if !lost(x) && !lost(y) {
						require.Equal(t, fault.kept(x), fault.kept(y), "packet %d", i)
					}
				}
			})
		})
	}
}

func TestSameKeySameFates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, seed := genConditions(t), rapid.Uint64().Draw(t, "seed")
		a, b := newWeather(seed, "p", true, &c), newWeather(seed, "p", true, &c)
		for i := range 50 {
			require.Equal(t, a.judge(time.Duration(i), 100), b.judge(time.Duration(i), 100))
		}
	})
}

func TestSendingTimesNeverOverflow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bytes := rapid.Int64Range(1, 1<<40).Draw(t, "bytes")
		rate := rapid.Int64Range(1, math.MaxInt64).Draw(t, "rate")
		d := timeFor(bytes, rate)
		require.Positive(t, d)
		if d < math.MaxInt64 {
			require.GreaterOrEqual(t, bytesIn(d, rate), bytes)
			require.LessOrEqual(t, bytesIn(d-1, rate), bytes)
		}
	})
}

func TestJudgingIsSmallAndAllocatesNothing(t *testing.T) {
	assert.LessOrEqual(t, unsafe.Sizeof(weather{}), uintptr(200))
	c := stormy
	w := newWeather(1, "p", false, &c)
	now := time.Duration(0)
	assert.Zero(t, testing.AllocsPerRun(1000, func() { now += ms; w.judge(now, 1000) }))
}

// stormy has every fault at once.
var stormy = Conditions{
	Latency: 50 * ms, Jitter: 5 * ms, Distribution: Normal, DelayCorrelation: 0.25,
	Burst: GilbertElliott{P: 0.01, R: 0.25}, Duplicate: 0.01, Corrupt: 0.01, Reorder: 0.01,
	Rate: 10 * mbit, Queue: 64 << 10, MTU: 1500, Slots: &Slots{MinDelay: ms, MaxDelay: 2 * ms, Packets: 8},
}

func BenchmarkJudge(b *testing.B) {
	for name, c := range map[string]Conditions{
		"LTE": LTE, "loss": {Latency: ms, Loss: 0.01}, "jitter": {Latency: ms, Jitter: us, Distribution: Normal}, "pareto": {Latency: ms, Jitter: us, Distribution: Pareto},
		"metro": Metro, "stormy": stormy,
	} {
		b.Run(name, func(b *testing.B) {
			w := newWeather(1, "p", false, &c)
			b.ReportAllocs()
			now := time.Duration(0)
			for b.Loop() {
				now += 2 * ms
				w.judge(now, 1200)
			}
		})
	}
}
