package transportrace

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// The stream of a machine.
const (
	// tick is the time between two numbers; odd, so that it falls into no packet's instant.
	tick = 50_130 * time.Microsecond
	// kept is how many of the last numbers the machine keeps for a client that comes back: a second's.
	kept = 20
)

// What a client must bring.
const (
	secret = "the machine's secret"
	token  = "token of ann"
)

// A machine's answers to a hello. Silent is none at all.
const (
	Welcome  = "welcome"
	Stranger = "stranger"
	Account  = "account"
	Version  = "version"
	Silent   = "silent"
)

// Machine is the server at the other end: it authenticates a hello and then counts, from where the client stands.
type Machine struct {
	w *World

	mu     sync.Mutex
	answer string
	delay  time.Duration
	served []Served
}

// Served is an authenticated client of the machine. Ended is 0 while it is there.
type Served struct{ At, Ended time.Duration }

// Answer sets the answer to every sound hello from now on. Default: Welcome.
func (m *Machine) Answer(a string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.answer = a
}

// Delay makes every answer to a hello take so long from now on.
func (m *Machine) Delay(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.delay = d
}

// Served lists the clients that were authenticated, in order.
func (m *Machine) Served() []Served {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]Served(nil), m.served...)
}

// Listen makes the machine listen on one more port.
func (m *Machine) Listen(port uint16) { m.w.listen(m.w.machine, fmt.Sprint(":", port), m, nil) }

// verdict is the answer to a hello, and the time that it takes.
func (m *Machine) verdict(hello message) (string, time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case hello.Secret != secret:
		return Stranger, m.delay
	case hello.Token != "" && hello.Token != token:
		return Account, m.delay
	case m.answer != "":
		return m.answer, m.delay
	}
	return Welcome, m.delay
}

// enter notes an authenticated client. It gives what notes its end.
func (m *Machine) enter() (leave func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := len(m.served)
	m.served = append(m.served, Served{At: m.w.now()})
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.served[n].Ended = m.w.now()
	}
}

// ServeHTTP serves one client to its end.
func (m *Machine) ServeHTTP(rw http.ResponseWriter, req *http.Request) {
	c, err := websocket.Accept(rw, req, nil)
	if err != nil {
		return
	}
	defer c.CloseNow()
	hello, err := receive(m.w.ctx, c)
	if err != nil {
		return
	}
	answer, delay := m.verdict(hello)
	if !sleep(m.w.ctx, delay) {
		return
	}
	if answer == Silent {
		<-c.CloseRead(m.w.ctx).Done()
		return
	}
	if send(m.w.ctx, c, message{Type: answer}) != nil || answer != Welcome {
		return
	}
	defer m.enter()()
	ctx := c.CloseRead(m.w.ctx)
	if !hello.Stream {
		<-ctx.Done()
		return
	}
	m.stream(ctx, c, hello.N)
}

// stream counts for a client that has the numbers up to n.
func (m *Machine) stream(ctx context.Context, c *websocket.Conn, n int) {
	next := time.NewTicker(tick)
	defer next.Stop()
	for {
		now := int(m.w.Elapsed() / tick)
		for n = max(n, now-kept); n < now; n++ {
			if send(ctx, c, message{Type: "count", N: n + 1}) != nil {
				return
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-next.C:
		}
	}
}

// register keeps the machine's control socket at the relay, and answers each tunnel with a pipe to the local port.
func (m *Machine) register() error {
	ctx := m.w.ctx
	control, _, err := websocket.Dial(ctx, "wss://relay.example/control", m.w.dialing(m.w.machine))
	if err != nil {
		return err
	}
	m.w.Go("machine control", func() {
		defer control.CloseNow()
		for {
			asked, err := receive(ctx, control)
			if err != nil {
				return
			}
			go m.pipe(ctx, asked.Tunnel)
		}
	})
	return nil
}

func (m *Machine) pipe(ctx context.Context, tunnel int) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	pipe, _, err := websocket.Dial(ctx, fmt.Sprintf("wss://relay.example/pipe/%d", tunnel), m.w.dialing(m.w.machine))
	if err != nil {
		return
	}
	defer pipe.CloseNow()
	local, _, err := websocket.Dial(ctx, fmt.Sprintf("ws://127.0.0.1:%d/", m.w.port), m.w.dialing(m.w.machine))
	if err != nil {
		return
	}
	defer local.CloseNow()
	go func() {
		defer cancel()
		copyMessages(ctx, local, pipe)
	}()
	copyMessages(ctx, pipe, local)
}

func copyMessages(ctx context.Context, to, from *websocket.Conn) {
	for {
		kind, data, err := from.Read(ctx)
		if err != nil || to.Write(ctx, kind, data) != nil {
			return
		}
	}
}
