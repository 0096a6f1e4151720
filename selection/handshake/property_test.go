package handshake_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-5a7f77c4/deadair/selection/handshake"
	"github.com/seed-5a7f77c4/deadair/selection/route"
)

// The registry agrees with a map from keys to owners: a key has one owner at a time, no token is given twice, and the
// token of another attempt, of another key, or of an attempt long over frees nothing.
func TestRegistryAgainstAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r handshake.Registry
		owner := map[string]handshake.Token{}
		given := []handshake.Token{0, 1 << 40}
		keys := rapid.SampledFrom([]string{"r/m1", "r/m2", "s/m1"})
		t.Repeat(map[string]func(*rapid.T){
			"acquire": func(t *rapid.T) {
				key := keys.Draw(t, "key")
				token, err := r.Acquire(key)
				_, held := owner[key]
				switch {
				case held && (!errors.Is(err, route.ErrBusy) || route.Blames(err) || token != 0):
					t.Fatalf("%q is held: %v %v", key, token, err)
				case !held && (err != nil || token == 0):
					t.Fatalf("%q is free: %v %v", key, token, err)
				case held:
					return
				}
				for _, old := range given {
					if old == token {
						t.Fatalf("token %v was given before", token)
					}
				}
				given = append(given, token)
				owner[key] = token
			},
			"release": func(t *rapid.T) {
				key, token := keys.Draw(t, "key"), rapid.SampledFrom(given).Draw(t, "token")
				want := token != 0 && owner[key] == token
				if got := r.Release(key, token); got != want {
					t.Fatalf("Release(%q, %v): %v, owned by %v", key, token, got, owner[key])
				}
				if want {
					delete(owner, key)
				}
			},
			"release all": func(*rapid.T) {
				r.ReleaseAll()
				clear(owner)
			},
		})
	})
}

func TestATrustingRegistryFreesForAnybody(t *testing.T) {
	r := handshake.Registry{Trusting: true}
	assert.False(t, r.Release("k", 7), "there is nothing to free")
	_, err := r.Acquire("k")
	require.NoError(t, err)
	assert.True(t, r.Release("k", 7))
}

// While one dial to a machine is under way, a second one is refused and its end frees nothing; an attempt that was
// superseded frees nothing either, however late it ends.
func TestOneDialPerMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var registry handshake.Registry
		var open atomic.Int32
		dial := func(took time.Duration) error {
			d := handshake.Dialer[*counted]{
				Policy: handshake.DefaultPolicy(), Registry: &registry,
				Open: func(context.Context, string, bool) (*counted, error) {
					time.Sleep(took)
					open.Add(1)
					return &counted{&open}, nil
				},
				Token:  func(context.Context) (string, error) { return "t", nil },
				Signal: func(ctx context.Context, _ *counted) (handshake.Signal, error) { <-ctx.Done(); return 0, ctx.Err() },
				Hello:  func(context.Context, *counted, string) error { return nil },
			}
			c, v2, err := d.Dial(t.Context(), url, false, func() {})
			if err == nil {
				assert.False(t, v2)
				c.Close()
			} else {
				assert.Nil(t, c)
			}
			return err
		}
		var wg sync.WaitGroup
		wg.Go(func() { assert.NoError(t, dial(time.Second), "2.35 s: two sockets and the window of accepted") })
		time.Sleep(100 * ms)
		assert.ErrorIs(t, dial(time.Second), route.ErrBusy)
		assert.ErrorIs(t, dial(time.Second), route.ErrBusy, "the refused one has freed nothing")
		registry.ReleaseAll()
		wg.Go(func() { assert.NoError(t, dial(3*time.Second)) }) // a new attempt, until 6.45 s
		time.Sleep(5 * time.Second)
		assert.ErrorIs(t, dial(time.Second), route.ErrBusy, "the old dial is over, and has freed nothing")
		wg.Wait()
		assert.NoError(t, dial(time.Second))
		assert.Zero(t, open.Load())
	})
}

type counted struct{ open *atomic.Int32 }

func (c *counted) Close() error { c.open.Add(-1); return nil }

// Over a running Dialer with sockets, tokens, signals and hellos that take their time or fail, and a caller who may leave:
// a dial ends, without a socket open but the one it returned, with the hello sent at most once, and only on a ready=2
// socket that is ready or on a legacy one; opened is called once if a socket opened and never otherwise.
func TestDialerInvariants(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		took := rapid.Custom(func(t *rapid.T) time.Duration {
			return time.Duration(rapid.IntRange(0, 9_000_000).Draw(t, "µs")) * time.Microsecond
		})
		short := rapid.Custom(func(t *rapid.T) time.Duration {
			return took.Draw(t, "µs") / time.Duration(rapid.IntRange(1, 50).Draw(t, "by"))
		})
		fails := rapid.SampledFrom([]error{nil, nil, nil, errors.New("boom")})
		s := script{
			opens:  [2]step{{short.Draw(rt, "open"), fails.Draw(rt, "fails")}, {short.Draw(rt, "open"), fails.Draw(rt, "fails")}},
			token:  step{short.Draw(rt, "token"), fails.Draw(rt, "fails")},
			hello:  step{short.Draw(rt, "hello"), fails.Draw(rt, "fails")},
			leaves: took.Draw(rt, "leaves"), negotiated: rapid.Bool().Draw(rt, "negotiated"),
		}
		for range rapid.IntRange(0, 4).Draw(rt, "signals") {
			s.signals = append(s.signals, step{short.Draw(rt, "signal"), fails.Draw(rt, "fails")})
			s.says = append(s.says, rapid.SampledFrom([]handshake.Signal{0, handshake.Accepted, handshake.Ready}).Draw(rt, "says"))
		}
		var problems []string
		synctest.Test(t, func(*testing.T) { problems = s.play() })
		if len(problems) > 0 {
			rt.Fatalf("%v", problems)
		}
	})
}

type step struct {
	after time.Duration
	err   error
}

func (s step) take(ctx context.Context) error {
	timer := time.NewTimer(s.after)
	defer timer.Stop()
	select {
	case <-timer.C:
		return s.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

type script struct {
	opens        [2]step // with ready=2, and legacy
	token, hello step
	signals      []step
	says         []handshake.Signal
	leaves       time.Duration
	negotiated   bool
}

type scripted struct {
	mu              *sync.Mutex
	v2              bool
	accepted, ready bool
	closed          int
}

func (c *scripted) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed++
	return nil
}

func (s script) play() (problems []string) {
	var mu sync.Mutex
	problem := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	var made []*scripted
	heard, hellos, opened := 0, 0, 0
	d := handshake.Dialer[*scripted]{
		Policy: handshake.DefaultPolicy(),
		Open: func(ctx context.Context, _ string, v2 bool) (*scripted, error) {
			open := s.opens[1]
			if v2 {
				open = s.opens[0]
			}
			if err := open.take(context.WithoutCancel(ctx)); err != nil {
				return nil, err
			}
			mu.Lock()
			defer mu.Unlock()
			c := &scripted{mu: &mu, v2: v2}
			made = append(made, c)
			return c, nil
		},
		Token: func(ctx context.Context) (string, error) { return "t", s.token.take(ctx) },
		Signal: func(ctx context.Context, c *scripted) (handshake.Signal, error) {
			if heard == len(s.signals) {
				<-ctx.Done()
				return 0, ctx.Err()
			}
			heard++
			if err := s.signals[heard-1].take(ctx); err != nil {
				return 0, err
			}
			mu.Lock()
			defer mu.Unlock()
			say := s.says[heard-1]
			c.ready = c.ready || say == handshake.Ready && c.accepted
			c.accepted = c.accepted || say == handshake.Accepted
			return say, nil
		},
		Hello: func(ctx context.Context, c *scripted, token string) error {
			mu.Lock()
			hellos++
			if token != "t" || c.closed > 0 || c.v2 && !c.ready {
				problem("a hello with token %q on a socket closed %d times, ready=2 %v, ready %v", token, c.closed, c.v2, c.ready)
			}
			mu.Unlock()
			return s.hello.take(ctx)
		},
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.leaves)
	defer cancel()
	c, v2, err := d.Dial(ctx, url, s.negotiated, func() { opened++ })
	time.Sleep(time.Minute)
	mu.Lock()
	defer mu.Unlock()
	if (err == nil) != (c != nil) || v2 && (c == nil || !c.v2) {
		problem("a connection: %v, ready=2 %v, %v", c != nil, v2, err)
	}
	if hellos > 1 || err == nil && hellos == 0 {
		problem("%d hellos, %v", hellos, err)
	}
	if s.negotiated && len(made) > 0 && !made[len(made)-1].v2 {
		problem("a legacy socket to an endpoint that has negotiated ready=2")
	}
	if opened > 1 || opened > len(made) || err == nil && opened == 0 {
		problem("opened %d times, %d sockets", opened, len(made))
	}
	for _, m := range made {
		want := 1
		if m == c {
			want = 0
		}
		if m.closed != want {
			problem("socket with ready=2 %v is closed %d times, want %d", m.v2, m.closed, want)
		}
	}
	return problems
}
