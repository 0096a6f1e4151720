package privaterouting

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"

	"github.com/seed-5a7f77c4/deadair/scenarios/privaterouting/wire"
	"github.com/seed-5a7f77c4/deadair/selection/forward"
	"github.com/seed-5a7f77c4/deadair/selection/share"
)

// upstream is a proxy's session with a relay. All clients of the proxy share it.
type upstream struct {
	id      uint64
	relay   string
	version uint16
	conn    *wire.Conn
}

// session answers PRXY: from memory while the connection to the relay is believed to be up.
func (s *Server) session(m *wire.SessionRequest) wire.Message {
	switch {
	case s.config.Dial == nil:
		return &wire.Failure{Origin: forward.Proxy, Code: forward.BasicAuth, Detail: "no proxy"}
	case s.config.Password != m.Password:
		return &wire.Failure{Origin: forward.Proxy, Code: forward.BasicAuth}
	case strings.HasSuffix(m.Relay, ".onion"):
		return &wire.Failure{Origin: forward.Proxy, Code: forward.Host, Detail: m.Relay}
	}
	got, err := s.upstreams.Get(s.ctx, m.Relay, RelayConnectLimit, func(ctx context.Context, a share.Attempt) (*upstream, error) {
		return s.connect(ctx, m.Relay, a)
	})
	switch e := forward.AsError(err); {
	case err == nil:
		return &wire.SessionGranted{Session: got.Value.id, Version: got.Value.version}
	case got.How == share.Cancelled:
		return nil
	case e != nil:
		return &wire.Failure{Origin: forward.Proxy, Code: e.Code, Detail: e.Detail}
	}
	return &wire.Failure{Origin: forward.Proxy, Code: forward.Timeout} // the wait for another's attempt ran out
}

// connect makes a session with a relay. Its errors are *forward.Error.
func (s *Server) connect(ctx context.Context, relay string, a share.Attempt) (*upstream, error) {
	s.note("dial", relay, "")
	conn, name, err := establish(ctx, s.config.Dial, relay, s.config.ClientTLS)
	if err != nil {
		s.note("undialled", relay, err.Error())
		return nil, err
	}
	up := &upstream{relay: relay, version: name.Version, conn: wire.NewConn(conn, wire.Events{})}
	if name.Version < MinVersion {
		conn.Close()
		return nil, &forward.Error{Code: forward.Version, Detail: fmt.Sprint(name.Version)}
	}
	s.mu.Lock()
	if s.ctx.Err() != nil {
		s.mu.Unlock()
		conn.Close()
		return nil, s.ctx.Err()
	}
	s.last++
	up.id = s.last
	s.sessions[up.id] = up
	s.conns[up.conn] = struct{}{}
	s.mu.Unlock()
	s.note("up", relay, "")
	s.running.Go(func() {
		up.conn.Serve()
		s.untrack(up.conn)
		s.upstreams.Remove(relay, a)
		s.mu.Lock()
		delete(s.sessions, up.id)
		s.mu.Unlock()
		s.note("down", relay, "")
	})
	return up, nil
}

// forward answers PFWD.
func (s *Server) forward(m *wire.Forward) wire.Message {
	s.mu.Lock()
	up := s.sessions[m.Session]
	s.mu.Unlock()
	if up == nil {
		return &wire.Failure{Origin: forward.Proxy, Code: forward.NoSession}
	}
	ctx, cancel := context.WithTimeout(s.ctx, RelayAnswerLimit)
	defer cancel()
	answer, err := up.conn.Call(ctx, &wire.RelayForward{Command: m.Command})
	switch answer := answer.(type) {
	case *wire.RelayAnswer:
		return &wire.ForwardAnswer{Answer: answer.Answer}
	case *wire.Failure:
		return &wire.Failure{Origin: forward.Proxy, Code: answer.Code, Detail: answer.Detail}
	case nil:
		if s.ctx.Err() != nil {
			return nil
		}
		if errors.Is(err, context.DeadlineExceeded) {
			return &wire.Failure{Origin: forward.Proxy, Code: forward.Timeout}
		}
		return &wire.Failure{Origin: forward.Proxy, Code: forward.Network, Detail: err.Error()}
	}
	return &wire.Failure{Origin: forward.Proxy, Code: forward.Unexpected, Detail: answer.Tag()}
}

// Drop ends the server's connections to a relay, as a relay does that closes idle proxies.
func (s *Server) Drop(relay string) {
	s.mu.Lock()
	var conns []*wire.Conn
	for _, up := range s.sessions {
		if up.relay == relay {
			conns = append(conns, up.conn)
		}
	}
	s.mu.Unlock()
	for _, c := range conns {
		c.Close()
	}
}

// establish connects to a server up to its hello. Errors are *forward.Error with the origin Broker.
func establish(ctx context.Context, dial DialFunc, server string, config *tls.Config) (conn net.Conn, hello *wire.Hello, err error) {
	conn, err = dial(ctx, "tcp", net.JoinHostPort(server, Port))
	if err != nil {
		return nil, nil, connectError(ctx, forward.Network, err)
	}
	var once sync.Once
	abandon := context.AfterFunc(ctx, func() { once.Do(func() { conn.Close() }) })
	defer func() {
		if !abandon() && err == nil { // the time ran out in the very instant of success
			err = connectError(ctx, forward.Network, ctx.Err())
		}
		if err != nil {
			conn.Close()
			conn = nil
		}
	}()
	if config != nil {
		config = config.Clone()
		config.ServerName = server
		secure := tls.Client(conn, config)
		if err := secure.HandshakeContext(ctx); err != nil {
			return conn, nil, connectError(ctx, forward.Transport, err)
		}
		conn = secure
	}
	if err := wire.WriteFrame(conn, 0, &wire.Hello{Version: wire.Version}); err != nil {
		return conn, nil, connectError(ctx, forward.Network, err)
	}
	_, m, err := wire.ReadFrame(conn)
	if err != nil {
		return conn, nil, connectError(ctx, forward.Transport, err)
	}
	hello, ok := m.(*wire.Hello)
	if !ok {
		return conn, nil, &forward.Error{Code: forward.Unexpected, Detail: m.Tag()}
	}
	return conn, hello, nil
}

func connectError(ctx context.Context, code forward.Code, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return &forward.Error{Code: code, Err: err}
}
