package handshake_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/selection/handshake"
	"github.com/seed-5a7f77c4/deadair/selection/route"
)

const (
	ms  = time.Millisecond
	url = "wss://relay.example/tunnel/m1"
)

func TestMachineKey(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{url, "relay.example/m1"},
		{" WSS://Relay.example:443/a/b/M1?ready=2#x ", "relay.example:443/M1"},
		{"wss://relay.example/m1/", "relay.example/m1"},
		{"wss://relay.example", "relay.example/"},
	} {
		assert.Equal(t, tc.want, handshake.MachineKey(tc.in))
	}
}

func TestRegistry(t *testing.T) {
	var r handshake.Registry
	first, err := r.Acquire("k")
	require.NoError(t, err)
	_, err = r.Acquire("k")
	require.ErrorIs(t, err, route.ErrBusy)
	r.ReleaseAll()
	second, err := r.Acquire("k")
	require.NoError(t, err)
	assert.False(t, r.Release("k", first), "a late release frees nothing")
	_, err = r.Acquire("k")
	assert.Error(t, err)
	assert.True(t, r.Release("k", second))
	assert.False(t, r.Release("k", second))
}

// relay plays one relay: after is when each socket says what, counted from its opening.
type relay struct {
	says   []say
	old    bool // knows no ready=2: silent on it, answers hellos on legacy sockets
	token  time.Duration
	opens  []bool
	open   int
	hellos []time.Duration
	began  time.Time
}

type say struct {
	after  time.Duration
	signal handshake.Signal
}

type socket struct {
	r    *relay
	v2   bool
	at   time.Time
	next int
}

func (s *socket) Close() error { s.r.open--; return nil }

func (r *relay) dial(ctx context.Context, p handshake.Policy, negotiated bool) (bool, error) {
	r.began = time.Now()
	d := handshake.Dialer[*socket]{
		Policy: p,
		Open: func(_ context.Context, _ string, v2 bool) (*socket, error) {
			time.Sleep(100 * ms)
			r.opens = append(r.opens, v2)
			r.open++
			return &socket{r: r, v2: v2, at: time.Now()}, nil
		},
		Token: func(context.Context) (string, error) { time.Sleep(r.token); return "t", nil },
		Signal: func(ctx context.Context, s *socket) (handshake.Signal, error) {
			if s.next == len(r.says) || r.old {
				<-ctx.Done()
				return 0, ctx.Err()
			}
			say := r.says[s.next]
			s.next++
			time.Sleep(time.Until(s.at.Add(say.after)))
			return say.signal, nil
		},
		Hello: func(context.Context, *socket, string) error {
			r.hellos = append(r.hellos, time.Since(r.began))
			return nil
		},
	}
	s, v2, err := d.Dial(ctx, url, negotiated, func() {})
	if err == nil {
		s.Close()
	}
	return v2, err
}

func TestHandshakes(t *testing.T) {
	a, rdy := handshake.Accepted, handshake.Ready
	changed := func(f func(*handshake.Policy)) handshake.Policy {
		p := handshake.DefaultPolicy()
		f(&p)
		return p
	}
	for _, tc := range []struct {
		name       string
		relay      relay
		policy     handshake.Policy
		negotiated bool
		opens      []bool
		hello      time.Duration // 0: none
		fails      handshake.Phase
		at         time.Duration
	}{
		{"cold", relay{says: []say{{100 * ms, a}, {4000 * ms, rdy}}, token: 2 * time.Second}, handshake.DefaultPolicy(), false,
			[]bool{true}, 4100 * ms, 0, 4100 * ms},
		{"token last", relay{says: []say{{0, a}, {ms, rdy}}, token: 2 * time.Second}, handshake.DefaultPolicy(), false,
			[]bool{true}, 2000 * ms, 0, 2000 * ms},
		{"token after open", relay{says: []say{{0, a}, {ms, rdy}}, token: 2 * time.Second},
			changed(func(p *handshake.Policy) { p.TokenWithOpen = false }), false, []bool{true}, 2101 * ms, 0, 2101 * ms},
		{"never ready", relay{says: []say{{100 * ms, a}}}, handshake.DefaultPolicy(), false, []bool{true}, 0, handshake.AwaitingReady, 7200 * ms},
		{"ready before accepted is ignored", relay{says: []say{{0, rdy}, {100 * ms, a}}}, handshake.DefaultPolicy(), false,
			[]bool{true}, 0, handshake.AwaitingReady, 7200 * ms},
		{"other messages are nothing", relay{says: []say{{0, 0}, {1, a}, {2, 0}, {3, rdy}}}, handshake.DefaultPolicy(), false,
			[]bool{true}, 100*ms + 3, 0, 100*ms + 3},
		{"old relay", relay{old: true}, handshake.DefaultPolicy(), false, []bool{true, false}, 550 * ms, 0, 550 * ms},
		{"old relay, had v2 once", relay{old: true}, handshake.DefaultPolicy(), true, []bool{true}, 0, handshake.AwaitingAccepted, 450 * ms},
		{"accepted does not extend", relay{says: []say{{100 * ms, a}, {4000 * ms, rdy}}},
			changed(func(p *handshake.Policy) { p.Extends = false }), false, []bool{true}, 0, handshake.AwaitingReady, 450 * ms},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := tc.relay
				v2, err := r.dial(t.Context(), tc.policy, tc.negotiated)
				assert.Equal(t, tc.at, time.Since(r.began))
				assert.Equal(t, tc.opens, r.opens)
				if tc.hello == 0 {
					var timeout *handshake.TimeoutError
					require.ErrorAs(t, err, &timeout)
					assert.Equal(t, tc.fails, timeout.Phase)
					assert.ErrorIs(t, err, os.ErrDeadlineExceeded)
					assert.True(t, route.Blames(err))
				} else {
					require.NoError(t, err)
					assert.Equal(t, []time.Duration{tc.hello}, r.hellos)
					assert.Equal(t, len(tc.opens) == 1, v2)
				}
				synctest.Wait()
				assert.Zero(t, r.open, "sockets left open")
				time.Sleep(10 * time.Second)
			})
		})
	}
}

func TestAnAccountWithoutTokenIsNotTheRoute(t *testing.T) {
	m := handshake.NewMachine(handshake.DefaultPolicy(), false)
	m.Start(time.Now())
	m.Token(route.ErrAccount)
	over, _, err := m.Result()
	assert.True(t, over)
	assert.False(t, route.Blames(err))
}

func TestASocketThatOpensAfterTheEndIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &relay{}
		ctx, cancel := context.WithTimeoutCause(t.Context(), 50*ms, errors.New("enough"))
		defer cancel()
		_, err := r.dial(ctx, handshake.DefaultPolicy(), false)
		require.ErrorContains(t, err, "enough")
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Equal(t, []bool{true}, r.opens)
		assert.Zero(t, r.open)
	})
}
