package programs

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/armon/go-socks5"
	"github.com/coder/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/proxy"

	"github.com/seed-5a7f77c4/deadair/netsim"
)

type noNames struct{}

func (noNames) Resolve(ctx context.Context, name string) (context.Context, net.IP, error) {
	return ctx, nil, nil // the simulated host resolves names when it dials
}

// proxied reaches an echo server through a SOCKS relay, which then goes silent.
func proxied(t *testing.T, n *netsim.Network) {
	app, relay, server := n.Host("app"), n.Host("relay"), n.Host("server")
	echo := listen(t, server, ":7")
	go func() {
		c, err := echo.Accept()
		if err == nil {
			io.Copy(c, c)
			c.Close()
		}
	}()
	srv, err := socks5.New(&socks5.Config{
		Resolver: noNames{}, Logger: log.New(io.Discard, "", 0),
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			return relay.DialContext(ctx, network, address)
		},
	})
	require.NoError(t, err)
	l := listen(t, relay, ":1080")
	go srv.Serve(l)
	defer l.Close()
	d, err := proxy.SOCKS5("tcp", "relay:1080", nil, app)
	require.NoError(t, err)
	c, err := d.Dial("tcp", server.Addr().String()+":7")
	require.NoError(t, err)
	buf := make([]byte, 100_000)
	go c.Write(buf)
	_, err = io.ReadFull(c, buf)
	require.NoError(t, err)
	c.Close()
	time.Sleep(time.Second)

	n.Path(relay, app).Cut()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	_, err = d.(proxy.ContextDialer).DialContext(ctx, "tcp", server.Addr().String()+":7")
	assert.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestSOCKSReplays(t *testing.T) { replays(t, proxied) }

// chat sends messages over a websocket until the server's host crashes.
func chat(t *testing.T, n *netsim.Network) {
	app, host := n.Host("app"), n.Host("server")
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer c.CloseNow()
		for {
			kind, msg, err := c.Read(r.Context())
			if err != nil || c.Write(r.Context(), kind, msg) != nil {
				return
			}
		}
	})}
	go srv.Serve(listen(t, host, ":80"))
	defer srv.Close()
	tr := &http.Transport{DialContext: app.DialContext}
	defer tr.CloseIdleConnections()
	c, _, err := websocket.Dial(t.Context(), "ws://server/", &websocket.DialOptions{HTTPClient: &http.Client{Transport: tr}})
	require.NoError(t, err)
	defer c.CloseNow()
	for range 5 {
		require.NoError(t, c.Write(t.Context(), websocket.MessageText, []byte("hello")))
		_, msg, err := c.Read(t.Context())
		require.NoError(t, err)
		assert.Equal(t, "hello", string(msg))
	}
	n.Link(app, host).Cut()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	require.NoError(t, c.Write(ctx, websocket.MessageText, []byte("hello")), "the send buffer takes it")
	_, _, err = c.Read(ctx)
	assert.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestWebSocketReplays(t *testing.T) { replays(t, chat) }
