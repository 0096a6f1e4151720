package transportrace

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/coder/websocket"
)

// tick is the time between two messages of the machine's stream; odd, so that it falls into no packet's instant.
const tick = 20_130 * time.Microsecond

const secret = "the machine's secret"

// machine is the server at the other end: it authenticates a hello and then counts, from where the client stands.
type machine struct {
	ctx   context.Context
	began time.Time
	token func(string) bool
}

func (m *machine) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	c, err := websocket.Accept(w, req, nil)
	if err != nil {
		return
	}
	defer c.CloseNow()
	hello, err := receive(m.ctx, c)
	if err != nil {
		return
	}
	answer := "welcome"
	switch {
	case hello.Secret != secret:
		answer = "stranger"
	case hello.Token != "" && !m.token(hello.Token):
		answer = "account"
	}
	if send(m.ctx, c, message{Type: answer}) != nil || answer != "welcome" {
		return
	}
	ctx := c.CloseRead(m.ctx)
	if !hello.Stream {
		<-ctx.Done()
		return
	}
	next := time.NewTicker(tick)
	defer next.Stop()
	for n := hello.N; ; {
		for ; n < int(time.Since(m.began)/tick); n++ {
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

// serveRelay keeps the machine's control socket and answers each tunnel with a pipe to the local port.
func (w *World) serveRelay() error {
	ctx := w.ctx
	control, _, err := websocket.Dial(ctx, "wss://relay.example/control", w.dialing(w.machine))
	if err != nil {
		return err
	}
	w.Go("machine control", func() {
		defer control.CloseNow()
		for {
			m, err := receive(ctx, control)
			if err != nil {
				return
			}
			go w.pipe(ctx, m.Tunnel)
		}
	})
	return nil
}

func (w *World) pipe(ctx context.Context, tunnel int) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	pipe, _, err := websocket.Dial(ctx, fmt.Sprintf("wss://relay.example/pipe/%d", tunnel), w.dialing(w.machine))
	if err != nil {
		return
	}
	defer pipe.CloseNow()
	local, _, err := websocket.Dial(ctx, "ws://127.0.0.1:8787/", w.dialing(w.machine))
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
