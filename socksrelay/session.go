package socksrelay

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	socks5 "github.com/armon/go-socks5"

	"github.com/seed-5a7f77c4/deadair/blackhole"
)

// Connection describes one connection of a client.
type Connection struct {
	// N is its number, from 1.
	N int
	// Client is the client's address.
	Client string
	// Since is when it was accepted.
	Since time.Time
	// Phase is how far it has come: Greeting until the request is complete, then Dial, then Data.
	Phase Phase
	// User and Destination are known when the request is.
	User, Destination string
	// Up and Down are the bytes that came through from the client and that were given to it, the handshake included;
	// what a fault swallowed on its way up is not among them.
	Up, Down int64
	// Faults tells how the faults on the connection stand.
	Faults []blackhole.Status
}

// hit lists the faults that have touched the connection.
func (c Connection) hit() (names []string) {
	for _, f := range c.Faults {
		if f.Hits > 0 {
			names = append(names, f.Fault.String())
		}
	}
	return names
}

// session is one connection of a client. It is the whole configuration of a go-socks5 server that serves this one
// connection, so that nothing is shared and nothing has to be looked up.
type session struct {
	relay  *Relay
	n      int
	since  time.Time
	faults []*Fault
	client faulty // with the faults on it
	ctx    context.Context
	cancel context.CancelFunc

	phase     atomic.Int32
	mu        sync.Mutex // guards target, ended, user, asked and the timers
	target    net.Conn
	ended     bool
	user      string
	asked     string
	handshake *time.Timer
	acted     int64          // hits of the faults when the handshake was last found to be late
	gone      *time.Timer    // runs after the client's end of stream was lost
	code      byte           // of the reply; 0 leaves go-socks5's
	bound     netip.AddrPort // of the reply, if valid
	early     []byte         // what the client sent during the dial
}

func (s *session) serve() {
	defer s.relay.dismiss(s)
	defer s.Close()
	s.phase.Store(int32(Greeting))
	s.startHandshake()
	config := &socks5.Config{Resolver: s, Rules: s, Dial: s.dial, Logger: discard}
	if s.relay.config.Valid != nil {
		config.Credentials = s
	}
	server, err := socks5.New(config)
	if err != nil {
		s.relay.config.Logger.Error("go-socks5", "n", s.n, "error", err)
		return
	}
	err = server.ServeConn(&clientConn{Conn: s.client, s: s})
	end := s.describe()
	reason := "both streams have ended"
	if err != nil {
		reason = err.Error()
	}
	s.relay.config.Logger.Info("connection ended", "n", end.N, "client", end.Client, "destination", end.Destination,
		"up", end.Up, "down", end.Down, "faults", end.hit(), "reason", reason)
}

func (s *session) startHandshake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := s.relay.config.HandshakeTimeout; d > 0 {
		s.handshake = time.AfterFunc(d, s.late)
	}
}

// late ends a handshake that takes too long, unless a fault of ours has been the reason since the last look.
func (s *session) late() {
	if Phase(s.phase.Load()) != Greeting {
		return
	}
	var hits int64
	holding := false
	for _, f := range s.client.Faults() {
		hits += f.Hits
		holding = holding || f.Active && f.Hits > 0
	}
	s.mu.Lock()
	excused := holding || hits > s.acted
	s.acted = hits
	if excused && !s.ended {
		s.handshake.Reset(s.relay.config.HandshakeTimeout)
	}
	s.mu.Unlock()
	if !excused {
		s.relay.config.Logger.Warn("handshake took too long", "n", s.n, "client", s.client.RemoteAddr())
		s.Close()
	}
}

// lost is told that a fault has swallowed the end of the client's stream.
func (s *session) lost(err error) {
	if err != io.EOF {
		s.Close() // a reset: nobody is there any more
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := s.relay.config.GoneTimeout; d > 0 && !s.ended {
		s.gone = time.AfterFunc(d, func() { s.Close() })
	}
}

// found is told that the end of the client's stream has come through after all.
func (s *session) found() {
	s.mu.Lock()
	defer s.mu.Unlock()
	stopTimer(s.gone)
}

func stopTimer(t *time.Timer) {
	if t != nil {
		t.Stop()
	}
}

// faulty is what blackhole.Server returns.
type faulty interface {
	net.Conn
	Faults() []blackhole.Status
	Traffic() (read, written int64)
	OnLostEnd(f func(error))
}

// Close ends the session: its dial, its connections and with them its goroutines.
func (s *session) Close() error {
	s.cancel()
	s.mu.Lock()
	s.ended = true
	stopTimer(s.handshake)
	stopTimer(s.gone)
	t := s.target
	s.mu.Unlock()
	if t != nil {
		t.Close()
	}
	return s.client.Close()
}

// reach makes conn the destination of the session, or closes it if the session has ended meanwhile.
func (s *session) reach(conn net.Conn) (net.Conn, error) {
	bound(conn)
	s.mu.Lock()
	s.target = conn
	ended := s.ended
	s.mu.Unlock()
	if ended || s.ctx.Err() != nil {
		conn.Close()
		return nil, fmt.Errorf("the client has gone: %w", net.ErrClosed)
	}
	return &target{Conn: conn, s: s}, nil
}

func (s *session) describe() Connection {
	s.mu.Lock()
	c := Connection{N: s.n, Since: s.since, User: s.user, Destination: s.asked}
	s.mu.Unlock()
	c.Phase = Phase(s.phase.Load())
	if a := s.client.RemoteAddr(); a != nil {
		c.Client = a.String()
	}
	c.Faults = s.client.Faults()
	c.Up, c.Down = s.client.Traffic()
	return c
}

// Valid is go-socks5's CredentialStore.
func (s *session) Valid(user, password string) bool { return s.relay.config.Valid(user, password) }

// Resolve is go-socks5's NameResolver. It leaves the name as it is: dial resolves it, with a context that ends with
// the client.
func (s *session) Resolve(ctx context.Context, _ string) (context.Context, net.IP, error) {
	return ctx, nil, nil
}

// Allow is go-socks5's RuleSet; it also learns what the request is.
func (s *session) Allow(ctx context.Context, req *socks5.Request) (context.Context, bool) {
	s.mu.Lock()
	s.asked = req.DestAddr.Address()
	if req.AuthContext != nil {
		s.user = req.AuthContext.Payload["Username"]
	}
	stopTimer(s.handshake)
	s.mu.Unlock()
	s.phase.Store(int32(Dial))
	if req.Command == socks5.ConnectCommand && req.DestAddr.FQDN == "" && len(req.DestAddr.IP) == 0 {
		return ctx, false // go-socks5 takes an empty name for this machine
	}
	return ctx, s.relay.config.Allow == nil || s.relay.config.Allow(s.asked)
}

// dial is go-socks5's dial function.
func (s *session) dial(_ context.Context, network, destination string) (net.Conn, error) {
	var early bool
	for _, f := range s.faults {
		if !f.answers(s.user, destination) {
			continue
		}
		if f.Answer.Code != 0 {
			s.code = f.Answer.Code
			return nil, fmt.Errorf("fault %q: reply %d", f, s.code)
		}
		early = early || f.Answer.Early
		if f.Answer.Bound.IsValid() {
			s.bound = f.Answer.Bound
		}
	}
	if early {
		return s.reach(s.later(network, destination))
	}
	stop := s.watch()
	conn, err := s.connect(network, destination)
	stop()
	if err != nil {
		s.code = replyCode(err)
		return nil, err
	}
	return s.reach(conn)
}

// connect resolves and dials within the time for it and gives up when the client goes away.
func (s *session) connect(network, destination string) (net.Conn, error) {
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	if d := s.relay.config.DialTimeout; d > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, d)
		defer stop()
	}
	host, port := splitDestination(destination)
	if resolve := s.relay.config.Resolve; resolve != nil && net.ParseIP(host) == nil {
		ip, err := resolve(ctx, host)
		if err != nil {
			return nil, &ReplyError{Code: 4, Err: err}
		}
		destination = net.JoinHostPort(ip.String(), port)
	}
	return s.relay.config.Dial(ctx, network, destination)
}
