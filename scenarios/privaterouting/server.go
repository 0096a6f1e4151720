package privaterouting

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/seed-5a7f77c4/deadair/clock"
	"github.com/seed-5a7f77c4/deadair/scenarios/privaterouting/wire"
	"github.com/seed-5a7f77c4/deadair/selection/forward"
	"github.com/seed-5a7f77c4/deadair/selection/share"
)

// DialFunc is how a program connects: a host's DialContext, or one that goes through a SOCKS relay.
type DialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// Port is where servers listen.
const Port = "5223"

// The times of a proxy towards a relay.
const (
	RelayConnectLimit = 45 * time.Second
	RelayAnswerLimit  = 30 * time.Second
	RelayErrorStored  = 30 * time.Second
)

// ServerConfig is what a server is made of.
type ServerConfig struct {
	// Name is the server's name, which is its host's.
	Name string
	// Listener is where it accepts.
	Listener net.Listener
	// Dial is how it reaches relays as a proxy. Without one it is no proxy, and refuses with BASIC_AUTH.
	Dial DialFunc
	// ServerTLS and ClientTLS are used when set; without them the server speaks in the clear.
	ServerTLS, ClientTLS *tls.Config
	// Password is what clients must present to a proxy; empty for an open one.
	Password string
	// Version is the protocol version it speaks; wire.Version if 0.
	Version uint16
	// Journal is told what it receives and answers.
	Journal *Journal
}

// MinVersion is the oldest relay version that a proxy forwards to.
const MinVersion = 2

// Server is a messaging server: a relay with queues and links, and a forwarding proxy if it has a way to dial.
type Server struct {
	config ServerConfig
	store  store
	script script

	ctx       context.Context
	stop      context.CancelFunc
	running   sync.WaitGroup
	upstreams *share.Group[string, *upstream]

	mu       sync.Mutex
	conns    map[*wire.Conn]struct{}
	sessions map[uint64]*upstream
	last     uint64
}

// Serve starts a server. It runs until Close. It panics on a config without a name, a listener or a journal, which is a
// mistake of the program.
func Serve(config ServerConfig) *Server {
	if config.Name == "" || config.Listener == nil || config.Journal == nil {
		panic(fmt.Sprintf("privaterouting: Serve: server %q needs a name, a listener and a journal", config.Name))
	}
	if config.Version == 0 {
		config.Version = wire.Version
	}
	s := &Server{
		config: config, store: newStore(), conns: map[*wire.Conn]struct{}{}, sessions: map[uint64]*upstream{},
		upstreams: share.NewGroup[string, *upstream](share.For(RelayErrorStored), clock.System),
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.running.Go(s.accept)
	return s
}

// Close stops the server, ends its connections and waits for everything it started.
func (s *Server) Close() error {
	s.stop()
	err := s.config.Listener.Close()
	s.mu.Lock()
	conns := make([]*wire.Conn, 0, len(s.conns))
	for c := range s.conns {
		conns = append(conns, c)
	}
	s.mu.Unlock()
	for _, c := range conns {
		c.Close()
	}
	s.running.Wait()
	return err
}

// Script makes the server react to messages as told; nil ends it.
func (s *Server) Script(react func(m wire.Message) Reaction) { s.script.set(react) }

func (s *Server) accept() {
	for {
		raw, err := s.config.Listener.Accept()
		if err != nil {
			if s.ctx.Err() == nil {
				s.note("accept", err.Error(), "")
			}
			return
		}
		s.running.Go(func() { s.serve(raw) })
	}
}

// serve handles one connection: TLS, then frames.
func (s *Server) serve(raw net.Conn) {
	if s.config.ServerTLS != nil {
		secure := tls.Server(raw, s.config.ServerTLS)
		if err := secure.HandshakeContext(s.ctx); err != nil {
			raw.Close()
			return
		}
		raw = secure
	}
	c := wire.NewConn(raw, wire.Events{Message: s.message})
	if !s.track(c) {
		raw.Close()
		return
	}
	if err := c.Serve(); errors.Is(err, wire.ErrMalformed) {
		s.note("malformed", err.Error(), "")
	}
	s.untrack(c)
	s.store.leave(c)
}

// track notes a connection that Close has to end. It reports false if the server is closed.
func (s *Server) track(c *wire.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return false
	}
	s.conns[c] = struct{}{}
	return true
}

func (s *Server) untrack(c *wire.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// message handles one frame. What may take long, or is held by the script, gets a goroutine of its own.
func (s *Server) message(c *wire.Conn, correlation uint64, m wire.Message) {
	s.note(m.Tag(), about(m), "")
	reaction := s.script.react(m)
	handle := func() {
		if answer := s.answer(reaction, m, c); answer != nil {
			if f, failed := answer.(*wire.Failure); failed {
				s.note("FAIL", f.Err().Error(), "to "+m.Tag())
			}
			// An error means that the connection is over, which Serve sees too.
			_ = c.Send(s.ctx, correlation, answer)
		}
	}
	switch m.(type) {
	case *wire.SessionRequest, *wire.Forward:
		s.running.Go(handle)
	default:
		if reaction.Until != nil {
			s.running.Go(handle)
			return
		}
		handle()
	}
}

// answer is the server's answer to a message; nil for none.
func (s *Server) answer(reaction Reaction, m wire.Message, c *wire.Conn) wire.Message {
	if !reaction.wait(s.ctx) {
		return nil
	}
	if reaction.Answer != nil {
		return reaction.Answer
	}
	switch m := m.(type) {
	case *wire.Hello:
		return &wire.Hello{Version: s.config.Version, Name: s.config.Name}
	case *wire.Ping:
		return &wire.Pong{}
	case *wire.SessionRequest:
		return s.session(m)
	case *wire.Forward:
		return s.forward(m)
	case *wire.RelayForward:
		return s.forwarded(m)
	}
	if answer := s.command(m, c); answer != nil {
		return answer
	}
	return &wire.Failure{Origin: forward.Broker, Code: forward.Unexpected, Detail: m.Tag()}
}

// forwarded carries out a command that came through a proxy.
func (s *Server) forwarded(m *wire.RelayForward) wire.Message {
	command, err := wire.Decode(m.Command)
	if err != nil {
		return &wire.Failure{Origin: forward.Proxy, Code: forward.Protocol, Detail: err.Error()}
	}
	s.note(command.Tag(), about(command), "forwarded")
	reaction := s.script.react(command)
	if reaction.Answer != nil {
		return &wire.RelayAnswer{Answer: wire.Encode(reaction.Answer)}
	}
	if answer := s.command(command, nil); answer != nil {
		return &wire.RelayAnswer{Answer: wire.Encode(answer)}
	}
	return &wire.Failure{Origin: forward.Proxy, Code: forward.Protocol, Detail: command.Tag()}
}

func (s *Server) note(what, about, text string) {
	s.config.Journal.Add(s.config.Name, what, about, text)
}

// about is the part of a message that a reader of the journal wants to see.
func about(m wire.Message) string {
	switch m := m.(type) {
	case *wire.SessionRequest:
		return m.Relay
	case *wire.Send:
		return m.Queue
	case *wire.Secure:
		return m.Queue
	case *wire.Subscribe:
		return m.Queue
	case *wire.NewQueue:
		return m.Queue
	case *wire.GetLink:
		return m.Link
	case *wire.PutLink:
		return m.Link
	}
	return ""
}
