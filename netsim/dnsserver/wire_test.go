package dnsserver_test

import (
	"context"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/netsim/dnsserver"
)

// wire connects resolvers to servers through memory, with a delay each way.
type wire struct {
	latency time.Duration

	mu      sync.Mutex
	servers map[string]*port
	dials   map[string]int // by network and address
}

// port is a server's place on the wire: a net.PacketConn and a net.Listener.
type port struct {
	wire    *wire
	address string
	packets chan packet
	streams chan net.Conn
	once    sync.Once
	closed  chan struct{}
}

type packet struct {
	data []byte
	from *client
}

func newWire(latency time.Duration) *wire {
	return &wire{latency: latency, servers: map[string]*port{}, dials: map[string]int{}}
}

// serve puts a server on the wire until the test ends.
func (w *wire) serve(t *testing.T, address string, zone dnsserver.Zone) *dnsserver.Server {
	p := &port{wire: w, address: address, packets: make(chan packet, 100), streams: make(chan net.Conn), closed: make(chan struct{})}
	w.servers[address] = p
	srv := dnsserver.New(zone)
	srv.Start(p, listener{p})
	t.Cleanup(func() { srv.Close() })
	return srv
}

func (w *wire) dial(ctx context.Context, network, address string) (net.Conn, error) {
	w.mu.Lock()
	w.dials[network+" "+address]++
	p := w.servers[address]
	w.mu.Unlock()
	fail := func(err error) (net.Conn, error) { return nil, &net.OpError{Op: "dial", Net: network, Err: err} }
	if err := ctx.Err(); err != nil {
		return fail(err)
	}
	if network == "udp" {
		return &client{wire: w, port: p, in: make(chan []byte, 100)}, nil
	}
	if p == nil {
		return fail(syscall.ECONNREFUSED)
	}
	ours, theirs := net.Pipe()
	select {
	case p.streams <- theirs:
		return ours, nil
	case <-ctx.Done():
		return fail(ctx.Err())
	}
}

func (p *port) ReadFrom(b []byte) (int, net.Addr, error) {
	select {
	case in := <-p.packets:
		return copy(b, in.data), in.from, nil
	case <-p.closed:
		return 0, nil, net.ErrClosed
	}
}

func (p *port) WriteTo(b []byte, to net.Addr) (int, error) {
	data := append([]byte(nil), b...)
	time.AfterFunc(p.wire.latency, func() { to.(*client).in <- data })
	return len(b), nil
}

func (p *port) Close() error                     { p.once.Do(func() { close(p.closed) }); return nil }
func (p *port) LocalAddr() net.Addr              { return nil }
func (p *port) SetDeadline(time.Time) error      { return nil }
func (p *port) SetReadDeadline(time.Time) error  { return nil }
func (p *port) SetWriteDeadline(time.Time) error { return nil }

type listener struct{ *port }

func (l listener) Addr() net.Addr { return nil }
func (l listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.streams:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// client is a connected UDP socket.
type client struct {
	wire     *wire
	port     *port // nil: nobody there, and silence
	in       chan []byte
	deadline time.Time
}

func (c *client) Write(b []byte) (int, error) {
	if c.port != nil {
		data := append([]byte(nil), b...)
		time.AfterFunc(c.wire.latency, func() { c.port.packets <- packet{data, c} })
	}
	return len(b), nil
}

func (c *client) Read(b []byte) (int, error) {
	timer := time.NewTimer(time.Until(c.deadline))
	defer timer.Stop()
	select {
	case data := <-c.in:
		return copy(b, data), nil
	case <-timer.C:
		return 0, &net.OpError{Op: "read", Net: "udp", Err: os.ErrDeadlineExceeded}
	}
}

func (c *client) ReadFrom(b []byte) (int, net.Addr, error) {
	n, err := c.Read(b)
	return n, c, err
}
func (c *client) WriteTo(b []byte, _ net.Addr) (int, error) { return c.Write(b) }

func (c *client) Network() string                    { return "udp" }
func (c *client) String() string                     { return "client" }
func (c *client) Close() error                       { return nil }
func (c *client) LocalAddr() net.Addr                { return c }
func (c *client) RemoteAddr() net.Addr               { return c }
func (c *client) SetDeadline(t time.Time) error      { c.deadline = t; return nil }
func (c *client) SetReadDeadline(t time.Time) error  { return c.SetDeadline(t) }
func (c *client) SetWriteDeadline(t time.Time) error { return nil }

const (
	oneAt   = "192.0.2.53:53"
	oneWay  = 500 * time.Microsecond
	oneTrip = 2 * oneWay
)

var zone = dnsserver.Zone{
	"app.example.": dnsserver.Addr("192.0.2.1", "192.0.2.2", "2001:db8::1"),
	"v4.example.":  dnsserver.Addr("192.0.2.4"),
}

// play runs a body in a bubble, with one server on a wire of 1 ms there and back.
func play(t *testing.T, f func(t *testing.T, w *wire, srv *dnsserver.Server, r *net.Resolver)) {
	t.Helper()
	dnsserver.Prime()
	synctest.Test(t, func(t *testing.T) {
		w := newWire(oneWay)
		srv := w.serve(t, oneAt, zone)
		f(t, w, srv, dnsserver.Resolver(w.dial, oneAt))
	})
}

// lasts says how long a call takes.
func lasts(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}

func dnsError(t *testing.T, err error) *net.DNSError {
	t.Helper()
	var e *net.DNSError
	require.ErrorAs(t, err, &e)
	return e
}
