package programs

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/netsim"
)

// web is a server for HTTP 1.1 or 2 over TLS and a client with a pool.
func web(t *testing.T, n *netsim.Network, h2 bool) (client *http.Client, dials *atomic.Int32, link *netsim.Link, stop func()) {
	dials = new(atomic.Int32)
	host, app := n.Host("server"), n.Host("app")
	cert, roots := certificate(t, "server")
	protos := new(http.Protocols)
	protos.SetHTTP1(!h2)
	protos.SetHTTP2(h2)
	srv := &http.Server{
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}}, Protocols: protos,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) }),
	}
	go srv.ServeTLS(listen(t, host, ":443"), "", "")
	tr := &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			dials.Add(1)
			return app.DialContext(ctx, network, address)
		},
		TLSClientConfig: &tls.Config{RootCAs: roots}, Protocols: protos,
		HTTP2: &http.HTTP2Config{SendPingTimeout: 5 * time.Second, PingTimeout: 5 * time.Second},
	}
	return &http.Client{Transport: tr}, dials, n.Link(app, host), func() {
		tr.CloseIdleConnections()
		srv.Close()
	}
}

func get(ctx context.Context, client *http.Client) error {
	req, err := http.NewRequestWithContext(ctx, "GET", "https://server/", nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// pooled uses one connection again and again, loses it to a silent path, and
// gets a new one.
func pooled(h2 bool) func(t *testing.T, n *netsim.Network) {
	return func(t *testing.T, n *netsim.Network) {
		client, dials, link, stop := web(t, n, h2)
		defer stop()
		for range 5 {
			require.NoError(t, get(t.Context(), client))
		}
		assert.EqualValues(t, 1, dials.Load(), "keep-alive: one connection for all")

		link.Cut()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		assert.ErrorIs(t, get(ctx, client), context.DeadlineExceeded)
		cancel()
		time.Sleep(time.Minute)
		link.Heal()
		assert.NoError(t, get(t.Context(), client))
		assert.EqualValues(t, 2, dials.Load(), "the silent connection was given up")
	}
}

func TestHTTP1PoolsReplay(t *testing.T) { replays(t, pooled(false)) }
func TestHTTP2Pools(t *testing.T)       { netsim.Run(t, pooled(true), rough) }

// resumed talks TLS twice with one session cache.
func resumed(t *testing.T, n *netsim.Network) {
	host, app := n.Host("server"), n.Host("app")
	cert, roots := certificate(t, "server")
	l := tls.NewListener(listen(t, host, ":443"), &tls.Config{Certificates: []tls.Certificate{cert}})
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			io.Copy(c, c)
			c.Close()
		}
	}()
	conf := &tls.Config{RootCAs: roots, ServerName: "server", ClientSessionCache: tls.NewLRUClientSessionCache(4)}
	for i := range 3 {
		d := tls.Config{RootCAs: conf.RootCAs, ServerName: conf.ServerName, ClientSessionCache: conf.ClientSessionCache}
		raw, err := app.Dial("tcp", "server:443")
		require.NoError(t, err)
		c := tls.Client(raw, &d)
		_, err = c.Write([]byte("hello"))
		require.NoError(t, err)
		_, err = io.ReadFull(c, make([]byte, 5))
		require.NoError(t, err)
		assert.Equal(t, i > 0, c.ConnectionState().DidResume)
		require.NoError(t, c.Close())
	}
	n.Path(host, app).Cut()
	raw, err := app.Dial("tcp", "server:443")
	var op *net.OpError
	assert.Nil(t, raw)
	assert.ErrorAs(t, err, &op)
	assert.True(t, op.Timeout())
}

func TestTLSResumptionReplays(t *testing.T) { replays(t, resumed) }
