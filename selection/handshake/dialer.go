package handshake

import (
	"context"
	"io"
	"time"
)

// Dialer drives handshakes over sockets of type S. Every function must end when its ctx does.
type Dialer[S io.Closer] struct {
	// Open opens a socket to the relay, with ready=2 or without.
	Open func(ctx context.Context, url string, v2 bool) (S, error)
	// Token fetches the account's token.
	Token func(ctx context.Context) (string, error)
	// Signal reads the next signal; 0 stands for a message that is none. Its ctx ends only with the handshake.
	Signal func(ctx context.Context, s S) (Signal, error)
	// Hello sends the hello and waits for the answer.
	Hello func(ctx context.Context, s S, token string) error
	// Registry, if there is one, admits one dial to each machine.
	Registry *Registry
	Policy   Policy
}

// event is something that happened in one of a handshake's goroutines. socket is 0 for the token.
type event[S io.Closer] struct {
	socket int
	opened bool
	s      S
	signal Signal
	hello  bool
	token  string
	err    error
}

// Dial makes one tunnel. negotiated says that the endpoint has spoken ready=2 to the end before. opened is called once, when
// the first socket is open. v2 says that the tunnel negotiated ready=2. The error is a *TimeoutError, what the functions
// of the Dialer returned, route.ErrBusy from the Registry, or ctx's cause; conn is then the zero S, and every socket is
// closed, also one that opens later.
func (d Dialer[S]) Dial(ctx context.Context, url string, negotiated bool, opened func()) (conn S, v2 bool, err error) {
	var none S
	if d.Registry != nil {
		key := MachineKey(url)
		token, err := d.Registry.Acquire(key)
		if err != nil {
			return none, false, err
		}
		defer d.Registry.Release(key, token)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m := NewMachine(d.Policy, negotiated)
	// Room for all that can still be under way at the end: a token, a signal or a hello, and two sockets.
	events := make(chan event[S], 8)
	var token string
	var socket, last int // the socket that is in use, 0 for none, and the last one dialled, both counted from 1
	opening := false     // the last one: there is never a second before the first has opened or failed
	drop := func() {
		if socket != 0 {
			conn.Close()
			conn, socket = none, 0
		}
	}
	listen := func() {
		if m.Listening() {
			s, n := conn, socket
			go func() {
				signal, err := d.Signal(ctx, s)
				events <- event[S]{socket: n, signal: signal, err: err}
			}()
		}
	}
	do := func(ops []Op) {
		for _, op := range ops {
			switch op {
			case FetchToken:
				go func() {
					t, err := d.Token(ctx)
					events <- event[S]{token: t, err: err}
				}()
			case OpenV2, OpenLegacy:
				drop()
				last++
				opening = true
				n := last
				go func() {
					s, err := d.Open(ctx, url, op == OpenV2)
					events <- event[S]{socket: n, opened: true, s: s, err: err}
				}()
			case SendHello:
				s, n := conn, socket
				go func() { events <- event[S]{socket: n, hello: true, err: d.Hello(ctx, s, token)} }()
			}
		}
	}
	defer func() {
		if err != nil {
			drop()
		}
		if opening { // a socket that opens after the end is closed
			go func() {
				e := <-events
				for !e.opened {
					e = <-events
				}
				if e.err == nil {
					e.s.Close()
				}
			}()
		}
	}()
	do(m.Start(time.Now()))
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		if over, v2, err := m.Result(); over {
			return conn, v2, err
		}
		var due <-chan time.Time
		if wake, ok := m.Wake(); ok {
			timer.Reset(time.Until(wake))
			due = timer.C
		}
		select {
		case <-ctx.Done():
			return conn, false, context.Cause(ctx)
		case <-due:
			do(m.Tick(time.Now()))
		case e := <-events:
			now := time.Now()
			switch {
			case e.opened:
				opening = false
				if e.err != nil {
					m.Broken(e.err)
				} else {
					conn, socket = e.s, e.socket
					if socket == 1 {
						opened()
					}
					do(m.Opened(now))
					listen()
				}
			case e.socket == 0:
				token = e.token
				do(m.Token(e.err))
			case e.socket != socket: // of a socket given up
			case e.hello:
				m.Greeted(e.err)
			case e.err != nil:
				m.Broken(e.err)
			default:
				do(m.Heard(now, e.signal))
				listen()
			}
		}
	}
}
