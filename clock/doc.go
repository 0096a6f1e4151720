// Package clock is time for tests: bubbles in which time is virtual, clocks that are moved by hand or are wrong, and the
// ordered queue of a simulation.
//
// In a bubble package time is virtual for any code; an hour takes no time once every goroutine waits:
//
//	func TestRetry(t *testing.T) {
//		clock.Run(t, func(t *testing.T) {
//			start := time.Now()
//			retryForAnHour()
//			require.Equal(t, time.Hour, time.Since(start))
//		})
//	}
//
// [Run] fails the test, [Bubble] returns an error, and both say what testing/synctest alone leaves to guess: which
// goroutines leaked, who waits in a deadlock, and which goroutine makes virtual time stand still, on what and where.
//
// A [Clock] is for code that takes its time source as a value. [System] is package time, [Virtual] is moved by hand,
// [Skewed] has an offset, a drift, jumps and pauses:
//
//	c := clock.NewSkewed(clock.System, clock.Skew{Offset: -2 * time.Hour, Drift: 200})
//	ctx, cancel := c.WithTimeout(ctx, time.Minute)   // a minute of that clock
//
// The seed of a run comes from the environment variable DEADAIR_SEED, see [DefaultSeed].
package clock
