package blackhole

import (
	"context"
	"errors"
	"fmt"
	"net"
)

// DialFunc is the shape of net.Dialer.DialContext.
type DialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// Client puts faults on a connection at the end that dialled: what it writes goes up. The result has CloseRead,
// CloseWrite and the other methods of a [TCPConn] if inner has the two. Closing it closes inner.
func Client(inner net.Conn, faults ...*Fault) (net.Conn, error) {
	return newConn("Client", inner, Up, faults)
}

// Server puts faults on a connection at the end that accepted: what it reads comes up. Otherwise it is like Client.
func Server(inner net.Conn, faults ...*Fault) (net.Conn, error) {
	return newConn("Server", inner, Down, faults)
}

// Listener puts faults on each connection that inner accepts. The faults are checked here, once; Accept returns an
// error of its own only for a half-close on a connection that has no CloseWrite, which it closes.
func Listener(inner net.Listener, faults ...*Fault) (net.Listener, error) {
	if inner == nil {
		return nil, errors.New("blackhole: Listener: the inner listener is nil")
	}
	if err := validateFaults(faults); err != nil {
		return nil, err
	}
	return &listener{inner, faults}, nil
}

type listener struct {
	net.Listener
	faults []*Fault
}

func (l *listener) Accept() (net.Conn, error) {
	inner, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return wrapOrClose(Server, inner, l.faults)
}

// Dialer puts faults on each connection that dial makes.
func Dialer(dial DialFunc, faults ...*Fault) (DialFunc, error) {
	if dial == nil {
		return nil, errors.New("blackhole: Dialer: the dial function is nil")
	}
	if err := validateFaults(faults); err != nil {
		return nil, err
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		inner, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return wrapOrClose(Client, inner, faults)
	}, nil
}

func wrapOrClose(wrap func(net.Conn, ...*Fault) (net.Conn, error), inner net.Conn, faults []*Fault) (net.Conn, error) {
	c, err := wrap(inner, faults...)
	if err != nil {
		inner.Close()
	}
	return c, err
}

func validateFaults(faults []*Fault) error {
	for _, f := range faults {
		if err := f.Validate(); err != nil {
			return err
		}
	}
	return nil
}

// newConn wraps inner, whose holder writes in direction out.
func newConn(call string, inner net.Conn, out Direction, faults []*Fault) (net.Conn, error) {
	if inner == nil {
		return nil, fmt.Errorf("blackhole: %s: the inner connection is nil", call)
	}
	if err := validateFaults(faults); err != nil {
		return nil, err
	}
	stream, halves := inner.(halfCloser)
	for _, f := range faults {
		if f.Do.how == breakOff(actHalfClose) && !halves {
			return nil, fmt.Errorf("blackhole: fault %q: %T has no CloseWrite and CloseRead to half-close with", f.String(), inner)
		}
	}
	c := start(inner, out, faults)
	if halves {
		return &TCPConn{Conn: c, inner: stream}, nil
	}
	return c, nil
}
