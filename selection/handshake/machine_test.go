package handshake_test

import (
	"context"
	"errors"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/selection/handshake"
)

var (
	start = time.Date(2026, 5, 4, 9, 0, 0, 0, time.UTC)
	boom  = errors.New("boom")
)

func at(d time.Duration) time.Time { return start.Add(d) }

// ready gives a handshake whose hello is under way, on a ready=2 socket.
func ready(t *testing.T) *handshake.Machine {
	m := handshake.NewMachine(handshake.DefaultPolicy(), false)
	assert.Equal(t, []handshake.Op{handshake.FetchToken, handshake.OpenV2}, m.Start(start))
	m.Token(nil)
	m.Opened(start)
	m.Heard(start, handshake.Accepted)
	require.Equal(t, []handshake.Op{handshake.SendHello}, m.Heard(start, handshake.Ready))
	return m
}

func TestDeadlines(t *testing.T) {
	m := handshake.NewMachine(handshake.DefaultPolicy(), false)
	m.Start(start)
	wake := func() time.Duration {
		w, ok := m.Wake()
		require.True(t, ok)
		return w.Sub(start)
	}
	assert.Equal(t, handshake.OpenWindow, wake())
	assert.False(t, m.Listening())
	assert.Empty(t, m.Heard(at(ms), handshake.Accepted), "there is no socket yet")
	m.Opened(at(time.Second))
	assert.Equal(t, time.Second+handshake.AcceptedWindow, wake())
	assert.True(t, m.Listening())
	m.Opened(at(1100 * ms))
	assert.Equal(t, time.Second+handshake.AcceptedWindow, wake(), "a socket opens once")
	m.Heard(at(1200*ms), handshake.Accepted)
	assert.Equal(t, 1200*ms+handshake.ReadyWindow, wake(), "ready counts from accepted")
	m.Heard(at(1300*ms), handshake.Accepted)
	assert.Equal(t, 1200*ms+handshake.ReadyWindow, wake(), "the first accepted counts")
	assert.Empty(t, m.Tick(at(1200*ms+handshake.ReadyWindow-1)))
	assert.Empty(t, m.Heard(at(2*time.Second), handshake.Ready), "the token is missing")
	assert.False(t, m.Listening())
	_, waits := m.Wake()
	assert.False(t, waits, "the token has the caller's time")
	assert.Empty(t, m.Tick(at(time.Hour)))
	assert.Equal(t, []handshake.Op{handshake.SendHello}, m.Token(nil))
	assert.Empty(t, m.Token(nil), "one hello")
	over, _, _ := m.Result()
	assert.False(t, over)
}

// What comes after the end changes nothing; a greeting that nobody sent is none.
func TestTheEndIsTheEnd(t *testing.T) {
	m := ready(t)
	m.Greeted(nil)
	m.Broken(boom)
	m.Token(boom)
	m.Greeted(boom)
	over, v2, err := m.Result()
	assert.True(t, over)
	assert.True(t, v2)
	assert.NoError(t, err)

	m = ready(t)
	m.Greeted(boom)
	m.Broken(errors.New("again"))
	m.Greeted(nil)
	over, v2, err = m.Result()
	assert.True(t, over)
	assert.False(t, v2)
	assert.Equal(t, boom, err)

	m = handshake.NewMachine(handshake.DefaultPolicy(), false)
	m.Start(start)
	m.Greeted(nil)
	over, _, _ = m.Result()
	assert.False(t, over)
}

// Out of order, when the rule is off, a ready alone will do.
func TestReadyOutOfOrder(t *testing.T) {
	p := handshake.DefaultPolicy()
	p.InOrder = false
	m := handshake.NewMachine(p, false)
	m.Start(start)
	m.Token(nil)
	assert.Empty(t, m.Heard(start, handshake.Ready), "there is no socket yet")
	m.Opened(start)
	assert.Equal(t, []handshake.Op{handshake.SendHello}, m.Heard(start, handshake.Ready))
}

func TestTimeoutError(t *testing.T) {
	var err error = &handshake.TimeoutError{Phase: handshake.AwaitingReady}
	assert.EqualError(t, err, "handshake: timed out waiting for ready")
	assert.ErrorIs(t, err, os.ErrDeadlineExceeded)
	var n net.Error
	require.ErrorAs(t, err, &n)
	assert.True(t, n.Timeout())
	var temporary interface{ Temporary() bool }
	require.ErrorAs(t, err, &temporary)
	assert.False(t, temporary.Temporary())
}

// fixed is a Dialer whose functions do what they are told.
type fixed struct {
	open   func(ctx context.Context, v2 bool) error
	token  error
	signal func(n int) (handshake.Signal, error)
	hello  error
	opens  []bool
	opened []time.Duration
	live   atomic.Int32
}

func (f *fixed) Close() error { f.live.Add(-1); return nil }

func (f *fixed) dial(t *testing.T, negotiated bool) (took time.Duration, err error) {
	heard := 0
	began := time.Now()
	d := handshake.Dialer[*fixed]{
		Policy: handshake.DefaultPolicy(),
		Open: func(ctx context.Context, _ string, v2 bool) (*fixed, error) {
			f.opens = append(f.opens, v2)
			if err := f.open(ctx, v2); err != nil {
				return nil, err
			}
			f.live.Add(1)
			return f, nil
		},
		Token: func(context.Context) (string, error) { return "t", f.token },
		Signal: func(ctx context.Context, _ *fixed) (handshake.Signal, error) {
			heard++
			if s, err := f.signal(heard); s != 0 || err != nil {
				return s, err
			}
			<-ctx.Done()
			return 0, ctx.Err()
		},
		Hello: func(context.Context, *fixed, string) error { return f.hello },
	}
	c, v2, err := d.Dial(t.Context(), url, negotiated, func() { f.opened = append(f.opened, time.Since(began)) })
	took = time.Since(began)
	synctest.Wait()
	if err != nil {
		assert.Nil(t, c, "what failed is not handed out")
		assert.False(t, v2)
		assert.Zero(t, f.live.Load())
	}
	return took, err
}

func TestDialerEnds(t *testing.T) {
	after := func(d time.Duration) func(context.Context, bool) error {
		return func(context.Context, bool) error { time.Sleep(d); return nil }
	}
	never := func(ctx context.Context, _ bool) error { <-ctx.Done(); return ctx.Err() }
	silent := func(int) (handshake.Signal, error) { return 0, nil }
	inOrder := func(n int) (handshake.Signal, error) {
		return []handshake.Signal{handshake.Accepted, handshake.Ready}[n-1], nil
	}
	for _, tc := range []*struct {
		name   string
		fixed  fixed
		had    bool // ready=2 negotiated before
		took   time.Duration
		err    error // nil: connected
		opens  []bool
		opened []time.Duration
	}{
		{"connected", fixed{open: after(time.Second), signal: inOrder}, false, time.Second, nil, []bool{true}, []time.Duration{time.Second}},
		{"the socket never opens: no legacy redial", fixed{open: never, signal: silent}, false, handshake.OpenWindow,
			&handshake.TimeoutError{Phase: handshake.Opening}, []bool{true}, nil},
		{"nor does the legacy one: no third", fixed{open: func(ctx context.Context, v2 bool) error {
			if v2 {
				return nil
			}
			return never(ctx, v2)
		}, signal: silent}, false, handshake.AcceptedWindow + handshake.OpenWindow, &handshake.TimeoutError{Phase: handshake.Opening},
			[]bool{true, false}, []time.Duration{0}},
		{"opened is said once", fixed{open: after(100 * ms), signal: silent}, false, 200*ms + handshake.AcceptedWindow, nil,
			[]bool{true, false}, []time.Duration{100 * ms}},
		{"the socket is refused", fixed{open: func(context.Context, bool) error { return boom }, signal: silent}, false, 0, boom, []bool{true}, nil},
		{"the token fails", fixed{open: after(time.Second), token: boom, signal: silent}, false, 0, boom, []bool{true}, nil},
		{"the socket breaks", fixed{open: after(0), signal: func(n int) (handshake.Signal, error) {
			time.Sleep(50 * ms)
			return handshake.Accepted, []error{nil, boom}[n-1]
		}}, true, 100 * ms, boom, []bool{true}, []time.Duration{0}},
		{"the hello fails", fixed{open: after(0), signal: inOrder, hello: boom}, false, 0, boom, []bool{true}, []time.Duration{0}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &tc.fixed
				took, err := f.dial(t, tc.had)
				assert.Equal(t, tc.took, took)
				assert.Equal(t, tc.opens, f.opens)
				assert.Equal(t, tc.opened, f.opened)
				var timeout, want *handshake.TimeoutError
				switch {
				case tc.err == nil:
					require.NoError(t, err)
					assert.EqualValues(t, 1, f.live.Load())
				case errors.As(tc.err, &want):
					require.ErrorAs(t, err, &timeout)
					assert.Equal(t, want.Phase, timeout.Phase)
				default:
					require.ErrorIs(t, err, tc.err)
				}
				time.Sleep(10 * time.Second)
				synctest.Wait()
				assert.LessOrEqual(t, f.live.Load(), int32(1))
			})
		})
	}
}
