package conditions_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/netsim"
	"github.com/seed-5a7f77c4/deadair/scenarios/conditions"
)

// golang/go#63422: of four flows those that hash to the dead member fail, and a
// new one passes.
func TestFlowsHashedAway(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		app, api := n.Host("app"), n.Host("api")
		echo(t, listen(t, api, ":80"))
		var pool []*netsim.Conn
		for range 4 {
			pool = append(pool, dial(t, app, "api:80"))
		}
		require.NoError(t, ask(pool[3], time.Second))
		conditions.FlowsHashedAway(n, n.Link(app, api), 2)
		for i, c := range pool {
			err := ask(c, time.Second)
			assert.Equal(t, i%2 == 1, errors.Is(err, os.ErrDeadlineExceeded), "flow %d: %v", i+1, err)
		}
		for range 2 {
			assert.NoError(t, ask(dial(t, app, "api:80"), time.Second))
		}
	}, tenms)
}

// grpc/grpc-go#7542: without keep-alive, calls on a dead flow fail at their
// deadlines until the kernel gives up; a user time-out makes that 20 s.
func TestSilentFlow(t *testing.T) {
	for _, tc := range []struct {
		userTimeout time.Duration
		from, to    time.Duration
	}{
		{0, 920 * time.Second, 950 * time.Second},
		{20 * time.Second, 20 * time.Second, 27 * time.Second},
	} {
		t.Run(fmt.Sprint(tc.userTimeout), func(t *testing.T) {
			netsim.Run(t, func(t *testing.T, n *netsim.Network) {
				app, api := n.Host("app"), n.Host("api")
				echo(t, listen(t, api, ":443"))
				c := dial(t, app, "api:443")
				require.NoError(t, c.SetKeepAlive(false))
				require.NoError(t, c.SetUserTimeout(tc.userTimeout))
				require.NoError(t, ask(c, time.Second))
				conditions.SilentFlow(n, "app>api:443#1")
				start := time.Now()
				assert.Equal(t, 5*time.Second, after(func() { assert.ErrorIs(t, ask(c, 5*time.Second), os.ErrDeadlineExceeded) }).Round(ms))
				var err error
				for err = ask(c, 5*time.Second); errors.Is(err, os.ErrDeadlineExceeded); err = ask(c, 5*time.Second) {
				}
				assert.ErrorIs(t, err, syscall.ETIMEDOUT)
				took := time.Since(start)
				assert.True(t, tc.from <= took && took <= tc.to, "%v", took)
			}, tenms)
		})
	}
}

// open-octo/octo-agent#146: an idle limit tells a stalled answer from a slow one.
func TestStallAfter(t *testing.T) {
	for _, stalls := range []bool{true, false} {
		t.Run(fmt.Sprint(stalls), func(t *testing.T) {
			netsim.Run(t, func(t *testing.T, n *netsim.Network) {
				app, api := n.Host("app"), n.Host("api")
				l := listen(t, api, ":80")
				done := make(chan struct{})
				defer func() { l.Close(); <-done }()
				go func() {
					defer close(done)
					c, err := l.Accept()
					if err != nil {
						return
					}
					defer c.Close()
					for range 10 { // 10 bytes at once, then a byte every 59 s
						c.Write([]byte("."))
					}
					for range 5 {
						time.Sleep(59 * time.Second)
						c.Write([]byte("."))
					}
				}()
				if stalls {
					conditions.StallAfter(n, api, 80, 10)
				}
				c := dial(t, app, "api:80")
				got, b := 0, make([]byte, 1)
				var err error
				for err == nil {
					c.SetReadDeadline(time.Now().Add(time.Minute))
					var k int
					k, err = c.Read(b)
					got += k
				}
				if stalls {
					assert.Equal(t, 10, got)
					assert.ErrorIs(t, err, os.ErrDeadlineExceeded)
				} else {
					assert.Equal(t, 15, got)
					assert.ErrorIs(t, err, io.EOF)
				}
			}, tenms)
		})
	}
}

// kubernetes/kubernetes#74839: a download is reset after some bytes, which stay
// readable, and its server learns it from a later write.
func TestResetReaderAfter(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		app, api := n.Host("app"), n.Host("api")
		l := listen(t, api, ":80")
		defer l.Close()
		wrote := make(chan error, 1)
		go func() {
			c, err := l.Accept()
			if err != nil {
				wrote <- err
				return
			}
			defer c.Close()
			for range 1000 {
				if _, err = c.Write(make([]byte, 16<<10)); err != nil {
					break
				}
				time.Sleep(10 * ms)
			}
			wrote <- err
		}()
		conditions.ResetReaderAfter(n, app, 80, 1<<20)
		got, err := io.Copy(io.Discard, dial(t, app, "api:80"))
		assert.ErrorIs(t, err, syscall.ECONNRESET)
		assert.InDelta(t, 1<<20, got, 512<<10)
		err = <-wrote
		assert.True(t, errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE), "%v", err)
	}, tenms)
}

// tailscale/tailscale#92: the direct path is lost for ever and the relay is good. A
// client that asks every second trusts the direct path for 5 s after the last
// answer over it: it loses five questions and is back on the relay. One that
// trusts it once and for all loses everything.
func TestDirectPathLost(t *testing.T) {
	for _, tc := range []struct {
		name  string
		trust time.Duration
		lost  int
	}{
		{"trusted for 5 s", 5 * time.Second, 5},
		{"trusted for ever", time.Hour, 20},
	} {
		t.Run(tc.name, func(t *testing.T) {
			netsim.Run(t, func(t *testing.T, n *netsim.Network) {
				a, b, relay := n.Host("a"), n.Host("b"), n.Host("relay")
				echo(t, listen(t, b, ":80"))
				echo(t, listen(t, relay, ":80"))
				direct, relayed := dial(t, a, "b:80"), dial(t, a, "relay:80")
				require.NoError(t, ask(direct, time.Second))
				heard := time.Now()
				conditions.DirectPathLost(n.Link(a, b))
				lost, last := 0, 0
				for i := range 20 {
					by := relayed
					if time.Since(heard) < tc.trust {
						by = direct
					}
					if ask(by, time.Second) != nil {
						lost, last = lost+1, i+1
					} else if by == direct {
						heard = time.Now()
					}
				}
				assert.Equal(t, tc.lost, lost)
				assert.Equal(t, lost, last, "and none after that")
			}, tenms)
		})
	}
}
