package transportrace

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/coder/websocket"

	"github.com/seed-5a7f77c4/deadair/selection/handshake"
	"github.com/seed-5a7f77c4/deadair/selection/route"
)

// attempt makes one connection to the machine.
func (p *Phone) attempt(ctx context.Context, c route.Candidate, opened func()) (*Conn, error) {
	defer p.attempting(c)()
	if c.Class() == route.Relay {
		return p.tunnel(ctx, c, opened)
	}
	ws, _, err := websocket.Dial(ctx, "ws://"+c.Target(), p.w.dialing(p.w.phone))
	if err != nil {
		return nil, err
	}
	opened()
	if err := p.hello(ctx, ws, ""); err != nil {
		ws.CloseNow()
		return nil, err
	}
	if c.Class() == route.Tailnet {
		time.Sleep(p.Keystore)
	}
	return p.keep(ws, c, false), nil
}

// tunnel makes one connection through the relay.
func (p *Phone) tunnel(ctx context.Context, c route.Candidate, opened func()) (*Conn, error) {
	d := handshake.Dialer[*socket]{
		Open: func(ctx context.Context, url string, v2 bool) (*socket, error) {
			if v2 {
				url += "?ready=2"
			}
			ws, _, err := websocket.Dial(ctx, url, p.w.dialing(p.w.phone))
			return &socket{ws}, err
		},
		Token: p.token,
		Signal: func(ctx context.Context, s *socket) (handshake.Signal, error) {
			m, err := receive(ctx, s.Conn)
			return map[string]handshake.Signal{"accepted": handshake.Accepted, "ready": handshake.Ready}[m.Type], err
		},
		Hello:    func(ctx context.Context, s *socket, token string) error { return p.hello(ctx, s.Conn, token) },
		Registry: p.registry, Policy: p.subject.Handshake,
	}
	s, v2, err := d.Dial(ctx, c.Target(), p.Endpoint(c.Key()).NegotiatedReadyV2, opened)
	if err != nil {
		return nil, err
	}
	return p.keep(s.Conn, c, v2), nil
}

// socket closes a WebSocket at once.
type socket struct{ *websocket.Conn }

func (s *socket) Close() error { return s.CloseNow() }

// token asks the account service.
func (p *Phone) token(ctx context.Context) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://account.example/token", nil)
	if err != nil {
		return "", err
	}
	resp, err := p.w.client(p.w.phone).Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return string(data), err
}

// hello authenticates the app at the machine.
func (p *Phone) hello(ctx context.Context, ws *websocket.Conn, token string) error {
	if p.KeyLost {
		return fmt.Errorf("hello: %w", route.ErrKeyProof)
	}
	hello := message{Type: "hello", Secret: secret, Token: token, Stream: p.Stream, N: p.received()}
	if err := send(ctx, ws, hello); err != nil {
		return err
	}
	m, err := receive(ctx, ws)
	if err != nil {
		return err
	}
	switch m.Type {
	case Welcome:
		return nil
	case Account:
		return fmt.Errorf("hello: %w", route.ErrAccount)
	case Version:
		return fmt.Errorf("hello: %w", route.ErrVersion)
	}
	return fmt.Errorf("hello: the machine says %q", m.Type)
}
