package clock

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func TestVirtualOrder(t *testing.T) {
	v := NewVirtual(epoch)
	var got []string
	at := func(d time.Duration, name string) *Timer {
		return v.AfterFunc(d, func() { got = append(got, name); assert.Equal(t, epoch.Add(d), v.Now()) })
	}
	at(2*time.Second, "c")
	at(time.Second, "a")
	at(time.Second, "b")
	stopped := at(time.Second, "never")
	assert.True(t, stopped.Stop())
	assert.False(t, stopped.Stop())
	assert.True(t, v.Step())
	assert.Equal(t, []string{"a"}, got)
	v.Advance(time.Second)
	assert.Equal(t, []string{"a", "b", "c"}, got)
	assert.False(t, v.Step())
	assert.Panics(t, func() { v.Advance(-1) })
}

func TestVirtualRun(t *testing.T) {
	v := NewVirtual(epoch)
	v.AfterFunc(time.Hour, func() { v.AfterFunc(time.Hour, func() {}) })
	require.NoError(t, v.Run(24*time.Hour))
	assert.Equal(t, epoch.Add(2*time.Hour), v.Now())
	tick := v.NewTicker(time.Second)
	assert.ErrorContains(t, v.Run(time.Minute), "1 timers left after 1m0s")
	assert.Equal(t, epoch.Add(2*time.Hour+time.Minute), v.Now())
	tick.Stop()
	assert.Zero(t, v.Pending())
}

// The end of time is reached and not passed.
func TestVirtualReachesNoFurther(t *testing.T) {
	v := NewVirtual(epoch)
	v.Advance(1)
	rang := false
	v.AfterFunc(time.Hour, func() { rang = true })
	v.Advance(math.MaxInt64)
	assert.True(t, rang)
	assert.Equal(t, epoch.Add(math.MaxInt64), v.Now())
	v = NewVirtual(epoch)
	v.Advance(1)
	v.AfterFunc(time.Hour, func() {})
	require.NoError(t, v.Run(math.MaxInt64))
	assert.Equal(t, epoch.Add(time.Hour+1), v.Now())
}

func TestNoStaleTick(t *testing.T) {
	v := NewVirtual(epoch)
	timer := v.NewTimer(time.Second)
	v.Advance(time.Second)
	assert.False(t, timer.Reset(time.Second))
	assert.Empty(t, timer.C)
	v.Advance(time.Second)
	assert.Equal(t, epoch.Add(2*time.Second), <-timer.C)

	tick := v.NewTicker(time.Second)
	v.Advance(5 * time.Second) // nobody receives: one tick is kept
	assert.Equal(t, epoch.Add(3*time.Second), <-tick.C)
	assert.Empty(t, tick.C)
	tick.Reset(time.Minute)
	v.Advance(time.Minute)
	assert.Len(t, tick.C, 1)
	tick.Stop()
	assert.Empty(t, tick.C)
	assert.Panics(t, func() { tick.Reset(0) })
	assert.Panics(t, func() { v.NewTicker(0) })
}

func TestTimeoutContext(t *testing.T) {
	v := NewVirtual(epoch)
	type key struct{}
	parent, stop := context.WithCancel(context.WithValue(t.Context(), key{}, "value"))
	ctx, cancel := v.WithTimeout(parent, time.Minute)
	defer cancel()
	child, cancelChild := context.WithCancel(ctx)
	defer cancelChild()
	deadline, ok := ctx.Deadline()
	assert.True(t, ok)
	assert.Equal(t, epoch.Add(time.Minute), deadline)
	assert.Equal(t, "value", ctx.Value(key{}))
	v.Advance(time.Minute - 1)
	require.NoError(t, ctx.Err())
	v.Advance(1)
	<-ctx.Done()
	assert.Equal(t, context.DeadlineExceeded, ctx.Err())
	assert.Equal(t, context.DeadlineExceeded, child.Err())
	assert.Equal(t, context.DeadlineExceeded, context.Cause(child))

	cancelled, cancel := v.WithDeadline(parent, v.Now().Add(time.Minute))
	assert.Equal(t, 1, v.Pending())
	cancel()
	cancel()
	assert.Equal(t, context.Canceled, cancelled.Err())
	assert.Zero(t, v.Pending(), "the timer goes with the context")
	late, cancel := context.WithCancel(cancelled)
	defer cancel()
	<-late.Done()

	byParent, cancel := v.WithTimeout(parent, time.Minute)
	defer cancel()
	stop()
	<-byParent.Done()
	assert.Equal(t, context.Canceled, byParent.Err())
	dead, cancel := v.WithTimeout(parent, time.Minute)
	defer cancel()
	assert.Equal(t, context.Canceled, dead.Err())
	past, cancel := v.WithDeadline(t.Context(), epoch)
	defer cancel()
	assert.Equal(t, context.DeadlineExceeded, past.Err())
}

func TestSkewedRate(t *testing.T) {
	for _, ppm := range []int64{-500_000, -100, -1, 0, 1, 37, 100, 500_000} {
		base := NewVirtual(epoch)
		c := NewSkewed(base, Skew{Offset: -time.Hour, Drift: ppm})
		assert.Equal(t, epoch.Add(-time.Hour), c.Now())
		timer := c.NewTimer(1000 * time.Second)
		want := time.Duration(float64(1000*time.Second) / (1 + float64(ppm)/1e6)) // of the base
		base.Advance(want - time.Microsecond)
		assert.Empty(t, timer.C, "%d ppm: early", ppm)
		base.Advance(2 * time.Microsecond)
		assert.Len(t, timer.C, 1, "%d ppm: late", ppm)
		assert.WithinDuration(t, epoch.Add(-time.Hour+1000*time.Second), c.Now(), 3*time.Microsecond)
		assert.Zero(t, base.Pending(), "%d ppm: nothing armed without a timer", ppm)
	}
	assert.PanicsWithValue(t, "clock: NewSkewed: a drift of -500001 ppm is not within ±500000", func() { NewSkewed(System, Skew{Drift: -500_001}) })
	assert.PanicsWithValue(t, "clock: NewSkewed: a drift of 500001 ppm is not within ±500000", func() { NewSkewed(System, Skew{Drift: 500_001}) })
	assert.Panics(t, func() { NewSkewed(nil, Skew{}) })
}

func TestSkewedJumpMovesTheWallOnly(t *testing.T) {
	base := NewVirtual(epoch)
	c := NewSkewed(base, Skew{})
	timer := c.NewTimer(time.Minute)
	before := c.Now()
	c.Jump(time.Hour)
	assert.Equal(t, time.Hour, c.Now().Sub(before))
	assert.Empty(t, timer.C)
	base.Advance(time.Minute)
	assert.Equal(t, epoch.Add(time.Hour+time.Minute), <-timer.C)
	ctx, cancel := c.WithDeadline(t.Context(), c.Now().Add(time.Minute))
	defer cancel()
	c.Jump(-2 * time.Hour)
	base.Advance(time.Minute)
	assert.Equal(t, context.DeadlineExceeded, ctx.Err())
}

func TestSkewedPause(t *testing.T) {
	base := NewVirtual(epoch)
	c := NewSkewed(base, Skew{})
	first, second, third := c.NewTimer(time.Second), c.NewTimer(2*time.Second), c.NewTimer(time.Minute)
	c.Pause()
	base.Advance(10 * time.Second)
	assert.Empty(t, first.C)
	assert.Equal(t, epoch.Add(10*time.Second), c.Now(), "time passes for a stopped host")
	c.Resume()
	assert.Len(t, first.C, 1)
	assert.Len(t, second.C, 1)
	assert.Empty(t, third.C)
	base.Advance(50 * time.Second)
	assert.Len(t, third.C, 1)
}

func TestSystemAndSkewedInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []Clock{System, NewSkewed(System, Skew{Drift: 250_000})} {
			start := c.Now()
			c.Sleep(time.Hour)
			assert.InDelta(t, time.Hour, c.Now().Sub(start), 5)
			called := make(chan struct{})
			c.AfterFunc(time.Hour, func() { close(called) })
			<-called
			tick := c.NewTicker(time.Second)
			<-tick.C
			<-tick.C
			tick.Stop()
			ctx, cancel := c.WithTimeout(t.Context(), time.Minute)
			<-ctx.Done()
			assert.Equal(t, context.DeadlineExceeded, ctx.Err())
			cancel()
			assert.InDelta(t, 2*time.Hour+62*time.Second, c.Now().Sub(start), 20)
			ctx, cancel = c.WithDeadline(t.Context(), c.Now().Add(time.Minute))
			cancel()
			assert.Equal(t, context.Canceled, ctx.Err())
		}
	})
}

func TestVirtualFiresEverythingInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := NewVirtual(epoch)
		var fired []time.Time
		n := rapid.IntRange(1, 30).Draw(t, "timers")
		alive := 0
		for range n {
			timer := v.AfterFunc(time.Duration(rapid.Int64Range(0, 20).Draw(t, "after")), func() { fired = append(fired, v.Now()) })
			if rapid.Bool().Draw(t, "stop") {
				timer.Stop()
			} else {
				alive++
			}
		}
		for v.Pending() > 0 {
			v.Advance(time.Duration(rapid.Int64Range(0, 5).Draw(t, "advance")))
		}
		if len(fired) != alive {
			t.Fatalf("%d of %d fired", len(fired), alive)
		}
		for i := 1; i < len(fired); i++ {
			if fired[i].Before(fired[i-1]) {
				t.Fatalf("out of order: %v", fired)
			}
		}
	})
}

func TestSeed(t *testing.T) {
	for text, want := range map[string]uint64{"": 1, "7": 7, "0x1F": 31, " 12 ": 12, "0xffffffffffffffff": 1<<64 - 1} {
		t.Setenv(SeedVariable, text)
		got, err := DefaultSeed()
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	for _, text := range []string{"x", "-1", "1.5", "0x10000000000000000"} {
		t.Setenv(SeedVariable, text)
		_, err := DefaultSeed()
		assert.ErrorContains(t, err, text)
	}
	assert.Equal(t, `DEADAIR_SEED=0x1f go test -run '^TestA$/^b\.c$' github.com/seed-5a7f77c4/deadair/clock`, Replay("TestA/b.c", 31))
}

func TestWatchdogIsPatientWithWhatMoves(t *testing.T) {
	lock := func(stack string) goroutine { return goroutine{id: 1, state: "sync.Mutex.Lock", stack: stack} }
	run := func(id int64) goroutine { return goroutine{id: id, state: "running"} }
	sleep := func(stack string) goroutine {
		return goroutine{id: 9, state: "sleep", durable: true, stack: stack}
	}
	for _, c := range []struct {
		name string
		at   func(i int) ([]goroutine, uint64)
		want error
	}{
		{"held lock", func(i int) ([]goroutine, uint64) { return []goroutine{lock("a"), sleep("b")}, 0 }, ErrFrozen},
		{"lock that moves on", func(i int) ([]goroutine, uint64) { return []goroutine{lock(string(rune('a' + i%5)))}, 0 }, nil},
		{"others move", func(i int) ([]goroutine, uint64) { return []goroutine{lock("a"), sleep(string(rune('a' + i%7)))}, 0 }, nil},
		{"time moves", func(i int) ([]goroutine, uint64) { return []goroutine{lock("a")}, uint64(i / 5) }, nil},
		{"all wait inside", func(i int) ([]goroutine, uint64) { return []goroutine{sleep("a")}, 0 }, nil},
		{"busy", func(i int) ([]goroutine, uint64) { return []goroutine{run(3), sleep("a")}, 0 }, ErrBusy},
		{"turns", func(i int) ([]goroutine, uint64) { return []goroutine{run(int64(i % 2))}, 0 }, nil},
		{"slow", func(i int) ([]goroutine, uint64) { return []goroutine{run(3)}, uint64(i / 50) }, nil},
	} {
		w := newWatchdog(time.Second, 10*time.Second, epoch)
		var err error
		for i := 0; i < 400 && err == nil; i++ {
			gs, beats := c.at(i)
			err = w.sample(epoch.Add(time.Duration(i)*100*time.Millisecond), gs, beats)
		}
		if c.want == nil {
			assert.NoError(t, err, c.name)
		} else {
			assert.ErrorIs(t, err, c.want, c.name)
		}
	}
}

func FuzzParseGoroutine(f *testing.F) {
	f.Add("goroutine 12 [chan receive (nil chan) (durable), 2 minutes, locked to thread, synctest bubble 3]:\npkg.f(0x1, ...)\n\t/a/b.go:17 +0x1d\ncreated by pkg.g in goroutine 11\n\t/a/b.go:12 +0x2e")
	f.Add("goroutine 1 [running]:")
	f.Add("")
	f.Fuzz(func(t *testing.T, dump string) {
		if g, ok := parseGoroutine(dump); ok {
			_ = g.where().String()
			_ = list([]goroutine{g})
		}
	})
}

func TestParseGoroutine(t *testing.T) {
	g, ok := parseGoroutine("goroutine 12 [chan receive (nil chan) (durable), 2 minutes, locked to thread, synctest bubble 3]:\nruntime.park()\n\t/r/p.go:1 +0x1\npkg.(*T).f(0x1, ...)\n\t/a/b.go:17 +0x1d\n...3 frames elided...\ncreated by pkg.g in goroutine 11\n\t/a/b.go:12 +0x2e")
	require.True(t, ok)
	assert.EqualValues(t, 12, g.id)
	assert.EqualValues(t, 3, g.bubble)
	assert.True(t, g.durable)
	assert.Equal(t, "chan receive (nil chan)", g.state)
	assert.Equal(t, "pkg.(*T).f (/a/b.go:17)", g.where().String())
	assert.Equal(t, "pkg.g (/a/b.go:12)", g.creator.String())
	_, ok = parseGoroutine("goroutine x [running]:")
	assert.False(t, ok)
}

func BenchmarkInBubble(b *testing.B) {
	for b.Loop() {
		InBubble()
	}
}

func BenchmarkBubble(b *testing.B) {
	for b.Loop() {
		if err := Bubble(nil, func(t *testing.T) { time.Sleep(time.Hour) }); err != nil {
			b.Fatal(err)
		}
	}
}
