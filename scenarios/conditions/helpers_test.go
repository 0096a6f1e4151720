package conditions_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/netsim"
)

const ms = time.Millisecond

// tenms is a network with 10 ms each way.
var tenms = netsim.Defaults(netsim.Conditions{Latency: 10 * ms})

func listen(t *testing.T, h *netsim.Host, address string) net.Listener {
	t.Helper()
	l, err := h.Listen("tcp", address)
	require.NoError(t, err)
	return l
}

// serve runs an HTTP server on l until the test ends. Its connections send no
// keep-alive probes, which would keep idle flows known.
func serve(t *testing.T, l net.Listener, h http.HandlerFunc) {
	s := &http.Server{Handler: h, ConnContext: func(ctx context.Context, c net.Conn) context.Context {
		c.(*netsim.Conn).SetKeepAlive(false)
		return ctx
	}}
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
}

// echo sends back what comes, until l is closed.
func echo(t *testing.T, l net.Listener) {
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				io.Copy(c, c)
			}()
		}
	}()
}

func dial(t *testing.T, h *netsim.Host, address string) *netsim.Conn {
	t.Helper()
	c, err := h.DialContext(t.Context(), "tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c.(*netsim.Conn)
}

// ask writes a byte and waits for its echo, up to limit.
func ask(c net.Conn, limit time.Duration) error {
	c.SetDeadline(time.Now().Add(limit))
	if _, err := c.Write([]byte("?")); err != nil {
		return err
	}
	_, err := io.ReadFull(c, make([]byte, 1))
	return err
}

func after(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}

// get asks for a page and reads all of it.
func get(c *http.Client, url string) error {
	resp, err := c.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// dials counts the streams that hosts opened to a port.
func dials(n *netsim.Network, port uint16) int {
	return n.Trace().Count(func(e netsim.Event) bool {
		return e.Kind == netsim.SYN && e.Dst.Port() == port && !e.Again && e.Fate != netsim.Note
	})
}

// udpAddr is where to send a datagram for a host.
func udpAddr(h *netsim.Host, port int) *net.UDPAddr {
	return &net.UDPAddr{IP: h.Addr().AsSlice(), Port: port}
}
