package socksrelay_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/net/proxy"

	"github.com/seed-5a7f77c4/deadair/blackhole"
	"github.com/seed-5a7f77c4/deadair/socksrelay"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memory is a listener for connections in memory.
type memory struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newMemory() *memory { return &memory{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (l *memory) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}
func (l *memory) Close() error   { l.once.Do(func() { close(l.closed) }); return nil }
func (l *memory) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1080} }
func (l *memory) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	a, b := net.Pipe()
	select {
	case l.conns <- b:
		return a, nil
	case <-l.closed:
		return nil, syscall.ECONNREFUSED
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

type forward struct{ l *memory }

func (f forward) Dial(network, addr string) (net.Conn, error) {
	return f.l.dial(context.Background(), network, addr)
}

func (f forward) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	return f.l.dial(ctx, network, addr)
}

// echo is a destination in memory.
func echo(context.Context, string, string) (net.Conn, error) {
	a, b := net.Pipe()
	go func() { io.Copy(b, b); b.Close() }()
	return a, nil
}

func serve(t testing.TB, config socksrelay.Config) *memory {
	t.Helper()
	if config.Dial == nil {
		config.Dial = echo
	}
	r, err := socksrelay.New(config)
	require.NoError(t, err)
	l := newMemory()
	served := make(chan error, 1)
	go func() { served <- r.Serve(l) }()
	t.Cleanup(func() {
		require.NoError(t, r.Close())
		require.ErrorIs(t, <-served, net.ErrClosed)
	})
	return l
}

func dial(l *memory, auth *proxy.Auth, destination string) (net.Conn, error) {
	d, err := proxy.SOCKS5("tcp", "relay:1080", auth, forward{l})
	if err != nil {
		return nil, err
	}
	return d.(proxy.ContextDialer).DialContext(context.Background(), "tcp", destination)
}

func pingPong(t testing.TB, c net.Conn) {
	t.Helper()
	_, err := c.Write([]byte("ping"))
	require.NoError(t, err)
	buf := make([]byte, 4)
	_, err = io.ReadFull(c, buf)
	require.NoError(t, err)
	require.Equal(t, "ping", string(buf))
}

func bubble(t *testing.T, f func(t *testing.T)) { synctest.Test(t, f) }

func TestPassThrough(t *testing.T) {
	for name, to := range map[string]string{"name": "relay.example:443", "IPv4": "192.0.2.1:443", "IPv6": "[2001:db8::1]:443"} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var asked string
				l := serve(t, socksrelay.Config{Dial: func(ctx context.Context, n, a string) (net.Conn, error) {
					asked = a
					return echo(ctx, n, a)
				}})
				c, err := dial(l, nil, to)
				require.NoError(t, err)
				pingPong(t, c)
				assert.Equal(t, to, asked, "names are left unresolved")
				c.Close()
			})
		})
	}
}

func TestBlackHoleAfterTheReply(t *testing.T) {
	bubble(t, func(t *testing.T) {
		hole := socksrelay.BlackHole(blackhole.AfterExchanges(1))
		l := serve(t, socksrelay.Config{Faults: []*socksrelay.Fault{hole}})
		c, err := dial(l, nil, "r:1")
		require.NoError(t, err)
		pingPong(t, c)
		_, err = c.Write([]byte("ping"))
		require.NoError(t, err, "the relay goes on taking bytes")
		c.SetReadDeadline(time.Now().Add(time.Hour))
		_, err = c.Read(make([]byte, 1))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded, "neither an answer nor an end comes")
		assert.EqualValues(t, 1, hole.Hits())
	})
}

func TestEveryPhaseCanBeSilentOrBreakOff(t *testing.T) {
	for p := socksrelay.Accept; p <= socksrelay.Reply; p++ {
		for effect, want := range map[string]error{"stall": os.ErrDeadlineExceeded, "swallow": os.ErrDeadlineExceeded, "close": io.EOF} {
			t.Run(p.String()+" "+effect, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					do := map[string]blackhole.Effect{"stall": blackhole.Stall(), "swallow": blackhole.Swallow(), "close": blackhole.Close()}[effect]
					f := &socksrelay.Fault{Phase: p, Do: do}
					l := serve(t, socksrelay.Config{
						Valid:  func(user, password string) bool { return user == "u" && password == "p" },
						Faults: []*socksrelay.Fault{f},
					})
					a, err := l.dial(t.Context(), "", "")
					require.NoError(t, err)
					a.SetDeadline(time.Now().Add(10 * time.Minute))
					d, _ := proxy.SOCKS5("tcp", "", &proxy.Auth{User: "u", Password: "p"}, given{a})
					_, err = d.Dial("tcp", "r:1")
					require.Error(t, err)
					if want == os.ErrDeadlineExceeded {
						assert.ErrorIs(t, err, want)
					} else {
						assert.False(t, errors.Is(err, os.ErrDeadlineExceeded), "%v", err)
					}
					assert.Positive(t, f.Hits())
					a.Close()
				})
			})
		}
	}
}

type given struct{ c net.Conn }

func (g given) Dial(string, string) (net.Conn, error) { return g.c, nil }

func TestReplyCodes(t *testing.T) {
	texts := map[byte]string{1: "general", 2: "not allowed", 3: "network unreachable", 4: "host unreachable", 5: "refused", 6: "TTL", 7: "command", 8: "address type", 99: "unknown code"}
	for code, text := range texts {
		bubble(t, func(t *testing.T) {
			l := serve(t, socksrelay.Config{Faults: []*socksrelay.Fault{socksrelay.Refuse(code)}})
			_, err := dial(l, nil, "r:1")
			require.ErrorContains(t, err, text)
		})
	}
}

func TestReplyCodesFollowTheErrorNotItsText(t *testing.T) {
	for text, err := range map[string]error{
		"refused":             os.NewSyscallError("connect", syscall.ECONNREFUSED),
		"network unreachable": &net.OpError{Op: "dial", Err: syscall.ENETUNREACH},
		"host unreachable":    syscall.EHOSTUNREACH,
		"TTL":                 context.DeadlineExceeded,
		"general":             errors.New("the word refused in a text that means something else"),
		"not allowed":         &socksrelay.ReplyError{Code: 2},
	} {
		bubble(t, func(t *testing.T) {
			l := serve(t, socksrelay.Config{Dial: func(context.Context, string, string) (net.Conn, error) { return nil, err }})
			_, got := dial(l, nil, "r:1")
			require.ErrorContains(t, got, text)
		})
	}
}

func TestSelection(t *testing.T) {
	type try struct{ user, to string }
	for name, tc := range map[string]struct {
		sel  socksrelay.Selector
		hit  []try
		miss []try
	}{
		"destination": {socksrelay.Selector{Destination: "bad"}, []try{{"u", "bad:1"}, {"v", "bad:2"}}, []try{{"u", "good:1"}}},
		"host:port":   {socksrelay.Selector{Destination: "bad:1"}, []try{{"u", "bad:1"}}, []try{{"u", "bad:2"}}},
		"user":        {socksrelay.Selector{User: "u"}, []try{{"u", "x:1"}}, []try{{"v", "x:1"}}},
		"nth":         {socksrelay.Selector{Nth: 1}, []try{{"u", "x:1"}}, []try{{"u", "x:1"}, {"u", "x:1"}}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := socksrelay.Refuse(5)
				f.Select = tc.sel
				l := serve(t, socksrelay.Config{Valid: func(string, string) bool { return true }, Faults: []*socksrelay.Fault{f}})
				for _, x := range tc.hit {
					_, err := dial(l, &proxy.Auth{User: x.user, Password: "p"}, x.to)
					assert.ErrorContains(t, err, "refused", "%v", x)
				}
				for _, x := range tc.miss {
					c, err := dial(l, &proxy.Auth{User: x.user, Password: "p"}, x.to)
					if assert.NoError(t, err, "%v", x) {
						c.Close()
					}
				}
			})
		})
	}
}

func TestChanceComesFromTheSeed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		run := func(seed uint64) (failed string) {
			f := socksrelay.Refuse(1)
			f.Select = socksrelay.Selector{Chance: 0.5, Seed: seed}
			l := serve(t, socksrelay.Config{Faults: []*socksrelay.Fault{f}})
			for range 64 {
				c, err := dial(l, nil, "r:1")
				if err != nil {
					failed += "x"
				} else {
					failed += "."
					c.Close()
				}
			}
			return failed
		}
		assert.Equal(t, run(1), run(1))
		assert.NotEqual(t, run(1), run(2))
	})
}

func TestHandshakeHasADeadline(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := serve(t, socksrelay.Config{})
		c, _ := l.dial(t.Context(), "", "")
		start := time.Now()
		_, err := c.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
		assert.Equal(t, socksrelay.DefaultHandshakeTimeout, time.Since(start))
	})
}

func TestDialEndsWithTheClient(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ended := make(chan error, 1)
		l := serve(t, socksrelay.Config{DialTimeout: -1, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			ended <- ctx.Err()
			return nil, ctx.Err()
		}})
		c, _ := l.dial(t.Context(), "", "")
		time.AfterFunc(time.Minute, func() { c.Close() })
		d, _ := proxy.SOCKS5("tcp", "", nil, given{c})
		start := time.Now()
		_, err := d.Dial("tcp", "r:1")
		require.Error(t, err)
		require.ErrorIs(t, <-ended, context.Canceled)
		assert.Equal(t, time.Minute, time.Since(start))
	})
}

func TestEarlySuccessAndWrongBoundAddress(t *testing.T) {
	bubble(t, func(t *testing.T) {
		early := &socksrelay.Fault{Phase: socksrelay.Reply, Answer: &socksrelay.Answer{Early: true, Bound: netip.MustParseAddrPort("203.0.113.9:9")}}
		l := serve(t, socksrelay.Config{Faults: []*socksrelay.Fault{early}, Dial: func(ctx context.Context, n, a string) (net.Conn, error) {
			time.Sleep(5 * time.Second)
			if a == "dead:1" {
				return nil, syscall.ECONNREFUSED
			}
			return echo(ctx, n, a)
		}})
		start := time.Now()
		c, err := dial(l, nil, "r:1")
		require.NoError(t, err)
		assert.Zero(t, time.Since(start), "success comes before the dial is done")
		assert.Contains(t, c.(interface{ BoundAddr() net.Addr }).BoundAddr().String(), "203.0.113.9:9")
		pingPong(t, c)
		assert.Equal(t, 5*time.Second, time.Since(start))
		c.Close()

		c, err = dial(l, nil, "dead:1")
		require.NoError(t, err)
		_, err = c.Read(make([]byte, 1))
		require.Error(t, err)
	})
}

func TestImpossibleRelaysAreNamed(t *testing.T) {
	_, err := socksrelay.New(socksrelay.Config{})
	require.ErrorContains(t, err, "Config.Dial is nil")
	for want, f := range map[string]*socksrelay.Fault{
		"fault is nil":               nil,
		"phase none":                 {Do: blackhole.Swallow()},
		"no effect":                  {Phase: socksrelay.Data},
		"is not known in phase":      {Phase: socksrelay.Greeting, Do: blackhole.Swallow(), Select: socksrelay.Selector{Destination: "r"}},
		"user \"u\" is not known":    {Phase: socksrelay.Method, Do: blackhole.Swallow(), Select: socksrelay.Selector{User: "u"}},
		"Chance 2":                   {Phase: socksrelay.Data, Do: blackhole.Swallow(), Select: socksrelay.Selector{Chance: 2}},
		"Nth -1":                     {Phase: socksrelay.Data, Do: blackhole.Swallow(), Select: socksrelay.Selector{Nth: -1}},
		"both Do and Answer":         {Phase: socksrelay.Dial, Do: blackhole.Swallow(), Answer: &socksrelay.Answer{Code: 1}},
		"an Answer in phase data":    {Phase: socksrelay.Data, Answer: &socksrelay.Answer{Code: 1}},
		"the Answer changes nothing": {Phase: socksrelay.Dial, Answer: &socksrelay.Answer{}},
		"AfterBytes(-1)":             {Phase: socksrelay.Data, Do: blackhole.Swallow(), When: blackhole.AfterBytes(-1)},
	} {
		_, err := socksrelay.New(socksrelay.Config{Dial: echo, Faults: []*socksrelay.Fault{f}})
		assert.ErrorContains(t, err, want)
	}
}
