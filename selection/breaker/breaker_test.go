package breaker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-5a7f77c4/deadair/selection/breaker"
)

var start = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time {
	return start.Add(time.Duration(seconds * float64(time.Second)))
}

// Each line is "time event → state": fail and ok are whole requests, refused one
// that gets no permit; late-fail and late-ok belong to a request that was admitted
// at time 0; probe-fail and probe-ok come without a permit.
func TestTimelines(t *testing.T) {
	type step struct {
		at    float64
		event string
		state breaker.State
	}
	endpoint := breaker.Settings{Failures: 3, OpenFor: 300 * time.Second, Successes: 1}
	provider := breaker.Settings{Failures: 5, OpenFor: 1800 * time.Second, Successes: 2}
	vendor := breaker.Settings{Failures: 1, OpenFor: 60 * time.Second}
	const closed, open, half = breaker.Closed, breaker.Open, breaker.HalfOpen
	for name, tt := range map[string]struct {
		settings breaker.Settings
		steps    []step
	}{
		"endpoint opens at the third failure and is half-open at 300 s sharp": {endpoint, []step{
			{1, "fail", closed}, {2, "fail", closed}, {3, "fail", open},
			{302.999, "refused", open}, {303, "", half}, {303, "ok", closed}}},
		"a success in between starts the count anew, however long it takes": {endpoint, []step{
			{1, "fail", closed}, {2, "fail", closed}, {3, "ok", closed}, {4, "fail", closed},
			{9000, "fail", closed}, {90000, "fail", open}}},
		"a failed trial opens for the whole time again": {endpoint, []step{
			{1, "fail", closed}, {1, "fail", closed}, {1, "fail", open},
			{400, "fail", open}, {699.9, "refused", open}, {700, "ok", closed}}},
		"failures while open do not extend the time": {endpoint, []step{
			{1, "fail", closed}, {1, "fail", closed}, {1, "fail", open},
			{100, "probe-fail", open}, {200, "late-fail", open}, {300, "probe-fail", open}, {301, "ok", closed}}},
		"a success while open changes nothing": {endpoint, []step{
			{1, "fail", closed}, {1, "fail", closed}, {1, "fail", open},
			{2, "late-ok", open}, {3, "probe-ok", open}, {300.9, "refused", open}, {301, "", half}}},
		"half-open is decided by trials alone": {endpoint, []step{
			{1, "fail", closed}, {1, "fail", closed}, {1, "fail", open},
			{301, "late-fail", half}, {301, "late-ok", half}, {301, "probe-fail", half}, {301, "probe-ok", half}, {301, "ok", closed}}},
		"probes count while closed": {endpoint, []step{
			{1, "probe-fail", closed}, {2, "probe-fail", closed}, {3, "probe-ok", closed},
			{4, "probe-fail", closed}, {5, "fail", closed}, {6, "probe-fail", open}}},
		"an abandoned trial leaves it half-open": {endpoint, []step{
			{1, "fail", closed}, {1, "fail", closed}, {1, "fail", open},
			{301, "abandon", half}, {301, "ok", closed}}},
		"provider: five failures, 1800 s, two successes": {provider, []step{
			{1, "fail", closed}, {1, "fail", closed}, {1, "fail", closed}, {1, "fail", closed}, {1, "fail", open},
			{1800.9, "refused", open}, {1801, "ok", half}, {1802, "ok", closed}, {1803, "fail", closed}}},
		"provider: a failure after the first of two successes": {provider, []step{
			{1, "fail", closed}, {1, "fail", closed}, {1, "fail", closed}, {1, "fail", closed}, {1, "fail", open},
			{1801, "ok", half}, {1802, "fail", open}, {3601, "refused", open}, {3602, "ok", half}}},
		"vendor: one failure, 60 s, closes by itself": {vendor, []step{
			{1, "fail", open}, {60.9, "refused", open}, {61, "", closed}, {61, "fail", open}}},
	} {
		t.Run(name, func(t *testing.T) {
			b := breaker.New(tt.settings)
			early, ok := b.Acquire(start)
			require.True(t, ok)
			for i, s := range tt.steps {
				now := at(s.at)
				switch s.event {
				case "fail", "ok", "abandon":
					p, ok := b.Acquire(now)
					require.True(t, ok, "step %d: no permit", i)
					b.Done(&p, map[string]breaker.Result{"fail": breaker.Failure, "ok": breaker.Success}[s.event], now)
				case "refused":
					_, ok := b.Acquire(now)
					require.False(t, ok, "step %d: a permit", i)
				case "late-fail":
					b.Done(&early, breaker.Failure, now)
				case "late-ok":
					b.Done(&early, breaker.Success, now)
				case "probe-fail":
					b.Observe(breaker.Failure, now)
				case "probe-ok":
					b.Observe(breaker.Success, now)
				}
				require.Equal(t, s.state, b.State(now), "step %d, %s at %v", i, s.event, s.at)
			}
		})
	}
}

func TestHalfOpenAdmitsOneAtATime(t *testing.T) {
	b := breaker.New(breaker.Settings{Failures: 1, OpenFor: time.Second, Successes: 2})
	b.Observe(breaker.Failure, start)
	first, ok := b.Acquire(at(1))
	require.True(t, ok)
	_, ok = b.Acquire(at(1))
	require.False(t, ok, "two at a time")
	b.Done(&first, breaker.Abandoned, at(2))
	second, ok := b.Acquire(at(2))
	require.True(t, ok, "the slot did not come back")
	b.Done(&first, breaker.Failure, at(2))
	require.Equal(t, breaker.HalfOpen, b.State(at(2)), "a used permit decides again")
	b.Done(&second, breaker.Success, at(3))
	require.Equal(t, breaker.HalfOpen, b.State(at(3)))
}

// With Extend, each failure while the breaker is open starts the time anew, whoever reports it; nothing else does.
func TestExtend(t *testing.T) {
	for _, extend := range []bool{false, true} {
		b := breaker.New(breaker.Settings{Failures: 1, OpenFor: 10 * time.Second, Successes: 1, Extend: extend})
		late, ok := b.Acquire(at(0))
		require.True(t, ok)
		b.Observe(breaker.Failure, at(1))
		require.Equal(t, at(11), b.Deadline())
		until := func(seconds float64, what string) {
			t.Helper()
			if !extend {
				seconds = 11
			}
			assert.Equal(t, at(seconds), b.Deadline(), what)
		}
		b.Done(&late, breaker.Success, at(2))
		b.Observe(breaker.Success, at(2))
		b.Done(&late, breaker.Abandoned, at(2))
		b.Observe(breaker.Abandoned, at(2))
		until(11, "a success changes nothing")
		b.Done(&late, breaker.Failure, at(3))
		until(13, "a late failure")
		b.Done(&breaker.Permit{}, breaker.Failure, at(4))
		until(14, "a failure without a permit")
		b.Observe(breaker.Failure, at(5))
		until(15, "a failed probe")
		assert.Equal(t, breaker.HalfOpen, b.State(at(15)))
		b.Done(&late, breaker.Failure, at(16))
		b.Observe(breaker.Failure, at(16))
		assert.Equal(t, breaker.HalfOpen, b.State(at(16)), "half-open is decided by its trials")
		assert.Zero(t, b.Deadline())
		trial, ok := b.Acquire(at(16))
		require.True(t, ok)
		b.Done(&trial, breaker.Success, at(16))
		b.Done(&late, breaker.Failure, at(17))
		assert.Equal(t, breaker.Closed, b.State(at(17)), "a failure of yesterday")
		assert.Zero(t, b.Deadline())
	}
}

func TestBadSettings(t *testing.T) {
	good := breaker.Settings{Failures: 1, OpenFor: time.Second}
	require.NoError(t, good.Validate())
	for want, change := range map[string]func(*breaker.Settings){
		"Settings.Failures is 0":   func(s *breaker.Settings) { s.Failures = 0 },
		"Settings.OpenFor is 0s":   func(s *breaker.Settings) { s.OpenFor = 0 },
		"Settings.Successes is -1": func(s *breaker.Settings) { s.Successes = -1 },
		"Settings.Trials is -2":    func(s *breaker.Settings) { s.Trials = -2 },
	} {
		s := good
		change(&s)
		assert.ErrorContains(t, s.Validate(), want)
		assert.Panics(t, func() { breaker.New(s) })
	}
	assert.Equal(t, "half-open", fmt.Sprint(breaker.HalfOpen))
	assert.Equal(t, "State(9)", fmt.Sprint(breaker.State(9)))
}

// TestInvariants throws random requests, overlapping ones too, at random
// breakers. Whatever happens: an open breaker gives no permit, its deadline never
// moves while it is open, a half-open one never has more trials than it may, and
// a breaker that nobody asks anything of always lets somebody in again.
func TestInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		settings := breaker.Settings{
			Failures:  rapid.IntRange(1, 5).Draw(t, "failures"),
			OpenFor:   time.Duration(rapid.IntRange(1, 100).Draw(t, "open for")) * time.Second,
			Successes: rapid.IntRange(0, 3).Draw(t, "successes"),
			Trials:    rapid.IntRange(0, 3).Draw(t, "trials"),
		}
		b := breaker.New(settings)
		now := start
		type flight struct {
			permit breaker.Permit
			epoch  int // number of state changes before it
		}
		var (
			flying   []flight
			state    = b.State(now)
			deadline time.Time
			epoch    int
			trials   int
		)
		check := func() {
			next := b.State(now)
			if next == breaker.Open {
				if state == breaker.Open && !b.Deadline().Equal(deadline) {
					t.Fatalf("the deadline moved from %v to %v", deadline, b.Deadline())
				}
				deadline = b.Deadline()
				if deadline.After(now.Add(settings.OpenFor)) {
					t.Fatalf("open until %v at %v", deadline, now)
				}
			}
			if next != state {
				epoch++
				trials = 0
			}
			if f := b.Failures(); f < 0 || f >= settings.Failures {
				t.Fatalf("%d failures counted of %d", f, settings.Failures)
			}
			state = next
		}
		t.Repeat(map[string]func(*rapid.T){
			"": func(*rapid.T) { check() },
			"time": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(0, 120).Draw(t, "s")) * time.Second)
			},
			"acquire": func(t *rapid.T) {
				check()
				p, ok := b.Acquire(now)
				if ok && state == breaker.Open {
					t.Fatal("a permit of an open breaker")
				}
				if !ok && state == breaker.Closed {
					t.Fatal("no permit of a closed breaker")
				}
				if ok {
					flying = append(flying, flight{p, epoch})
					if state == breaker.HalfOpen {
						if trials++; trials > max(settings.Trials, 1) {
							t.Fatalf("%d trials at a time", trials)
						}
					}
				}
			},
			"done": func(t *rapid.T) {
				if len(flying) == 0 {
					t.Skip("nothing under way")
				}
				check()
				i := rapid.IntRange(0, len(flying)-1).Draw(t, "which")
				f := flying[i]
				flying = append(flying[:i], flying[i+1:]...)
				if state == breaker.HalfOpen && f.epoch == epoch {
					trials--
				}
				b.Done(&f.permit, breaker.Result(rapid.IntRange(0, 2).Draw(t, "result")), now)
			},
			"observe": func(t *rapid.T) {
				b.Observe(breaker.Result(rapid.IntRange(0, 2).Draw(t, "result")), now)
			},
		})
		for _, f := range flying {
			b.Done(&f.permit, breaker.Abandoned, now)
		}
		if !b.Ready(now.Add(settings.OpenFor)) {
			t.Fatalf("stuck: %v", b.State(now.Add(settings.OpenFor)))
		}
	})
}
