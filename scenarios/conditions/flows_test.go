package conditions_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/netsim"
	"github.com/seed-5a7f77c4/deadair/scenarios/conditions"
)

// golang/go#30702: one request a second meets a connection whose answers vanish.
func TestSilentTowards(t *testing.T) {
	for _, tc := range []struct {
		name            string
		h2              bool
		ping            time.Duration
		failures, dials int
	}{
		{"HTTP/1.1", false, 0, 1, 2},
		{"HTTP/2", true, 0, 10, 1},
		{"HTTP/2 with pings", true, 500 * ms, 1, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			netsim.Run(t, func(t *testing.T, n *netsim.Network) {
				app, api := n.Host("app"), n.Host("api")
				protos := new(http.Protocols)
				protos.SetHTTP1(!tc.h2)
				protos.SetUnencryptedHTTP2(tc.h2)
				s := &http.Server{Protocols: protos, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "ok") })}
				go s.Serve(listen(t, api, ":80"))
				defer s.Close()
				tr := &http.Transport{
					DialContext: app.DialContext, Protocols: protos,
					HTTP2: &http.HTTP2Config{SendPingTimeout: tc.ping, PingTimeout: tc.ping},
				}
				defer tr.CloseIdleConnections()
				client := &http.Client{Transport: tr, Timeout: time.Second}
				require.NoError(t, get(client, "http://api/"))
				conditions.SilentTowards(n, app, "app>api:80#1")
				failures := 0
				for range 10 {
					start := time.Now()
					if get(client, "http://api/") != nil {
						failures++
					}
					time.Sleep(time.Until(start.Add(time.Second + ms)))
				}
				assert.Equal(t, tc.failures, failures)
				assert.Equal(t, tc.dials, dials(n, 80))
			}, tenms)
		})
	}
}

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

// jackc/pgx#2394: a pool that pings what it hands out gets past one dead flow
// for the price of the ping.
func TestSilentFlowInAPool(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		app, db := n.Host("app"), n.Host("db")
		echo(t, listen(t, db, ":5432"))
		var idle []*netsim.Conn
		for range 4 {
			idle = append(idle, dial(t, app, "db:5432"))
		}
		conditions.SilentFlow(n, "app>db:5432#1")
		acquire := func() *netsim.Conn {
			for len(idle) > 0 {
				c := idle[0]
				idle = idle[1:]
				if ask(c, time.Second) == nil {
					return c
				}
				c.Close()
			}
			return nil
		}
		var c *netsim.Conn
		assert.Equal(t, time.Second+20*ms, after(func() { c = acquire() }).Round(ms))
		require.NotNil(t, c)
		assert.Equal(t, "app>db:5432#2", c.Flow())
	}, tenms)
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

// hashicorp/yamux#142: the writer times out, and after healing what was written arrives.
func TestSqueezedFor(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		app, api := n.Host("app"), n.Host("api")
		echo(t, listen(t, api, ":80"))
		c := dial(t, app, "api:80")
		require.NoError(t, ask(c, time.Second))
		conditions.SqueezedFor(n, n.Path(app, api), 15*time.Second)
		start := time.Now()
		c.SetWriteDeadline(time.Now().Add(10 * time.Second))
		k, err := c.Write(make([]byte, 1<<20))
		assert.ErrorIs(t, err, os.ErrDeadlineExceeded)
		assert.Equal(t, 10*time.Second, time.Since(start).Round(ms))
		c.SetDeadline(time.Time{})
		_, err = io.ReadFull(c, make([]byte, k))
		assert.NoError(t, err)
		assert.Greater(t, time.Since(start), 15*time.Second)
		assert.Less(t, time.Since(start), time.Minute)
	}, tenms, netsim.Buffers(64<<10, 64<<10))
}

// eclipse-paho/paho.golang#288: a client that counts what it hears notices within
// 45 s; one that counts what it sends does not.
func TestOneWayLoss(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		app, broker := n.Host("app"), n.Host("broker")
		echo(t, listen(t, broker, ":1883"))
		c := dial(t, app, "broker:1883")
		require.NoError(t, ask(c, time.Second))
		conditions.OneWayLoss(n.Path(broker, app))
		require.NoError(t, c.SetDeadline(time.Time{}))
		start := time.Now()
		stop := make(chan struct{})
		var published int
		go func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(5 * time.Second):
					if _, err := c.Write([]byte("!")); err == nil {
						published++
					}
				}
			}
		}()
		c.SetReadDeadline(start.Add(45 * time.Second))
		_, err := c.Read(make([]byte, 1))
		close(stop)
		assert.ErrorIs(t, err, os.ErrDeadlineExceeded)
		assert.Equal(t, 45*time.Second, time.Since(start).Round(ms))
		assert.GreaterOrEqual(t, published, 8, "the publisher saw nothing")
	}, tenms)
}

// tailscale/tailscale#92: the direct path is lost for ever and the relay is good.
func TestDirectPathLost(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b, relay := n.Host("a"), n.Host("b"), n.Host("relay")
		echo(t, listen(t, b, ":80"))
		echo(t, listen(t, relay, ":80"))
		direct, relayed := dial(t, a, "b:80"), dial(t, a, "relay:80")
		require.NoError(t, ask(direct, time.Second))
		conditions.DirectPathLost(n.Link(a, b))
		took := after(func() {
			assert.ErrorIs(t, ask(direct, 5*time.Second), os.ErrDeadlineExceeded)
			assert.NoError(t, ask(relayed, time.Second))
		})
		assert.Equal(t, 5*time.Second+20*ms, took.Round(ms))
	}, tenms)
}
