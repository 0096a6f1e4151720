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

// Tunnels is how a relay treats its clients.
type Tunnels struct {
	// AcceptedAfter is its time to accept, ColdStart its time to wake up before it asks the machine for a pipe.
	AcceptedAfter, ColdStart time.Duration
	// Old knows no ready=2. NeverReady accepts and says no more. ReadyFirst says ready before accepted, and again when
	// it is.
	Old, NeverReady, ReadyFirst bool
}

// quick is a relay that is awake. Its times are odd, so that no timer of a program falls into the instant of a packet:
// which of the two comes first would be left to the scheduler.
var quick = Tunnels{AcceptedAfter: 21_310 * time.Microsecond, ColdStart: 47_730 * time.Microsecond}

// cold is a relay that takes a while, but is ready within the window of accepted. That of one that is asleep is not.
var (
	cold   = Tunnels{AcceptedAfter: 51_310 * time.Microsecond, ColdStart: 201_730 * time.Microsecond}
	asleep = Tunnels{AcceptedAfter: 51_310 * time.Microsecond, ColdStart: 451_730 * time.Microsecond}
)

// tunnel is one open tunnel of the relay.
type tunnel struct {
	id     int
	client *websocket.Conn
	pipe   chan *websocket.Conn
	stamp  time.Time
	over   chan struct{} // closed when nothing is left of it
}

// Tunneller is the tunnel relay: clients at /tunnel/m1, the machine's control socket at /control, its pipes at
// /pipe/<id>.
type Tunneller struct {
	w *World

	mu      sync.Mutex
	treats  Tunnels
	control *websocket.Conn
	tunnels map[int]*tunnel
	last    int
	dials   []RelayDial
}

// RelayDial is a client's socket at the relay. Code is the status with which the relay closed it, 0 if it did not.
type RelayDial struct {
	At   time.Duration
	V2   bool
	Code websocket.StatusCode
}

func newTunneller(w *World, t Tunnels) *Tunneller {
	return &Tunneller{w: w, treats: t, tunnels: make(map[int]*tunnel)}
}

// Behave changes how the relay treats clients from now on.
func (r *Tunneller) Behave(t Tunnels) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.treats = t
}

// Dials lists the sockets that clients have opened.
func (r *Tunneller) Dials() []RelayDial {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]RelayDial(nil), r.dials...)
}

// Open is the number of tunnels that are taken.
func (r *Tunneller) Open() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.tunnels)
}

// ServeHTTP serves one socket, of a client or of the machine, to its end.
func (r *Tunneller) ServeHTTP(w http.ResponseWriter, req *http.Request) {
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
		r.setControl(c)
		<-c.CloseRead(r.w.ctx).Done()
		r.setControl(nil)
	case strings.HasPrefix(req.URL.Path, "/pipe/"):
		id, _ := strconv.Atoi(strings.TrimPrefix(req.URL.Path, "/pipe/"))
		r.mu.Lock()
		piped := r.tunnels[id]
		r.mu.Unlock()
		if piped != nil {
			piped.pipe <- c
			<-piped.over
		}
	default:
		r.client(c, &t, req.URL.Query().Get("ready") == "2")
	}
}

func (r *Tunneller) setControl(c *websocket.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.control = c
}

// arrive notes a client's socket. It gives its place among the dials and what it meets.
func (r *Tunneller) arrive(v2 bool) (n int, treats Tunnels, control *websocket.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dials = append(r.dials, RelayDial{At: r.w.now(), V2: v2})
	return len(r.dials) - 1, r.treats, r.control
}

// refuse closes a client's socket with a status.
func (r *Tunneller) refuse(c *websocket.Conn, n int, code websocket.StatusCode, why string) {
	r.mu.Lock()
	r.dials[n].Code = code
	r.mu.Unlock()
	c.Close(code, why)
}

// open gives a new tunnel, nil when all are taken.
func (r *Tunneller) open(c *websocket.Conn) *tunnel {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.tunnels) == maxTunnels {
		return nil
	}
	r.last++
	t := &tunnel{id: r.last, client: c, pipe: make(chan *websocket.Conn, 1), stamp: time.Now(), over: make(chan struct{})}
	r.tunnels[t.id] = t
	return t
}

func (r *Tunneller) free(t *tunnel) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.tunnels, t.id)
}

// client serves one client from its socket to the end of its tunnel. Either end's end is the other's: the sockets are
// closed one after the other, so that nothing is left to the scheduler.
func (r *Tunneller) client(c *websocket.Conn, own **tunnel, v2 bool) {
	ctx, cancel := context.WithCancel(r.w.ctx)
	defer cancel()
	n, treats, control := r.arrive(v2)
	if control == nil {
		r.refuse(c, n, closeNoMachine, "no machine")
		return
	}
	t := r.open(c)
	if t == nil {
		r.refuse(c, n, closeFull, "too many tunnels")
		return
	}
	*own = t // before anything is read from the socket
	defer close(t.over)
	defer r.free(t)
	v2 = v2 && !treats.Old
	said := make(chan []byte)
	go func() { // what the client says, to its end
		defer close(said)
		for {
			_, data, err := c.Read(r.w.ctx)
			if err != nil {
				return
			}
			select {
			case said <- data:
			case <-t.over:
				return
			}
		}
	}()
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		r.ask(ctx, c, control, t, treats, v2)
	}()
	// What a client says before its tunnel is ready is a mistake on a ready=2 socket; on an old one it waits here.
	var waiting [][]byte
	var pipe *websocket.Conn
	for pipe == nil {
		select {
		case pipe = <-t.pipe:
		case data, ok := <-said:
			if ok && v2 {
				r.refuse(c, n, closeEarlyHello, "hello before ready")
			}
			if !ok || v2 {
				cancel()
				<-asked
				return
			}
			waiting = append(waiting, data)
		}
	}
	defer pipe.CloseNow()
	<-asked
	if v2 {
		send(ctx, c, message{Type: "ready"})
	}
	go func() {
		defer c.CloseNow()
		for {
			_, data, err := pipe.Read(r.w.ctx)
			if err != nil || c.Write(ctx, websocket.MessageText, data) != nil {
				return
			}
			r.touch(t)
		}
	}()
	for _, data := range waiting {
		if pipe.Write(ctx, websocket.MessageText, data) != nil {
			return
		}
	}
	for data := range said {
		if pipe.Write(ctx, websocket.MessageText, data) != nil {
			return
		}
		r.touch(t)
	}
}

// ask accepts a client and asks the machine for a pipe.
func (r *Tunneller) ask(ctx context.Context, c, control *websocket.Conn, t *tunnel, treats Tunnels, v2 bool) {
	if v2 && treats.ReadyFirst {
		send(ctx, c, message{Type: "ready"})
	}
	if !sleep(ctx, treats.AcceptedAfter) {
		return
	}
	if v2 {
		send(ctx, c, message{Type: "accepted"})
	}
	if treats.NeverReady || !sleep(ctx, treats.ColdStart) {
		return
	}
	send(ctx, control, message{Type: "open", Tunnel: t.id})
}

// sleep waits, unless ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// touch stamps the tunnel as in use, once a minute at most.
func (r *Tunneller) touch(t *tunnel) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); t != nil && now.Sub(t.stamp) >= stampEvery {
		t.stamp = now
	}
}

// sweep is the relay's alarm: it ends what has been idle too long.
func (r *Tunneller) sweep() {
	alarm := time.NewTicker(sweepEvery)
	defer alarm.Stop()
	for {
		select {
		case <-r.w.ctx.Done():
			return
		case now := <-alarm.C:
			for _, t := range r.idle(now) {
				t.client.CloseNow()
			}
		}
	}
}

// idle gives the tunnels that have been idle too long.
func (r *Tunneller) idle(now time.Time) (idle []*tunnel) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := 1; id <= r.last; id++ {
		if t := r.tunnels[id]; t != nil && now.Sub(t.stamp) >= orphanIdle {
			idle = append(idle, t)
		}
	}
	return idle
}
