// Package privaterouting is the world of a messaging agent that reaches relays
// only through forwarding proxies, and its stories, PR-1 and on.
//
// The app asks a proxy for a session with a relay (PRXY) and sends commands
// through it (PFWD); the proxy forwards them (RFWD) and hands back the answers.
// Everything runs over TLS. Where the story says that a proxy is broken, its way
// to the relay leads through a SOCKS relay that passes every handshake and then
// swallows every byte: the connection stays open, and the proxy goes on
// answering PRXY from memory.
//
//	outcome := scenarios.Run(t, privaterouting.Stories()[0], privaterouting.Ours())
package privaterouting

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"

	"golang.org/x/net/proxy"

	"github.com/seed-5a7f77c4/deadair/blackhole"
	"github.com/seed-5a7f77c4/deadair/clock"
	"github.com/seed-5a7f77c4/deadair/netsim"
	"github.com/seed-5a7f77c4/deadair/scenarios"
	"github.com/seed-5a7f77c4/deadair/scenarios/ca"
	"github.com/seed-5a7f77c4/deadair/selection/forward"
	"github.com/seed-5a7f77c4/deadair/selection/pick"
	"github.com/seed-5a7f77c4/deadair/socksrelay"
)

// Latency is what every path of the world takes one way.
const Latency = 10 * time.Millisecond

// Names of hosts that every world has.
const (
	relayName = "r"    // the destination
	homeName  = "home" // the server at which the app receives
	socksName = "socks"
	user      = "ann"
)

// Setup says what a world is like.
type Setup struct {
	// Proxies are the user's proxies. Default: p1 and p2.
	Proxies []string
	// Broken are those of them whose way to the relay is swallowed.
	Broken []string
	// Draws are what the first draws of the pick must give; "" is anything. There is a draw at every call, also where
	// the choice in force overrides it. The later ones come from the run's seed.
	Draws []string
	// Plain leaves TLS out.
	Plain bool
	// Clock is what the app measures with. Default: the system's.
	Clock clock.Clock
	// Relays are further relays beside R.
	Relays []string
	// Direct says that the app may go to relays itself. Else every story fails in which it does.
	Direct bool
}

// World is who is there, ready to be used.
type World struct {
	play    *scenarios.Play
	setup   Setup
	subject Subject
	ca      *ca.Authority // none in a plain world
	hosts   map[string]*netsim.Host
	servers map[string]*Server

	mu     sync.Mutex
	change func(*forward.Config)

	// Journal is the record of what the actors did and received.
	Journal *Journal
	// App is the agent under test.
	App *App
	// Contact is the one who talks with the app.
	Contact *Contact
}

// NewWorld builds a world in a play. It ends with the play.
func NewWorld(p *scenarios.Play, subject Subject, s Setup) *World {
	if len(s.Proxies) == 0 {
		s.Proxies = []string{"p1", "p2"}
	}
	w := &World{
		play: p, setup: s, subject: subject,
		hosts: map[string]*netsim.Host{}, servers: map[string]*Server{}, Journal: newJournal(time.Now()),
	}
	if !s.Plain {
		var err error
		if w.ca, err = ca.New(1, time.Now()); err != nil {
			p.Fatal(err)
		}
	}
	relays := append([]string{relayName, homeName}, s.Relays...)
	for _, name := range slices.Concat([]string{"app", "contact", socksName}, relays, s.Proxies) {
		w.hosts[name] = p.Net.Host(name)
	}
	for _, name := range relays {
		w.serve(name, nil)
	}
	p.Cleanup(w.neverDirect)
	for _, name := range s.Proxies {
		dial := w.hosts[name].DialContext
		for _, broken := range s.Broken {
			if broken == name {
				dial = w.throughTheHole(name)
			}
		}
		w.serve(name, dial)
	}
	w.App = newApp(w, s.Draws, nil)
	w.Contact = newContact(w)
	return w
}

// serve starts a server on its host.
func (w *World) serve(name string, dial DialFunc) {
	l, err := w.hosts[name].Listen("tcp", ":"+Port)
	if err != nil {
		w.play.Fatal(err)
	}
	w.servers[name] = Serve(ServerConfig{
		Name: name, Listener: l, Dial: dial, ServerTLS: w.serverTLS(name), ClientTLS: w.clientTLS(), Journal: w.Journal,
	})
	w.play.Cleanup(func() { w.servers[name].Close() })
}

// serverTLS has no session tickets: they are sent when the handshake is over,
// and what the hole swallows is to be the protocol's.
func (w *World) serverTLS(name string) *tls.Config {
	if w.setup.Plain {
		return nil
	}
	cert, err := w.ca.Leaf(name)
	if err != nil {
		w.play.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{cert}, SessionTicketsDisabled: true}
}

func (w *World) clientTLS() *tls.Config {
	if w.setup.Plain {
		return nil
	}
	return &tls.Config{RootCAs: w.ca.Pool()}
}

// throughTheHole starts a SOCKS relay and gives the dial function that goes
// through it. It passes the SOCKS handshake, the TLS handshake and the two
// hellos, and then swallows every byte of both directions.
func (w *World) throughTheHole(name string) DialFunc {
	const helloes = 2 // the byte that would make the second turn is the first of the proxy's first RFWD
	when := blackhole.AfterTurns(helloes)
	if !w.setup.Plain {
		when = blackhole.Then(blackhole.AfterTLSHandshake(), when)
	}
	hole, err := socksrelay.New(socksrelay.Config{
		Dial:   w.hosts[socksName].DialContext,
		Faults: []*socksrelay.Fault{socksrelay.BlackHole(when)},
	})
	if err != nil {
		w.play.Fatal(err)
	}
	l, err := w.hosts[socksName].Listen("tcp", ":0")
	if err != nil {
		w.play.Fatal(err)
	}
	go hole.Serve(l)
	w.play.Cleanup(func() { hole.Close() })
	_, port, _ := net.SplitHostPort(l.Addr().String())
	client, err := proxy.SOCKS5("tcp", net.JoinHostPort(socksName, port), nil, forwardDialer(w.hosts[name].DialContext))
	if err != nil {
		w.play.Fatal(err)
	}
	return client.(proxy.ContextDialer).DialContext
}

// forwardDialer is a dial function as x/net/proxy wants it.
type forwardDialer DialFunc

func (d forwardDialer) Dial(network, address string) (net.Conn, error) {
	return d(context.Background(), network, address)
}

func (d forwardDialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return d(ctx, network, address)
}

// Host gives a host by its name.
func (w *World) Host(name string) *netsim.Host { return w.hosts[name] }

// Server gives a server by its name.
func (w *World) Server(name string) *Server { return w.servers[name] }

// Stop takes a server out of service: its host refuses connections.
func (w *World) Stop(name string) { w.servers[name].Close() }

// relay is a relay as the app knows it.
func relay(name string) pick.Server { return pick.Server{Name: name, Hosts: []string{name}} }

// destination is R.
var destination = relay(relayName)

// Configure changes the user's configuration from the next call on, in the place
// of an earlier change.
func (w *World) Configure(change func(*forward.Config)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.change = change
}

// Only leaves the user one proxy.
func (w *World) Only(name string) {
	w.Configure(func(c *forward.Config) {
		c.Servers = slices.DeleteFunc(c.Servers, func(s pick.Server) bool { return s.Name != name })
	})
}

// config is what the user has configured.
func (w *World) config() forward.Config {
	c := forward.Config{Mode: forward.Always}
	for _, name := range w.setup.Proxies {
		c.Servers = append(c.Servers, pick.Server{Name: name, Hosts: []string{name}, Enabled: true, Proxy: true})
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.change != nil {
		w.change(&c)
	}
	return c
}

// generator draws the picks: the first of them are those that the story needs,
// those after them come from the run's seed.
func (w *World) generator(draws []string) *rand.Rand {
	candidates := pick.Candidates(w.config().Servers, destination, w.subject.Policy.Cascade...)
	for stream := range uint64(1000) {
		rng := rand.New(rand.NewPCG(w.play.Seed, stream))
		if !slices.ContainsFunc(draws, func(want string) bool {
			got, ok := pick.One(rng, candidates)
			return !ok || want != "" && got.Name != want
		}) {
			return rand.New(rand.NewPCG(w.play.Seed, stream))
		}
	}
	w.play.Fatalf("privaterouting: the first draws cannot be %q", draws)
	return nil
}

// What a user sees of the two time-outs: the app's own, and the one that the proxy
// reports.
const (
	connectionTimeout = "Connection timeout"
	routingTimeout    = "Private routing timeout"
)

// errorText is what a user sees of an error.
func errorText(err error) string {
	e := forward.AsError(err)
	switch {
	case err == nil:
		return ""
	case e == nil && errors.Is(err, context.Canceled):
		return "Cancelled"
	case e == nil:
		return err.Error()
	case e.Origin == forward.Broker && e.Code == forward.Timeout:
		return connectionTimeout
	case e.Origin == forward.Proxy && e.Code == forward.Timeout:
		return routingTimeout
	}
	return fmt.Sprint(e)
}
