package conditions_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/proxy"

	"github.com/seed-5a7f77c4/deadair/netsim"
	"github.com/seed-5a7f77c4/deadair/scenarios/conditions"
	"github.com/seed-5a7f77c4/deadair/socksrelay"
)

// A tunnel connects an app with a backend, port 7, by way of a relay.
type tunnel func(t *testing.T, app, relay, backend *netsim.Host) net.Conn

func direct(t *testing.T, app, _, _ *netsim.Host) net.Conn { return dial(t, app, "backend:7") }

func throughSOCKS(t *testing.T, app, relay, _ *netsim.Host) net.Conn {
	r, err := socksrelay.New(socksrelay.Config{Dial: relay.DialContext})
	require.NoError(t, err)
	go r.Serve(listen(t, relay, ":1080"))
	t.Cleanup(func() { r.Close() })
	raw := dial(t, app, "relay:1080") // what the client of golang.org/x/net gives has no CloseWrite
	d, err := proxy.SOCKS5("tcp", "relay:1080", nil, there{raw})
	require.NoError(t, err)
	_, err = d.Dial("tcp", "backend:7")
	require.NoError(t, err)
	return raw
}

// there is a dialer whose connection exists.
type there struct{ net.Conn }

func (d there) Dial(string, string) (net.Conn, error) { return d.Conn, nil }

const upgrade = "Connection: Upgrade\r\nUpgrade: tunnel\r\n\r\n"

func throughReverseProxy(t *testing.T, app, relay, _ *netsim.Host) net.Conn {
	rp := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: "backend:7"})
	tr := &http.Transport{DialContext: relay.DialContext}
	t.Cleanup(tr.CloseIdleConnections)
	rp.Transport = tr
	serve(t, listen(t, relay, ":80"), rp.ServeHTTP)
	c := dial(t, app, "relay:80")
	_, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: backend\r\n"+upgrade)
	require.NoError(t, err)
	resp, err := http.ReadResponse(bufio.NewReaderSize(c, 16), nil) // nothing comes behind it yet
	require.NoError(t, err)
	require.Equal(t, http.StatusSwitchingProtocols, resp.StatusCode)
	return c
}

// throughHasty goes through a proxy that ends with the first direction that does.
func throughHasty(t *testing.T, app, relay, _ *netsim.Host) net.Conn {
	l := listen(t, relay, ":7")
	t.Cleanup(func() { l.Close() })
	go func() {
		down, err := l.Accept()
		if err != nil {
			return
		}
		defer down.Close()
		up, err := relay.Dial("tcp", "backend:7")
		if err != nil {
			return
		}
		defer up.Close()
		first := make(chan struct{}, 2)
		copied := func(to, from net.Conn) {
			io.Copy(to, from)
			first <- struct{}{}
		}
		go copied(up, down)
		go copied(down, up)
		<-first
	}()
	return dial(t, app, "relay:7")
}

// lateBackend hears a stream to its end, after an upgrade if it is asked for one,
// and answers 200 ms later.
func lateBackend(t *testing.T, l net.Listener) (heard <-chan string) {
	t.Cleanup(func() { l.Close() })
	all := make(chan string, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		r := bufio.NewReader(c)
		if first, err := r.Peek(3); err == nil && string(first) == "GET" {
			if _, err := http.ReadRequest(r); err != nil {
				return
			}
			io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\n"+upgrade)
		}
		question, _ := io.ReadAll(r)
		all <- string(question)
		time.Sleep(200 * ms)
		io.WriteString(c, "answer")
	}()
	return all
}

// caddyserver/caddy#8026: the client has said its five bytes and ends its stream;
// the backend answers 200 ms later. The SOCKS relay and, since Go 1.25,
// httputil.ReverseProxy pass the end on and wait for the answer; a proxy that
// closes everything with the first direction loses it.
func TestHalfCloseAfter(t *testing.T) {
	for _, tc := range []struct {
		name   string
		by     tunnel
		answer string
	}{
		{"no proxy", direct, "answer"},
		{"socksrelay", throughSOCKS, "answer"},
		{"httputil.ReverseProxy", throughReverseProxy, "answer"},
		{"a hasty proxy", throughHasty, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			netsim.Run(t, func(t *testing.T, n *netsim.Network) {
				app, relay, backend := n.Host("app"), n.Host("relay"), n.Host("backend")
				heard := lateBackend(t, listen(t, backend, ":7"))
				c := conditions.HalfCloseAfter(tc.by(t, app, relay, backend), 5)
				c.SetDeadline(time.Now().Add(time.Minute))
				_, err := io.WriteString(c, "hello")
				require.NoError(t, err)
				var answer []byte
				took := after(func() { answer, err = io.ReadAll(c) })
				assert.NoError(t, err)
				assert.Equal(t, tc.answer, string(answer))
				assert.Equal(t, "hello", <-heard)
				if tc.answer != "" {
					assert.InDelta(t, 200*ms, took, float64(50*ms), "the wait, and one or two round trips")
				} else {
					assert.Less(t, took, 200*ms, "the end comes before the answer could")
				}
			}, tenms)
		})
	}
}
