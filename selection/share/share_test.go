package share_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-5a7f77c4/deadair/clock"
	"github.com/seed-5a7f77c4/deadair/selection/share"
)

type group = share.Group[string, string]

var errRefused = errors.New("refused")

// maker makes a thing, or fails, after a while, and counts.
type maker struct {
	mu    sync.Mutex
	made  int
	takes time.Duration
	fails bool
}

func (m *maker) create(ctx context.Context, a share.Attempt) (string, error) {
	m.mu.Lock()
	m.made++
	takes, fails := m.takes, m.fails
	m.mu.Unlock()
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		return "", ctx.Err()
	}
	if fails {
		return "", errRefused
	}
	return fmt.Sprintf("thing %d", a), nil
}

func (m *maker) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.made
}

// get is a request that is on its way.
type got struct {
	share.Got[string]
	err  error
	took time.Duration
}

func get(g *group, ctx context.Context, limit time.Duration, m *maker) <-chan got {
	c := make(chan got, 1)
	start := time.Now()
	go func() {
		v, err := g.Get(ctx, "k", limit, m.create)
		c <- got{v, err, time.Since(start)}
	}()
	synctest.Wait()
	return c
}

func newGroup() *group { return share.NewGroup[string, string](share.For(3*time.Second), clock.System) }

func TestOneMakesTheOthersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, m := newGroup(), &maker{takes: time.Second}
		first := get(g, t.Context(), time.Minute, m)
		second := get(g, t.Context(), time.Minute, m)
		a, b := <-first, <-second
		require.Equal(t, share.Made, a.How)
		require.Equal(t, share.Shared, b.How)
		require.Equal(t, a.Value, b.Value)
		c := <-get(g, t.Context(), time.Minute, m)
		require.Equal(t, share.Stored, c.How)
		require.Zero(t, c.took)
		require.Equal(t, 1, m.count())
		v, ok := g.Peek("k")
		require.True(t, ok)
		require.Equal(t, a.Value, v.Value)
	})
}

func TestAnErrorIsStoredForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, m := newGroup(), &maker{takes: time.Second, fails: true}
		first := get(g, t.Context(), time.Minute, m)
		second := get(g, t.Context(), time.Minute, m)
		require.ErrorIs(t, (<-first).err, errRefused)
		require.ErrorIs(t, (<-second).err, errRefused)
		time.Sleep(3*time.Second - 1)
		stored := <-get(g, t.Context(), time.Minute, m)
		require.ErrorIs(t, stored.err, errRefused)
		require.Equal(t, share.Stored, stored.How)
		require.Zero(t, stored.took, "at once")
		require.Equal(t, 1, m.count())
		time.Sleep(1)
		again := <-get(g, t.Context(), time.Minute, m)
		require.Equal(t, share.Made, again.How, "three seconds are over")
		require.Equal(t, 2, m.count())
	})
}

func TestAWaitersOwnLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, m := newGroup(), &maker{takes: 20 * time.Second}
		first := get(g, t.Context(), 45*time.Second, m)
		w := <-get(g, t.Context(), 15*time.Second, m)
		require.Equal(t, share.WaitedOut, w.How)
		require.ErrorIs(t, w.err, context.DeadlineExceeded)
		require.Equal(t, 15*time.Second, w.took)
		require.NoError(t, (<-first).err, "the attempt went on")
	})
}

func TestACancelledMakerLeavesNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, m := newGroup(), &maker{takes: 10 * time.Second}
		ctx, cancel := context.WithCancel(t.Context())
		first := get(g, ctx, time.Minute, m)
		second := get(g, t.Context(), time.Minute, m)
		third := get(g, t.Context(), time.Minute, m)
		time.Sleep(5 * time.Second)
		cancel()
		a := <-first
		require.Equal(t, share.Cancelled, a.How)
		require.ErrorIs(t, a.err, context.Canceled)
		b, c := <-second, <-third
		require.NoError(t, b.err)
		require.Equal(t, share.Made, b.How, "who waited longest made it anew")
		require.Equal(t, share.Shared, c.How)
		require.Equal(t, 15*time.Second, b.took)
		require.Equal(t, 2, m.count())

		gone, cancel2 := context.WithCancel(t.Context())
		cancel2()
		require.Equal(t, share.Cancelled, (<-get(g, gone, time.Minute, m)).How)
	})
}

func TestTheZeroPolicyStoresNoError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, m := share.NewGroup[string, string](share.Policy{}, clock.System), &maker{fails: true}
		for range 2 {
			require.Equal(t, share.Made, (<-get(g, t.Context(), time.Minute, m)).How)
		}
		require.Equal(t, 2, m.count())
	})
}

// The rule can be switched off: then everybody who waits fails with the maker.
func TestACancelledMakerFailsAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		policy := share.For(3 * time.Second)
		policy.Cancelled = share.FailAll
		g, m := share.NewGroup[string, string](policy, clock.System), &maker{takes: 10 * time.Second}
		ctx, cancel := context.WithCancel(t.Context())
		first := get(g, ctx, time.Minute, m)
		second := get(g, t.Context(), time.Minute, m)
		cancel()
		require.Equal(t, share.Cancelled, (<-first).How)
		b := <-second
		require.Equal(t, share.Shared, b.How)
		require.ErrorIs(t, b.err, context.Canceled)
		require.NoError(t, (<-get(g, t.Context(), time.Minute, m)).err, "nothing is stored")
	})
}

func TestACancelledLonerLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, m := newGroup(), &maker{takes: 10 * time.Second}
		ctx, cancel := context.WithCancel(t.Context())
		first := get(g, ctx, time.Minute, m)
		cancel()
		<-first
		_, ok := g.Peek("k")
		require.False(t, ok)
		require.NoError(t, (<-get(g, t.Context(), time.Minute, m)).err, "no stored error of a cancellation")
	})
}

func TestARemovalHitsItsOwnAttemptOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, m := newGroup(), &maker{}
		a := <-get(g, t.Context(), time.Minute, m)
		require.True(t, g.Remove("k", a.Attempt))
		require.False(t, g.Remove("k", a.Attempt), "gone already")
		b := <-get(g, t.Context(), time.Minute, m)
		require.NotEqual(t, a.Attempt, b.Attempt)
		require.False(t, g.Remove("k", a.Attempt), "a late removal")
		require.Equal(t, share.Stored, (<-get(g, t.Context(), time.Minute, m)).How)
		require.Equal(t, []string{b.Value}, g.Clear())
		require.Empty(t, g.Clear())
	})
}

func TestPersistForEverAndNotAtAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for keep, attempts := range map[time.Duration]int{-1: 1, 0: 2} {
			g, m := share.NewGroup[string, string](share.For(keep), clock.System), &maker{fails: true}
			<-get(g, t.Context(), time.Minute, m)
			time.Sleep(time.Hour)
			require.ErrorIs(t, (<-get(g, t.Context(), time.Minute, m)).err, errRefused)
			require.Equal(t, attempts, m.count(), "stored for %v", keep)
		}
	})
}

func TestAPanicIsNobodysWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, m := newGroup(), &maker{}
		release := make(chan struct{})
		paniced := make(chan any, 1)
		go func() {
			defer func() { paniced <- recover() }()
			g.Get(t.Context(), "k", time.Minute, func(context.Context, share.Attempt) (string, error) {
				<-release
				panic("no")
			})
		}()
		synctest.Wait()
		waiter := get(g, t.Context(), time.Minute, m)
		close(release)
		require.Equal(t, "no", <-paniced)
		require.NoError(t, (<-waiter).err)
	})
}

// Whoever cancels, waits out or fails: every request ends, within its limit, and
// what was made is made by one at a time.
func TestEveryRequestEnds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		type request struct{ after, limit, cancel time.Duration }
		second := func(name string, most int) time.Duration {
			return time.Duration(rapid.IntRange(1, most).Draw(rt, name)) * time.Second
		}
		requests := make([]request, rapid.IntRange(1, 12).Draw(rt, "requests"))
		for i := range requests {
			requests[i] = request{second("after", 10), second("limit", 20), second("cancel", 60)}
		}
		takes, fails := second("takes", 15), rapid.Bool().Draw(rt, "fails")
		synctest.Test(t, func(t *testing.T) {
			g := newGroup()
			var mu sync.Mutex
			making, most := 0, 0
			create := func(ctx context.Context, a share.Attempt) (string, error) {
				mu.Lock()
				making++
				most = max(most, making)
				mu.Unlock()
				defer func() {
					mu.Lock()
					making--
					mu.Unlock()
				}()
				return (&maker{takes: takes, fails: fails}).create(ctx, a)
			}
			var wg sync.WaitGroup
			for _, r := range requests {
				wg.Go(func() {
					time.Sleep(r.after)
					ctx, cancel := context.WithTimeout(t.Context(), r.cancel)
					defer cancel()
					start := time.Now()
					v, err := g.Get(ctx, "k", r.limit, create)
					if took := time.Since(start); took > 2*r.limit {
						t.Errorf("a limit of %v took %v", r.limit, took)
					}
					if (err == nil) != (v.Value != "") {
						t.Errorf("%q with the error %v", v.Value, err)
					}
				})
			}
			wg.Wait()
			if most > 1 {
				t.Errorf("%d attempts at once", most)
			}
		})
	})
}
