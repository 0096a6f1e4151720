package conditions_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/netsim"
	"github.com/seed-5a7f77c4/deadair/scenarios/ca"
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

// hold accepts connections and does nothing with them, until l is closed.
func hold(t *testing.T, l net.Listener) {
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { c.Close() })
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

// certificate mints one for names, large enough that the flight which carries it
// fills more than a segment, and the pool that trusts it.
func certificate(t *testing.T, names ...string) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	for i := range 100 {
		names = append(names, fmt.Sprintf("alias%d.example", i))
	}
	authority, err := ca.New(1, time.Now())
	require.NoError(t, err)
	cert, err := authority.Leaf(names...)
	require.NoError(t, err)
	return cert, authority.Pool()
}

// silentLog is for what servers say about clients that misbehave on purpose.
var silentLog = log.New(io.Discard, "", 0)

// serveTLS is serve over TLS, HTTP/1.1 or 2 as the client likes.
func serveTLS(t *testing.T, l net.Listener, cert tls.Certificate, h http.HandlerFunc) {
	s := &http.Server{Handler: h, TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}}, ErrorLog: silentLog}
	go s.ServeTLS(l, "", "")
	t.Cleanup(func() { s.Close() })
}

// protocols are HTTP/2 without TLS, or HTTP/1.1.
func protocols(h2c bool) *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(!h2c)
	p.SetUnencryptedHTTP2(h2c)
	return p
}

func ok(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "ok") }
