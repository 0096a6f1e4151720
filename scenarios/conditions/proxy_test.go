package conditions_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/proxy"

	"github.com/seed-5a7f77c4/deadair/netsim"
	"github.com/seed-5a7f77c4/deadair/scenarios/conditions"
	"github.com/seed-5a7f77c4/deadair/socksrelay"
)

// socks runs a relay with a fault and gives a client of golang.org/x/net for it.
func socks(t *testing.T, app, host *netsim.Host, f *socksrelay.Fault) proxy.ContextDialer {
	relay, err := socksrelay.New(socksrelay.Config{Dial: host.DialContext, Faults: []*socksrelay.Fault{f}, HandshakeTimeout: -1})
	require.NoError(t, err)
	go relay.Serve(listen(t, host, ":1080"))
	t.Cleanup(func() { relay.Close() })
	d, err := proxy.SOCKS5("tcp", "relay:1080", nil, app)
	require.NoError(t, err)
	return d.(proxy.ContextDialer)
}

// golang/go#37549: a relay that says nothing, or nothing after the method. A
// context ends the wait; Dial has none and hangs, here for an hour.
func TestSilentSOCKSRelay(t *testing.T) {
	for name, fault := range map[string]func() *socksrelay.Fault{
		"silent": conditions.SilentRelay, "request unanswered": conditions.RequestUnanswered,
	} {
		t.Run(name, func(t *testing.T) {
			netsim.Run(t, func(t *testing.T, n *netsim.Network) {
				app, relay := n.Host("app"), n.Host("relay")
				echo(t, listen(t, n.Host("api"), ":80"))
				d := socks(t, app, relay, fault())
				ctx, cancel := context.WithTimeout(t.Context(), 500*ms)
				defer cancel()
				var err error
				took := after(func() { _, err = d.DialContext(ctx, "tcp", "api:80") })
				var timeout net.Error
				require.ErrorAs(t, err, &timeout)
				assert.True(t, timeout.Timeout())
				assert.Equal(t, 500*ms, took.Round(ms))

				dialled := make(chan error, 1)
				go func() {
					_, err := d.(proxy.Dialer).Dial("tcp", "api:80")
					dialled <- err
				}()
				time.Sleep(time.Hour)
				select {
				case err := <-dialled:
					t.Errorf("Dial returned: %v", err)
				default:
				}
				relay.Crash()
				app.Crash()
				assert.Error(t, <-dialled)
			}, tenms)
		})
	}
}

// golang/go#37549: the replies 1, 4 and 6 and what the client makes of them, each
// after the three round trips that it takes to hear them.
func TestRequestRefused(t *testing.T) {
	for code, text := range map[byte]string{1: "general SOCKS server failure", 4: "host unreachable", 6: "TTL expired"} {
		t.Run(text, func(t *testing.T) {
			netsim.Run(t, func(t *testing.T, n *netsim.Network) {
				d := socks(t, n.Host("app"), n.Host("relay"), conditions.RequestRefused(code))
				n.Host("api")
				var err error
				took := after(func() { _, err = d.DialContext(t.Context(), "tcp", "api:80") })
				assert.EqualError(t, err, "socks connect tcp relay:1080->api:80: unknown error "+text)
				assert.Equal(t, 60*ms, took.Round(ms))
				assert.Zero(t, dials(n, 80))
			}, tenms)
		})
	}
}

// OkamiW/proxy-ns#6: the relay says success and dials then. Who takes that for
// health never learns better; the first byte does: EOF or ECONNRESET.
func TestSuccessTooEarly(t *testing.T) {
	for _, tc := range []struct {
		name  string
		arm   func(n *netsim.Network, relay, api *netsim.Host)
		takes time.Duration // from the success to the end
	}{
		{"nobody listens", func(*netsim.Network, *netsim.Host, *netsim.Host) {}, 20 * ms},
		{"the upstream is silent", func(n *netsim.Network, relay, api *netsim.Host) { n.Link(relay, api).Cut() }, time.Minute},
	} {
		t.Run(tc.name, func(t *testing.T) {
			netsim.Run(t, func(t *testing.T, n *netsim.Network) {
				app, relay, api := n.Host("app"), n.Host("relay"), n.Host("api")
				d := socks(t, app, relay, conditions.SuccessTooEarly())
				tc.arm(n, relay, api)
				var c net.Conn
				var err error
				took := after(func() { c, err = d.DialContext(t.Context(), "tcp", "api:80") })
				require.NoError(t, err, "connected counts for nothing")
				assert.Equal(t, 60*ms, took.Round(ms))
				defer c.Close()
				took = after(func() { err = ask(c, time.Hour) })
				assert.True(t, errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET), "%v", err)
				assert.InDelta(t, tc.takes, took, float64(25*ms))
			}, tenms)
		})
	}
}

// connectProxy is an HTTP proxy that answers CONNECT in two pieces and then
// relays.
func connectProxy(relay *netsim.Host) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		up, err := relay.DialContext(r.Context(), "tcp", r.Host)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer up.Close()
		down, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer down.Close()
		io.WriteString(down, "HTTP/1.1 2")
		time.Sleep(ms)
		io.WriteString(down, "00 OK\r\n\r\n")
		go io.Copy(up, down)
		io.Copy(down, up)
	}
}

// router-for-me/CLIProxyAPI#3952: the proxy falls silent before, within and after
// the status that answers CONNECT, and when its own TLS is due. net/http gives
// CONNECT a minute and each TLS handshake 10 s, unless there is a deadline.
func TestSilentHTTPProxy(t *testing.T) {
	const status = len("HTTP/1.1 200 OK\r\n\r\n")
	for _, tc := range []struct {
		name   string
		scheme string
		after  int64
		limit  time.Duration
		takes  time.Duration
		text   string
	}{
		{"before the status", "http", 0, 0, time.Minute, "context deadline exceeded"},
		{"within the status", "http", 10, 0, time.Minute, "context deadline exceeded"},
		{"within the status, with a deadline", "http", 10, 5 * time.Second, 5 * time.Second, "context deadline exceeded"},
		{"after the status", "http", int64(status), 0, 10 * time.Second, "TLS handshake timeout"},
		{"after the status, with a deadline", "http", int64(status), 5 * time.Second, 5 * time.Second, "context deadline exceeded"},
		{"at the proxy's TLS", "https", 0, 0, 10 * time.Second, "TLS handshake timeout"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			netsim.Run(t, func(t *testing.T, n *netsim.Network) {
				app, relay, api := n.Host("app"), n.Host("relay"), n.Host("api")
				cert, roots := certificate(t, "api", "relay")
				serveTLS(t, listen(t, api, ":443"), cert, ok)
				if tc.scheme == "https" {
					serveTLS(t, listen(t, relay, ":3128"), cert, connectProxy(relay))
				} else {
					serve(t, listen(t, relay, ":3128"), connectProxy(relay))
				}
				tr := http.DefaultTransport.(*http.Transport).Clone()
				tr.DialContext, tr.TLSClientConfig = app.DialContext, &tls.Config{RootCAs: roots}
				tr.Proxy = http.ProxyURL(&url.URL{Scheme: tc.scheme, Host: "relay:3128"})
				client := &http.Client{Transport: tr, Timeout: tc.limit}
				defer tr.CloseIdleConnections()
				if tc.scheme == "http" {
					require.NoError(t, get(client, "https://api/"), "it is a proxy")
					tr.CloseIdleConnections()
				}
				conditions.StallAfter(n, relay, 3128, tc.after)
				var err error
				took := after(func() { err = get(client, "https://api/") })
				assert.ErrorContains(t, err, tc.text)
				var timeout net.Error
				require.ErrorAs(t, err, &timeout)
				assert.True(t, timeout.Timeout())
				assert.InDelta(t, tc.takes, took, float64(100*ms))
				time.Sleep(time.Minute)
			}, tenms)
		})
	}
}
