package conditions_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/netsim"
	"github.com/seed-5a7f77c4/deadair/scenarios/conditions"
)

// moby/moby#34359: the answer comes after 400 s through a NAT that forgets after
// 300; with keep-alive probes every 30 s it arrives.
func TestNATForgets(t *testing.T) {
	for name, keepAlive := range map[string]bool{"without keep-alive": false, "with keep-alive": true} {
		t.Run(name, func(t *testing.T) {
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
					c.(*netsim.Conn).SetKeepAlive(false)
					time.Sleep(400 * time.Second)
					c.Write([]byte("!"))
					time.Sleep(200 * time.Second)
					c.Close()
				}()
				f := conditions.NATForgets(n.Link(app, api), 300*time.Second)
				if keepAlive {
					f.MayMiss()
				}
				c := dial(t, app, "api:80")
				require.NoError(t, c.SetKeepAliveConfig(net.KeepAliveConfig{Enable: keepAlive, Idle: 30 * time.Second, Interval: 30 * time.Second, Count: 9}))
				start := time.Now()
				c.SetReadDeadline(start.Add(500 * time.Second))
				_, err := c.Read(make([]byte, 1))
				if keepAlive {
					assert.NoError(t, err)
					assert.InDelta(t, 400*time.Second, time.Since(start), float64(30*ms))
				} else {
					assert.ErrorIs(t, err, os.ErrDeadlineExceeded)
				}
			}, tenms)
		})
	}
}

// moby/moby#34359, met by HTTP/2: after a pause of five minutes every request
// fails at its time-out, over the one connection there is. Pings every minute, on
// the connection or by TCP's keep-alive, keep the flow known.
func TestNATForgetsHTTP2(t *testing.T) {
	for _, tc := range []struct {
		name            string
		ping, keepAlive time.Duration
		failures        int
	}{
		{"by itself", 0, -1, 5},
		{"with pings", time.Minute, -1, 0},
		{"with Go's keep-alive", 0, 0, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			netsim.Run(t, func(t *testing.T, n *netsim.Network) {
				app, api := n.Host("app"), n.Host("api")
				s := &http.Server{Protocols: protocols(true), Handler: http.HandlerFunc(ok)}
				go s.Serve(quiet{listen(t, api, ":80")})
				defer s.Close()
				f := conditions.NATForgets(n.Link(app, api), 300*time.Second)
				if tc.failures == 0 {
					f.MayMiss()
				}
				d := &netsim.Dialer{Host: app, KeepAlive: tc.keepAlive}
				tr := &http.Transport{
					DialContext: d.DialContext, Protocols: protocols(true),
					HTTP2: &http.HTTP2Config{SendPingTimeout: tc.ping, PingTimeout: 5 * time.Second},
				}
				defer tr.CloseIdleConnections()
				client := &http.Client{Transport: tr, Timeout: time.Second}
				require.NoError(t, get(client, "http://api/"))
				time.Sleep(301 * time.Second)
				failures := 0
				for range 5 {
					if get(client, "http://api/") != nil {
						failures++
					}
				}
				assert.Equal(t, tc.failures, failures)
				assert.Equal(t, 1, dials(n, 80))
			}, tenms)
		})
	}
}

// golang/go#13998: after the pause a GET is sent again on a new connection, a
// POST is not.
func TestFirewallResets(t *testing.T) {
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		t.Run(method, func(t *testing.T) {
			netsim.Run(t, func(t *testing.T, n *netsim.Network) {
				app, api := n.Host("app"), n.Host("api")
				serve(t, listen(t, api, ":80"), func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "ok") })
				conditions.FirewallResets(n.Link(app, api), 300*time.Second)
				d := &netsim.Dialer{Host: app, KeepAlive: -1}
				tr := &http.Transport{DialContext: d.DialContext}
				defer tr.CloseIdleConnections()
				client := &http.Client{Transport: tr}
				ask := func() error {
					req, err := http.NewRequest(method, "http://api/", strings.NewReader("x"))
					require.NoError(t, err)
					if method == http.MethodGet {
						req.Body, req.GetBody, req.ContentLength = nil, nil, 0
					}
					resp, err := client.Do(req)
					if err != nil {
						return err
					}
					io.Copy(io.Discard, resp.Body)
					return resp.Body.Close()
				}
				silence := func() { time.Sleep(301 * time.Second) }
				require.NoError(t, ask())
				silence()
				err := ask()
				if method == http.MethodGet {
					assert.NoError(t, err)
					assert.Equal(t, 2, dials(n, 80))
				} else {
					assert.ErrorIs(t, err, syscall.ECONNRESET)
				}
			}, tenms)
		})
	}
}

// urnetwork/connect#207: IPv6 connects in a round trip, the server's flight
// fills a segment that never arrives, and TLS times out at 10 s; IPv4 is clean.
func TestSegmentsLost(t *testing.T) {
	for _, network := range []string{"tcp4", "tcp6"} {
		t.Run(network, func(t *testing.T) {
			netsim.Run(t, func(t *testing.T, n *netsim.Network) {
				app, api := n.Host("app", netsim.DualStack()), n.Host("api", netsim.DualStack())
				cert, roots := certificate(t, "api")
				serveTLS(t, listen(t, api, ":443"), cert, ok)
				f := conditions.SegmentsLost(n, api, true, 1480)
				var connected time.Duration
				tr := http.DefaultTransport.(*http.Transport).Clone()
				tr.Proxy, tr.TLSClientConfig = nil, &tls.Config{RootCAs: roots}
				tr.DialContext = func(ctx context.Context, _, address string) (c net.Conn, err error) {
					connected = after(func() { c, err = app.DialContext(ctx, network, address) })
					return c, err
				}
				defer tr.CloseIdleConnections()
				var err error
				took := after(func() { err = get(&http.Client{Transport: tr}, "https://api/") })
				assert.Equal(t, 20*ms, connected.Round(ms))
				if network == "tcp4" {
					assert.NoError(t, err)
					assert.Equal(t, 60*ms, took.Round(ms))
					assert.Zero(t, f.Hits())
					f.MayMiss()
					return
				}
				assert.EqualError(t, err, `Get "https://api/": net/http: TLS handshake timeout`)
				assert.Equal(t, 10*time.Second+20*ms, took.Round(ms))
				assert.Equal(t, 1, dials(n, 443), "nobody tries IPv4: the connection was there")
			}, tenms)
		})
	}
}

// Icinga/icinga2#2727: a heartbeat waits behind bulk until the buffer has drained,
// 32 s. A peer that allows it 10 s takes the sender for dead; one that counts
// what arrives hears something five times a second, and stays.
func TestSlowLink(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		app, api := n.Host("app"), n.Host("api")
		n.Path(app, api).SetConditions(conditions.SlowLink())
		here, err := app.ListenPacket("udp", ":0")
		require.NoError(t, err)
		defer here.Close()
		there, err := api.ListenPacket("udp", ":9")
		require.NoError(t, err)
		defer there.Close()
		start := time.Now()
		for range 174 { // of 1472 bytes with headers: 250 KiB, which leaves room for the heartbeat
			_, err := here.WriteTo(make([]byte, 1444), udpAddr(api, 9))
			require.NoError(t, err)
		}
		_, err = here.WriteTo([]byte("beat"), udpAddr(api, 9))
		require.NoError(t, err)
		var longest time.Duration
		last, b := start, make([]byte, 1500)
		for k := 0; k != len("beat"); last = time.Now() {
			k, _, err = there.ReadFrom(b)
			require.NoError(t, err)
			longest = max(longest, time.Since(last))
		}
		assert.Equal(t, 32020*ms, last.Sub(start).Round(ms), "174 × 184 ms, and 4 for itself")
		assert.Equal(t, 184*ms, longest.Round(ms))
	}, netsim.DatagramBuffer(1<<20))
}
