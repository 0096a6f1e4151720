package transportrace

import (
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/netsim"
	"github.com/seed-5a7f77c4/deadair/scenarios"
	"github.com/seed-5a7f77c4/deadair/scenarios/ca"
	"github.com/seed-5a7f77c4/deadair/selection/memory"
)

// The world's addresses.
const (
	LAN     = "192.168.1.10"
	Tailnet = "100.64.0.10"
	Relay   = "wss://relay.example/tunnel/m1"
)

// Port is where the machine listens if Setup says nothing.
const Port = 8787

// owner is the account that owns the relay.
const owner = "ann"

// AllRoutes are the ways to the machine: LAN, tailnet and relay.
var AllRoutes = RoutesAt(Port)

// RelayOnly is the way through the relay alone.
var RelayOnly = AllRoutes[2:]

// RoutesAt are the ways to a machine that listens on this port.
func RoutesAt(port uint16) []memory.Route {
	return []memory.Route{{Address: LAN, Port: port}, {Address: Tailnet, Port: port}, {Address: Relay, Owner: owner}}
}

// Setup is how the world starts.
type Setup struct {
	// Relay is how the relay treats its clients.
	Relay Tunnels
	// TokenAfter is the account service's time to answer.
	TokenAfter time.Duration
	// Port is where the machine listens. Default: Port.
	Port uint16
	// Unregistered leaves the relay without the machine's control socket.
	Unregistered bool
}

// World is the phone's surroundings. Use NewWorld.
type World struct {
	*scenarios.Play
	// WiFi, Cell and Tail are the phone's interfaces; all are down at first.
	WiFi, Cell, Tail *netsim.Interface
	// Machine is the server at the other end, Relay the tunnel relay before it.
	Machine *Machine
	Relay   *Tunneller

	port                      uint16
	ctx                       context.Context
	phone, machine, relayHost *netsim.Host
	authority                 *ca.Authority
	system                    system
	discovery                 discovery
}

// NewWorld builds the world and starts its programs.
func NewWorld(p *scenarios.Play, s Setup) *World {
	ctx, cancel := context.WithCancel(p.Context())
	if s.Port == 0 {
		s.Port = Port
	}
	w := &World{Play: p, port: s.Port, ctx: ctx, phone: p.Net.Host("phone"), machine: p.Net.Host("machine")}
	// A mobile system ends the sockets of an address that goes away, but for those of a tunnel: these hang.
	w.WiFi = w.phone.Interface("wifi", netsim.Wireless, netsim.Zone(Home), netsim.Addresses(wifiAddress(Home)), netsim.StartsDown(), netsim.WhenGone(netsim.Abort))
	w.Cell = w.phone.Interface("cell", netsim.Cellular, netsim.StartsDown(), netsim.WhenGone(netsim.Abort))
	w.Tail = w.phone.Interface("tail", netsim.Tailnet, netsim.Zone("tailnet"), netsim.Addresses("100.64.0.2"), netsim.Isolated(), netsim.StartsDown(), netsim.WhenGone(netsim.Vanish))
	w.machine.Interface("lan", netsim.Wired, netsim.Zone(Home), netsim.Addresses(LAN))
	w.machine.Interface("tail", netsim.Tailnet, netsim.Zone("tailnet"), netsim.Addresses(Tailnet), netsim.Isolated())
	both := func(i *netsim.Interface, d time.Duration) {
		i.SetConditions(netsim.Conditions{Latency: d}, netsim.Conditions{Latency: d})
	}
	both(w.Cell, 30*ms)
	both(w.Tail, 2310*time.Microsecond) // what the LAN and the tailnet do falls into no common instant

	var err error
	w.authority, err = ca.New(1, time.Now())
	require.NoError(p, err)
	w.Relay = newTunneller(w, s.Relay)
	w.relayHost = p.Net.Host("relay.example")
	w.serve(w.relayHost, w.Relay)
	w.serve(p.Net.Host("account.example"), http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		time.Sleep(s.TokenAfter)
		io.WriteString(rw, token)
	}))
	w.Machine = &Machine{w: w}
	w.Machine.Listen(s.Port)
	p.Cleanup(cancel)
	p.Go("relay sweep", w.Relay.sweep)
	if !s.Unregistered {
		require.NoError(p, w.Machine.register())
	}
	return w
}

// neighbour puts another host beside the machine, with nothing that listens.
func (w *World) neighbour(name, address string) {
	w.Net.Host(name).Interface("lan", netsim.Wired, netsim.Zone(Home), netsim.Addresses(address))
}

// serve starts a program with TLS on its host.
func (w *World) serve(host *netsim.Host, h http.Handler) {
	cert, err := w.authority.Leaf(host.Name())
	require.NoError(w, err)
	w.listen(host, ":443", h, &tls.Config{Certificates: []tls.Certificate{cert}})
}

func (w *World) listen(host *netsim.Host, address string, h http.Handler, secure *tls.Config) {
	l, err := host.Listen("tcp", address)
	require.NoError(w, err)
	l = edge{l}
	if secure != nil {
		l = tls.NewListener(l, secure)
	}
	server := &http.Server{Handler: h, ErrorLog: log.New(io.Discard, "", 0), BaseContext: func(net.Listener) context.Context { return w.ctx }}
	w.Cleanup(func() { server.Close() })
	w.Go("serve "+host.Name()+address, func() { server.Serve(l) })
}

// edge stands in front of a service, as a provider's edge does: the service never learns that a client has vanished.
type edge struct{ net.Listener }

func (e edge) Accept() (net.Conn, error) {
	c, err := e.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return c, c.(*netsim.Conn).SetKeepAlive(false)
}

// client is an HTTP client on a host, one connection for each request. Its sockets send no probes of their own, as on a
// mobile system: signs of life are the programs' business.
func (w *World) client(h *netsim.Host) *http.Client {
	quiet := netsim.Dialer{Host: h, KeepAlive: -1}
	return &http.Client{Transport: &http.Transport{
		DialContext:       quiet.DialContext,
		DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{
			RootCAs: w.authority.Pool(), Time: time.Now,
			CurvePreferences: []tls.CurveID{tls.X25519}, // the post-quantum exchange costs as much as the rest together
		},
	}}
}

func (w *World) dialing(h *netsim.Host) *websocket.DialOptions {
	return &websocket.DialOptions{HTTPClient: w.client(h)}
}
