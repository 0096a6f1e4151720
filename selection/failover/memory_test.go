package failover_test

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/selection/failover"
	"github.com/seed-5a7f77c4/deadair/selection/retry"
)

// memory is a network of pipes: names, listeners, and refusals where nobody
// listens. It works inside a bubble, where a socket would stop the time.
type memory struct {
	mu        sync.Mutex
	listeners map[string]*memoryListener
}

type memoryListener struct {
	name   string
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

type memoryAddr string

func (a memoryAddr) Network() string { return "memory" }
func (a memoryAddr) String() string  { return string(a) }

func (l *memoryListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *memoryListener) Close() error   { l.once.Do(func() { close(l.closed) }); return nil }
func (l *memoryListener) Addr() net.Addr { return memoryAddr(l.name) }

func (m *memory) listen(name string) net.Listener {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.listeners == nil {
		m.listeners = make(map[string]*memoryListener)
	}
	l := &memoryListener{name: name, conns: make(chan net.Conn), closed: make(chan struct{})}
	m.listeners[name] = l
	return l
}

func (m *memory) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	l := m.listeners[host]
	m.mu.Unlock()
	if l == nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	}
	here, there := net.Pipe()
	select {
	case l.conns <- there:
		return here, nil
	case <-l.closed:
	case <-ctx.Done():
	}
	here.Close()
	return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
}

// serve answers for one name until the test is over.
func (m *memory) serve(t *testing.T, name string, h http.HandlerFunc) {
	server := &http.Server{Handler: h, ErrorLog: log.New(io.Discard, "", 0)}
	l := m.listen(name)
	done := make(chan struct{})
	go func() {
		defer close(done)
		server.Serve(l)
	}()
	t.Cleanup(func() { server.Close(); <-done })
}

// world is a proxy between a client and providers on a memory network.
type world struct {
	memory
	t         *testing.T
	transport *failover.Transport
	client    *http.Client
	mu        sync.Mutex
	chains    []retry.Chain
}

// newWorld makes a proxy for providers written as "A: a1 a2" (endpoints in order;
// the provider's own URL has the provider's name).
func newWorld(t *testing.T, change func(*failover.Config), providers ...string) *world {
	w := &world{t: t}
	config := failover.Config{Done: func(_ *http.Request, c retry.Chain) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.chains = append(w.chains, c)
	}}
	for _, line := range providers {
		name, endpoints, _ := strings.Cut(line, ":")
		p := retry.Provider{Name: name, Vendor: name, URL: "http://" + name}
		for i, id := range strings.Fields(endpoints) {
			p.Endpoints = append(p.Endpoints, retry.Endpoint{ID: id, URL: "http://" + id + "/base", Order: i})
		}
		config.Providers = append(config.Providers, failover.Provider{Provider: p})
	}
	base := failover.NewBase(w.memory.DialContext)
	base.DisableKeepAlives = true
	config.Base = base
	if change != nil {
		change(&config)
	}
	var err error
	w.transport, err = failover.New(config)
	require.NoError(t, err)
	w.serve(t, "proxy", failover.NewHandler(w.transport, nil).ServeHTTP)
	w.client = &http.Client{Transport: &http.Transport{DialContext: w.memory.DialContext, DisableKeepAlives: true}}
	return w
}

// chain waits for the end of the n-th request and gives its chain.
func (w *world) chain(n int) retry.Chain {
	w.t.Helper()
	for range 1000 {
		w.mu.Lock()
		if len(w.chains) > n {
			defer w.mu.Unlock()
			return w.chains[n]
		}
		w.mu.Unlock()
		time.Sleep(time.Millisecond) // of the bubble
	}
	w.t.Fatalf("request %d did not end", n)
	return nil
}

func (w *world) get(path string) (status int, body string) {
	w.t.Helper()
	resp, err := w.client.Get("http://proxy" + path)
	require.NoError(w.t, err)
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	require.NoError(w.t, err)
	return resp.StatusCode, string(data)
}

func answer(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

// hang waits until the proxy gives up.
func hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// events writes each piece and flushes it; "hang" waits, "break" breaks off.
func events(pieces ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		w.WriteHeader(200)
		w.(http.Flusher).Flush()
		for _, p := range pieces {
			switch p {
			case "hang":
				<-r.Context().Done()
				return
			case "break":
				panic(http.ErrAbortHandler)
			case "pause":
				time.Sleep(time.Second) // of the bubble
			default:
				io.WriteString(w, p)
				w.(http.Flusher).Flush()
			}
		}
	}
}
