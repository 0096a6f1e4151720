package transportrace

import (
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/netsim"
	"github.com/seed-5a7f77c4/deadair/scenarios"
	"github.com/seed-5a7f77c4/deadair/scenarios/privaterouting/ca"
)

// The world's addresses.
const (
	LAN     = "192.168.1.10"
	Tailnet = "100.64.0.10"
	Relay   = "wss://relay.example/tunnel/m1"
)

// Setup is how the world starts, and how its relay behaves.
type Setup struct {
	// AcceptedAfter is the relay's time to accept, ColdStart its time to wake up and find the machine.
	AcceptedAfter, ColdStart time.Duration
	// OldRelay knows no ready=2. NeverReady accepts and says no more. ReadyFirst says ready before accepted.
	OldRelay, NeverReady, ReadyFirst bool
	// Orphans is the number of tunnels that are taken from the start by clients that have vanished.
	Orphans int
	// TokenAfter is the account service's time to answer.
	TokenAfter time.Duration
}

// World is the phone's surroundings. Use NewWorld.
type World struct {
	*scenarios.Play
	// WiFi, Cell and Tail are the phone's interfaces; all are down at first.
	WiFi, Cell, Tail *netsim.Interface

	ctx            context.Context
	phone, machine *netsim.Host
	relayHost      *netsim.Host
	authority      *ca.Authority
	relay          *relay
	mu             sync.Mutex
	discovered     bool
	watchers       []func(bool)
}

// NewWorld builds the world and starts its programs.
func NewWorld(p *scenarios.Play, s Setup) *World {
	ctx, cancel := context.WithCancel(p.Context())
	w := &World{Play: p, ctx: ctx, phone: p.Net.Host("phone"), machine: p.Net.Host("machine")}
	w.WiFi = w.phone.Interface("wifi", netsim.Wireless, netsim.Zone("home"), netsim.Addresses("192.168.1.23"), netsim.StartsDown(), netsim.WhenGone(netsim.Abort))
	w.Cell = w.phone.Interface("cell", netsim.Cellular, netsim.StartsDown(), netsim.WhenGone(netsim.Abort))
	w.Tail = w.phone.Interface("tail", netsim.Tailnet, netsim.Zone("tailnet"), netsim.Addresses("100.64.0.2"), netsim.Isolated(), netsim.StartsDown(), netsim.WhenGone(netsim.Abort))
	w.machine.Interface("lan", netsim.Wired, netsim.Zone("home"), netsim.Addresses(LAN))
	w.machine.Interface("tail", netsim.Tailnet, netsim.Zone("tailnet"), netsim.Addresses(Tailnet), netsim.Isolated())
	w.Cell.SetConditions(netsim.Conditions{Latency: 30 * time.Millisecond}, netsim.Conditions{Latency: 30 * time.Millisecond})

	var err error
	w.authority, err = ca.New(1, time.Now())
	require.NoError(p, err)
	w.relay = newRelay(ctx, s)
	w.relayHost = p.Net.Host("relay.example")
	w.serve(w.relayHost, w.relay)
	w.serve(p.Net.Host("account.example"), http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		time.Sleep(s.TokenAfter)
		io.WriteString(rw, "token of ann")
	}))
	w.listen(w.machine, ":8787", &machine{ctx: ctx, began: time.Now(), token: func(t string) bool { return t == "token of ann" }}, nil)
	p.Cleanup(cancel)
	p.Go("relay sweep", w.relay.sweep)
	require.NoError(p, w.serveRelay())
	return w
}

func (w *World) serve(host *netsim.Host, h http.Handler) {
	cert, err := w.authority.Leaf(host.Name())
	require.NoError(w, err)
	w.listen(host, ":443", h, &tls.Config{Certificates: []tls.Certificate{cert}})
}

func (w *World) listen(host *netsim.Host, address string, h http.Handler, secure *tls.Config) {
	l, err := host.Listen("tcp", address)
	require.NoError(w, err)
	if secure != nil {
		l = tls.NewListener(l, secure)
	}
	server := &http.Server{Handler: h, ErrorLog: log.New(io.Discard, "", 0), BaseContext: func(net.Listener) context.Context { return w.ctx }}
	w.Cleanup(func() { server.Close() })
	w.Go("serve "+host.Name(), func() { server.Serve(l) })
}

// client is an HTTP client on a host, one connection for each request.
func (w *World) client(h *netsim.Host) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext:       h.DialContext,
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{RootCAs: w.authority.Pool(), Time: time.Now},
	}}
}

func (w *World) dialing(h *netsim.Host) *websocket.DialOptions {
	return &websocket.DialOptions{HTTPClient: w.client(h)}
}

// Discover lets the machine appear in the phone's discovery, or vanish from it.
func (w *World) Discover(seen bool) {
	w.mu.Lock()
	w.discovered = seen
	watchers := w.watchers
	w.mu.Unlock()
	for _, f := range watchers {
		f(seen)
	}
}

// Dials gives the times and the kinds of the phone's sockets at the relay.
func (w *World) Dials() int { return len(w.relay.seen()) }

// FirstDirect gives the time of the phone's first packet to a direct address of the machine.
func (w *World) FirstDirect() (time.Duration, bool) {
	e, ok := w.Net.Trace().First(func(e netsim.Event) bool {
		return e.From == "phone" && e.Kind&netsim.SYN != 0 && e.Dst.Port() == 8787
	})
	return e.Sent, ok
}
