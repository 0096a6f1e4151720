package conditions_test

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
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

// cockroachdb/cockroach#84289: the old connection works, a new one times out.
func TestSYNsLost(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		app, api := n.Host("app"), n.Host("api")
		echo(t, listen(t, api, ":80"))
		c := dial(t, app, "api:80")
		conditions.SYNsLost(n, api)
		assert.NoError(t, ask(c, time.Second))
		var err error
		took := after(func() {
			_, err = (&netsim.Dialer{Host: app, Timeout: 3 * time.Second}).Dial("tcp", "api:80")
		})
		var timeout net.Error
		require.True(t, errors.As(err, &timeout), "%v", err)
		assert.True(t, timeout.Timeout())
		assert.Equal(t, 3*time.Second, took.Round(ms))
	}, tenms)
}

// golang/go#16012: 100 ports for 101 short connections; it works again after
// TIME_WAIT.
func TestFewPorts(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		app, api := n.Host("app"), n.Host("api")
		echo(t, listen(t, api, ":80"))
		for range 100 {
			c, err := app.DialContext(t.Context(), "tcp", "api:80")
			require.NoError(t, err)
			c.Close()
		}
		_, err := app.DialContext(t.Context(), "tcp", "api:80")
		assert.ErrorIs(t, err, syscall.EADDRNOTAVAIL)
		time.Sleep(61 * time.Second)
		assert.NoError(t, ask(dial(t, app, "api:80"), time.Second))
	}, conditions.FewPorts(100))
}

// golang/go#44267: net/http gives a handshake exactly 10 s, whatever TCP does.
func TestSlowHello(t *testing.T) {
	for _, d := range []time.Duration{12 * time.Second, 9900 * ms} {
		t.Run(d.String(), func(t *testing.T) {
			netsim.Run(t, func(t *testing.T, n *netsim.Network) {
				app, api := n.Host("app"), n.Host("api")
				cert, roots := certificate(t, "api")
				serveTLS(t, conditions.SlowHello(listen(t, api, ":443"), d), cert, ok)
				tr := http.DefaultTransport.(*http.Transport).Clone()
				tr.DialContext, tr.TLSClientConfig, tr.Proxy = app.DialContext, &tls.Config{RootCAs: roots}, nil
				defer tr.CloseIdleConnections()
				var err error
				took := after(func() { err = get(&http.Client{Transport: tr}, "https://api/") })
				if d < 10*time.Second {
					assert.NoError(t, err)
					assert.Equal(t, d+60*ms, took.Round(ms), "dial, handshake and request are a round trip each")
					return
				}
				assert.EqualError(t, err, `Get "https://api/": net/http: TLS handshake timeout`)
				var timeout net.Error
				require.ErrorAs(t, err, &timeout)
				assert.True(t, timeout.Timeout())
				assert.Equal(t, 10*time.Second+20*ms, took.Round(ms), "the dial, and 10 s")
				time.Sleep(10 * time.Second)
			}, tenms)
		})
	}
}

// dragonflydb/dragonfly#1643: 800 dials within 100 ms meet a backlog of 128 whose
// acceptor wakes up 2 s after it stalled, when half of them try again. The first
// 129 wait for nobody, nor do the 16 whose handshakes were under way when the
// queue was full, and of whom the server learns a second later; of the rest,
// those that try again too early take 3 s, the others 1 s. None is refused.
func TestStalledAcceptor(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		const dialled = 800
		app, api := n.Host("app"), n.Host("api")
		echo(t, conditions.StalledAcceptor(listen(t, api, ":80"), 2*time.Second))
		time.Sleep(950 * ms)
		took := make(chan time.Duration, dialled)
		for i := range dialled {
			go func() {
				time.Sleep(time.Duration(i) * 100 * ms / dialled)
				took <- after(func() {
					c, err := app.Dial("tcp", "api:80")
					if assert.NoError(t, err) {
						t.Cleanup(func() { c.Close() })
					}
				})
			}()
		}
		steps := map[time.Duration]int{}
		for range dialled {
			steps[(<-took).Round(ms)]++
		}
		assert.Equal(t, map[time.Duration]int{2 * ms: 145, 1002 * ms: 408, 3002 * ms: 247}, steps)
	}, netsim.Defaults(netsim.Conditions{Latency: ms}), netsim.Backlog(128))
}

// A listener that is stalled can be closed all the same.
func TestStalledAcceptorIsClosed(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		l := conditions.StalledAcceptor(listen(t, n.Host("api"), ":80"), time.Hour)
		n.After(time.Second, "close", func() { l.Close() })
		var err error
		took := after(func() { _, err = l.Accept() })
		assert.ErrorIs(t, err, net.ErrClosed)
		assert.Equal(t, time.Second, took.Round(ms))
	})
}

// pion/dtls#618, with TLS: the first peer says hello and nothing more, the second
// comes 1 s later. A loop that does the handshake before it accepts the next one
// keeps the second waiting; one that leaves it to the connection's goroutine
// serves it in three round trips. The same over QUIC is in netsim/programs.
func TestHelloThenSilence(t *testing.T) {
	for name, inLoop := range map[string]bool{"handshake in the loop": true, "handshake of its own": false} {
		t.Run(name, func(t *testing.T) {
			netsim.Run(t, func(t *testing.T, n *netsim.Network) {
				first, second, api := n.Host("first"), n.Host("second"), n.Host("api")
				cert, roots := certificate(t, "api")
				raw := listen(t, api, ":443")
				l := tls.NewListener(raw, &tls.Config{Certificates: []tls.Certificate{cert}})
				defer l.Close()
				go func() {
					for {
						c, err := l.Accept()
						if err != nil {
							return
						}
						t.Cleanup(func() { c.(*tls.Conn).NetConn().Close() })
						serve := func() {
							if c.(*tls.Conn).Handshake() == nil {
								go io.Copy(c, c)
							}
						}
						if inLoop {
							serve()
						} else {
							go serve()
						}
					}
				}()
				conditions.HelloThenSilence(n, first, api)
				shake := func(h *netsim.Host, limit time.Duration) (took time.Duration, err error) {
					took = after(func() {
						c := tls.Client(dial(t, h, "api:443"), &tls.Config{RootCAs: roots, ServerName: "api"})
						c.SetDeadline(time.Now().Add(limit))
						if _, err = c.Write([]byte("?")); err == nil {
							_, err = c.Read(make([]byte, 1))
						}
					})
					return took, err
				}
				done := make(chan struct{})
				go func() {
					defer close(done)
					_, err := shake(first, time.Minute)
					assert.ErrorIs(t, err, os.ErrDeadlineExceeded)
				}()
				time.Sleep(time.Second)
				took, err := shake(second, 10*time.Second)
				if inLoop {
					assert.ErrorIs(t, err, os.ErrDeadlineExceeded)
					assert.Equal(t, 10*time.Second+20*ms, took.Round(ms))
				} else {
					assert.NoError(t, err)
					assert.Equal(t, 60*ms, took.Round(ms))
				}
				<-done
			}, tenms)
		})
	}
}

// golang/go#22225: the host's IPv6 address is a black hole. The dial goes on over
// IPv4 after the fallback delay, and one connection is left. One address after
// the other it gives IPv6 half of the 8 s that it has.
func TestIPv6Lost(t *testing.T) {
	for _, tc := range []struct {
		name     string
		fallback time.Duration
		takes    time.Duration
	}{
		{"by default", 0, 320 * ms},
		{"one after the other", -1, 4020 * ms},
	} {
		t.Run(tc.name, func(t *testing.T) {
			netsim.Run(t, func(t *testing.T, n *netsim.Network) {
				app, api := n.Host("app", netsim.DualStack()), n.Host("api", netsim.DualStack())
				n.Alias("both", api)
				echo(t, listen(t, api, ":80"))
				conditions.IPv6Lost(n, api)
				d := &netsim.Dialer{Host: app, FallbackDelay: tc.fallback, Timeout: 8 * time.Second}
				var c net.Conn
				var err error
				took := after(func() { c, err = d.Dial("tcp", "both:80") })
				require.NoError(t, err)
				assert.Equal(t, tc.takes, took.Round(ms))
				time.Sleep(3 * time.Minute) // whatever was tried for IPv6 would be over
				var open []string
				for _, s := range app.Sockets() {
					if s.State != "CLOSED" {
						open = append(open, s.State)
					}
				}
				assert.Equal(t, []string{"ESTAB"}, open)
				assert.NoError(t, ask(c, time.Second))
				c.Close()
			}, tenms)
		})
	}
}
