package conditions_test

import (
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

// urnetwork/connect#207: IPv6 connects in a round trip and large answers never
// come; IPv4 is clean.
func TestSegmentsLost(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		app, api := n.Host("app", netsim.DualStack()), n.Host("api", netsim.DualStack())
		l := listen(t, api, ":80")
		defer l.Close()
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				c.Write(make([]byte, 4096))
				t.Cleanup(func() { c.Close() })
			}
		}()
		conditions.SegmentsLost(n, api, true, 1480)
		for _, network := range []string{"tcp4", "tcp6"} {
			var c net.Conn
			var err error
			assert.Equal(t, 20*ms, after(func() { c, err = app.DialContext(t.Context(), network, "api:80") }).Round(ms), network)
			require.NoError(t, err)
			c.SetReadDeadline(time.Now().Add(10 * time.Second))
			_, err = io.ReadFull(c, make([]byte, 4096))
			if network == "tcp6" {
				assert.ErrorIs(t, err, os.ErrDeadlineExceeded)
			} else {
				assert.NoError(t, err)
			}
			c.Close()
		}
	}, tenms)
}

// Icinga/icinga2#2727: a heartbeat behind bulk on the line waits for the buffer
// to drain.
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
		for range 170 { // 256 KiB are 178 packets of 1472 bytes
			_, err := here.WriteTo(make([]byte, 1444), udpAddr(api, 9))
			require.NoError(t, err)
		}
		_, err = here.WriteTo([]byte("beat"), udpAddr(api, 9))
		require.NoError(t, err)
		b := make([]byte, 1500)
		for k := 0; k != 4; {
			k, _, err = there.ReadFrom(b)
			require.NoError(t, err)
		}
		assert.InDelta(t, 32*time.Second, time.Since(start), float64(2*time.Second))
	}, netsim.DatagramBuffer(1<<20))
}
