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

// Dial makes one tunnel. opened is called once, when the first socket is open. v2 says that it negotiated ready=2. The
// error is a *TimeoutError, what the functions of the Dialer returned, or route.ErrBusy.
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
	var socket, last, flying int // socket that is in use (0: none yet), last one dialled, opens not yet reported
	drop := func() {
		if socket != 0 {
			conn.Close()
			socket = 0
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
				flying++
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
		if flying > 0 { // a socket that opens after the end is closed
			go func() {
				for flying > 0 {
					if e := <-events; e.opened {
						flying--
						if e.err == nil {
							e.s.Close()
						}
					}
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
				flying--
				switch {
				case e.err != nil:
					m.Broken(e.err)
				case e.socket != last:
					e.s.Close()
				default:
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
