package transportrace

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// What a relay does with tunnels, as observed.
const (
	maxTunnels = 16
	sweepEvery = 5 * time.Minute
	orphanIdle = 10 * time.Minute
	stampEvery = time.Minute

	closeNoMachine  websocket.StatusCode = 4501
	closeFull       websocket.StatusCode = 4503
	closeEarlyHello websocket.StatusCode = 4510
)

// tunnel is one open tunnel of the relay.
type tunnel struct {
	id    int
	pipe  chan *websocket.Conn
	stamp time.Time
	end   context.CancelFunc
}

// relay is the tunnel relay: clients at /tunnel/m1, the machine's control socket at /control, its pipes at /pipe/<id>.
type relay struct {
	setup Setup
	ctx   context.Context

	mu      sync.Mutex
	control *websocket.Conn
	tunnels map[int]*tunnel
	last    int
	dials   []dial
}

// dial is a client's socket at the relay.
type dial struct {
	at time.Time
	v2 bool
}

func newRelay(ctx context.Context, s Setup) *relay {
	r := &relay{setup: s, ctx: ctx, tunnels: make(map[int]*tunnel)}
	for range s.Orphans {
		r.open(func() {})
	}
	return r
}

func (r *relay) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var t *tunnel
	c, err := websocket.Accept(w, req, &websocket.AcceptOptions{OnPingReceived: func(context.Context, []byte) bool {
		r.touch(t)
		return true
	}})
	if err != nil {
		return
	}
	defer c.CloseNow()
	switch {
	case req.URL.Path == "/control":
		r.mu.Lock()
		r.control = c
		r.mu.Unlock()
		<-c.CloseRead(r.ctx).Done()
		r.mu.Lock()
		r.control = nil
		r.mu.Unlock()
	case strings.HasPrefix(req.URL.Path, "/pipe/"):
		id, _ := strconv.Atoi(strings.TrimPrefix(req.URL.Path, "/pipe/"))
		r.mu.Lock()
		piped := r.tunnels[id]
		r.mu.Unlock()
		if piped != nil {
			piped.pipe <- c
			<-r.ctx.Done()
		}
	default:
		r.client(c, &t, req.URL.Query().Get("ready") == "2")
	}
}

// open gives a new tunnel, nil when all are taken.
func (r *relay) open(end context.CancelFunc) *tunnel {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.tunnels) == maxTunnels {
		return nil
	}
	r.last++
	t := &tunnel{id: r.last, pipe: make(chan *websocket.Conn, 1), stamp: time.Now(), end: end}
	r.tunnels[t.id] = t
	return t
}

func (r *relay) client(c *websocket.Conn, own **tunnel, v2 bool) {
	ctx, cancel := context.WithCancel(r.ctx)
	defer cancel()
	r.mu.Lock()
	r.dials = append(r.dials, dial{time.Now(), v2})
	control := r.control
	r.mu.Unlock()
	if control == nil {
		c.Close(closeNoMachine, "no machine")
		return
	}
	t := r.open(cancel)
	if t == nil {
		c.Close(closeFull, "too many tunnels")
		return
	}
	*own = t // before anything is read from the socket
	defer func() {
		r.mu.Lock()
		delete(r.tunnels, t.id)
		r.mu.Unlock()
	}()
	v2 = v2 && !r.setup.OldRelay
	if v2 {
		if r.setup.ReadyFirst {
			send(ctx, c, message{Type: "ready"})
		}
		time.Sleep(r.setup.AcceptedAfter)
		send(ctx, c, message{Type: "accepted"})
		if r.setup.NeverReady || r.setup.ReadyFirst {
			<-c.CloseRead(ctx).Done()
			return
		}
	}
	time.Sleep(r.setup.ColdStart)
	send(ctx, control, message{Type: "open", Tunnel: t.id})
	// What the client says before its tunnel is ready is a mistake on a ready=2 socket; on an old one it waits here.
	first := make(chan []byte, 1)
	go func() {
		defer close(first)
		if _, data, err := c.Read(ctx); err == nil {
			first <- data
		}
	}()
	var early <-chan []byte
	if v2 {
		early = first
	}
	var pipe *websocket.Conn
	select {
	case pipe = <-t.pipe:
	case _, ok := <-early:
		if ok {
			c.Close(closeEarlyHello, "hello before ready")
		}
		return
	case <-ctx.Done():
		return
	}
	defer pipe.Close(websocket.StatusNormalClosure, "")
	if v2 {
		send(ctx, c, message{Type: "ready"})
	}
	go func() {
		defer cancel()
		r.pump(ctx, t, c, pipe)
	}()
	data, ok := <-first
	if !ok || pipe.Write(ctx, websocket.MessageText, data) != nil {
		return
	}
	r.pump(ctx, t, pipe, c)
}

// pump copies messages to one side, and stamps the tunnel.
func (r *relay) pump(ctx context.Context, t *tunnel, to, from *websocket.Conn) {
	for {
		kind, data, err := from.Read(ctx)
		if err != nil || to.Write(ctx, kind, data) != nil {
			return
		}
		r.touch(t)
	}
}

// touch stamps the tunnel as in use, once a minute at most.
func (r *relay) touch(t *tunnel) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); t != nil && now.Sub(t.stamp) >= stampEvery {
		t.stamp = now
	}
}

// sweep is the relay's alarm: it ends what has been idle too long.
func (r *relay) sweep() {
	alarm := time.NewTicker(sweepEvery)
	defer alarm.Stop()
	for {
		select {
		case <-r.ctx.Done():
			return
		case now := <-alarm.C:
			r.mu.Lock()
			for id, t := range r.tunnels {
				if now.Sub(t.stamp) >= orphanIdle {
					t.end()
					delete(r.tunnels, id)
				}
			}
			r.mu.Unlock()
		}
	}
}

func (r *relay) seen() []dial {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]dial(nil), r.dials...)
}
