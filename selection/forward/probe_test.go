package forward

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/selection/choice"
	"github.com/seed-5a7f77c4/deadair/selection/pick"
)

// probing makes the first proxy asked report after 30 s; the others do as the test says.
func probing(others func(ctx context.Context) error) func(*rig) {
	return func(r *rig) {
		r.policy.Probe = true
		first := ""
		r.net.forward = func(ctx context.Context, server string, _ Session) error {
			if first == "" {
				first = server
			}
			if server == first {
				return after(ctx, 30*time.Second, reported)
			}
			return others(ctx)
		}
	}
}

func TestProbeKeepsTheWinner(t *testing.T) {
	inBubble(t, "abcde", probing(func(ctx context.Context) error { return after(ctx, time.Second, nil) }), func(t *testing.T, r *rig) {
		res, err := r.Do(t.Context(), request())
		require.Error(t, err)
		bad := res.Proxy
		time.Sleep(2 * time.Second)
		res, err = r.Do(t.Context(), request())
		require.NoError(t, err)
		assert.NotEqual(t, bad, res.Proxy)
		assert.Equal(t, 33*time.Second, r.elapsed())
		assert.Equal(t, res.Proxy, r.proxy())
		e, _ := r.Choice(key)
		assert.False(t, e.Streak.Running())
	})
}

func TestProbeTellsAtMostOneMoreProxy(t *testing.T) {
	slow := probing(func(ctx context.Context) error { return after(ctx, 2*time.Second, reported) })
	setUp := func(r *rig) {
		slow(r)
		r.policy.Choice.Counter = choice.After(5 * choice.FailureInterval)
	}
	inBubble(t, "abcde", setUp, func(t *testing.T, r *rig) {
		for {
			_, err := r.Do(t.Context(), request())
			require.ErrorIs(t, err, reported)
			if r.proxy() == "" {
				break
			}
		}
		asked := map[string]bool{}
		for _, what := range r.net.took() {
			if what[:7] == "forward" {
				asked[what[8:]] = true
			}
		}
		assert.Len(t, asked, 2)
	})
}

func TestTheErrorOfTheChoiceIsTheRaces(t *testing.T) {
	other := &Error{Origin: Proxy, Code: Network}
	for name, wait := range map[string]time.Duration{"second fails first": time.Second, "second fails last": 40 * time.Second} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, "ab", probing(func(ctx context.Context) error { return after(ctx, wait, other) }), func(t *testing.T, r *rig) {
				first, err := r.Do(t.Context(), request())
				require.ErrorIs(t, err, reported)
				res, err := r.Do(t.Context(), request())
				require.ErrorIs(t, err, reported)
				assert.Equal(t, first.Proxy, res.Proxy)
			})
		})
	}
}

func TestALateWinOfTheSecondCounts(t *testing.T) {
	late := probing(func(ctx context.Context) error { return after(ctx, 40*time.Second, nil) })
	for name, interval := range map[string]time.Duration{"choice forgotten": 0, "choice in force": time.Hour} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, "ab", func(r *rig) {
				late(r)
				r.policy.Choice.Counter = choice.After(interval)
			}, func(t *testing.T, r *rig) {
				first, err := r.Do(t.Context(), request())
				require.Error(t, err)
				res, err := r.Do(t.Context(), request())
				require.NoError(t, err)
				assert.NotEqual(t, first.Proxy, res.Proxy)
				assert.Equal(t, 70*time.Second, r.elapsed())
				if interval > 0 {
					assert.Equal(t, res.Proxy, r.proxy())
				} else {
					assert.Empty(t, r.proxy(), "a forgotten choice has no place to take")
				}
			})
		})
	}
}

func TestALateWinOfTheChoiceKeepsIt(t *testing.T) {
	inBubble(t, "ab", func(r *rig) {
		r.policy.Probe = true
		first := ""
		n := 0
		r.net.forward = func(ctx context.Context, server string, _ Session) error {
			if first == "" {
				first = server
			}
			switch {
			case server != first:
				return after(ctx, time.Second, reported)
			case n == 0:
				n++
				return reported
			}
			return after(ctx, 5*time.Second, nil)
		}
	}, func(t *testing.T, r *rig) {
		first, err := r.Do(t.Context(), request())
		require.Error(t, err)
		res, err := r.Do(t.Context(), request())
		require.NoError(t, err)
		assert.Equal(t, first.Proxy, res.Proxy)
		assert.Equal(t, first.Proxy, r.proxy())
	})
}

func TestOnlyTheChoiceInForceIsProbed(t *testing.T) {
	inBubble(t, "ab", func(r *rig) {
		r.policy.Probe = true
		r.net.forward = func(context.Context, string, Session) error { return reported }
	}, func(t *testing.T, r *rig) {
		_, err := r.Do(t.Context(), request())
		require.Error(t, err)
		e, ok := r.Choice(key)
		require.True(t, ok)
		require.True(t, e.Streak.Running())
		older := e.Choice
		older.Generation--
		_, ok = r.probe(r.config, request(), key, older)
		assert.False(t, ok, "the streak is another choice's")
		_, ok = r.probe(r.config, request(), key, e.Choice)
		assert.True(t, ok)
	})
}

func TestNoProbeWithoutAnotherOrWithoutAStreak(t *testing.T) {
	inBubble(t, "a", probing(nil), func(t *testing.T, r *rig) {
		for range 2 {
			_, err := r.Do(t.Context(), request())
			require.ErrorIs(t, err, reported)
		}
		assert.Equal(t, []string{"connect a", "session a", "forward a", "forward a"}, r.net.took())
	})
	inBubble(t, "ab", func(r *rig) { r.policy.Probe = true }, func(t *testing.T, r *rig) {
		for range 3 {
			_, err := r.Do(t.Context(), request())
			require.NoError(t, err)
		}
		p := r.proxy()
		assert.Equal(t, []string{"connect " + p, "session " + p, "forward " + p, "forward " + p, "forward " + p}, r.net.took())
	})
	inBubble(t, "ab", func(r *rig) {
		r.net.forward = func(context.Context, string, Session) error { return reported }
	}, func(t *testing.T, r *rig) {
		for range 3 {
			_, err := r.Do(t.Context(), request())
			require.Error(t, err)
		}
		assert.Len(t, r.net.took(), 5, "probed although the policy does not want it")
	})
}

func TestProbeWithTheChoiceLeftAlone(t *testing.T) {
	inBubble(t, "ab", probing(nil), func(t *testing.T, r *rig) {
		_, err := r.Do(t.Context(), request())
		require.Error(t, err)
		r.config.Servers = []pick.Server{server(r.proxy())}
		r.net.took()
		_, err = r.Do(t.Context(), request())
		require.Error(t, err)
		assert.Equal(t, []string{"forward " + r.config.Servers[0].Name}, r.net.took())
	})
}
