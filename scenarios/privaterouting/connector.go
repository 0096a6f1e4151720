package privaterouting

import (
	"context"
	"crypto/tls"
	"sync"

	"github.com/seed-5a7f77c4/deadair/scenarios/privaterouting/wire"
	"github.com/seed-5a7f77c4/deadair/selection/forward"
	"github.com/seed-5a7f77c4/deadair/selection/pick"
)

// connector makes an app's connections: forward.Connector over the wire protocol.
type connector struct {
	dial    DialFunc
	tls     *tls.Config
	deliver func(*wire.Delivery)
	note    func(what, about, text string)
	running sync.WaitGroup
}

// Connect implements forward.Connector.
func (k *connector) Connect(ctx context.Context, to forward.Endpoint, watch forward.Watch) (forward.Link, error) {
	k.note("dial", to.Server.Name, "")
	raw, _, err := establish(ctx, k.dial, to.Server.Name, k.tls)
	if err != nil {
		k.note("undialled", to.Server.Name, err.Error())
		return nil, err
	}
	l := &agentLink{conn: wire.NewConn(raw, wire.Events{Received: watch.Received, Message: k.message})}
	k.running.Go(func() {
		err := l.conn.Serve()
		k.note("ended", to.Server.Name, "")
		watch.Ended(err)
	})
	return l, nil
}

// message takes what comes unasked; late answers are nobody's.
func (k *connector) message(_ *wire.Conn, _ uint64, m wire.Message) {
	if d, ok := m.(*wire.Delivery); ok {
		k.deliver(d)
	}
}

// agentLink is forward.Link over the wire protocol.
type agentLink struct{ conn *wire.Conn }

func (l *agentLink) Session(ctx context.Context, relay pick.Server, credentials string) (forward.Session, error) {
	answer, err := l.call(ctx, &wire.SessionRequest{Relay: relay.Name, Password: credentials})
	if err != nil {
		return 0, err
	}
	granted, ok := answer.(*wire.SessionGranted)
	if !ok {
		return 0, &forward.Error{Code: forward.Unexpected, Detail: answer.Tag()}
	}
	return forward.Session(granted.Session), nil
}

func (l *agentLink) Forward(ctx context.Context, s forward.Session, command []byte) ([]byte, error) {
	answer, err := l.call(ctx, &wire.Forward{Session: uint64(s), Command: command})
	if err != nil {
		return nil, err
	}
	response, ok := answer.(*wire.ForwardAnswer)
	if !ok {
		return nil, &forward.Error{Code: forward.Unexpected, Detail: answer.Tag()}
	}
	inner, err := wire.Decode(response.Answer)
	if err != nil {
		return nil, &forward.Error{Origin: forward.Relay, Code: forward.Unusable, Err: err}
	}
	if f, ok := inner.(*wire.Failure); ok {
		return nil, f.Err()
	}
	return response.Answer, nil
}

func (l *agentLink) Command(ctx context.Context, command []byte) ([]byte, error) {
	m, err := wire.Decode(command)
	if err != nil {
		return nil, err
	}
	answer, err := l.call(ctx, m)
	if err != nil {
		return nil, err
	}
	return wire.Encode(answer), nil
}

func (l *agentLink) Ping(ctx context.Context) error {
	_, err := l.call(ctx, &wire.Ping{})
	return err
}

func (l *agentLink) Close() error { return l.conn.Close() }

// call is a question whose failures are errors.
func (l *agentLink) call(ctx context.Context, m wire.Message) (wire.Message, error) {
	answer, err := l.conn.Call(ctx, m)
	if err != nil {
		return nil, err
	}
	if f, ok := answer.(*wire.Failure); ok {
		return nil, f.Err()
	}
	return answer, nil
}
