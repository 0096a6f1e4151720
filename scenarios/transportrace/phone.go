package transportrace

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/seed-5a7f77c4/deadair/netsim"
	"github.com/seed-5a7f77c4/deadair/selection/handshake"
	"github.com/seed-5a7f77c4/deadair/selection/memory"
	"github.com/seed-5a7f77c4/deadair/selection/race"
	"github.com/seed-5a7f77c4/deadair/selection/rank"
	"github.com/seed-5a7f77c4/deadair/selection/roam"
	"github.com/seed-5a7f77c4/deadair/selection/route"
)

// AllRoutes are the saved ways to the machine: LAN, tailnet and relay.
var AllRoutes = []memory.Route{{Address: LAN, Port: 8787}, {Address: Tailnet, Port: 8787}, {Address: Relay, Owner: "ann"}}

// Phone is the app: a session over the routes of a profile.
type Phone struct {
	// Account is the signed-in account; set it before Start.
	Account string
	// Stream asks the machine to count; set it before Start.
	Stream bool

	w        *World
	subject  Subject
	racer    *race.Racer[*Conn]
	session  *roam.Session[*Conn]
	registry handshake.Registry

	mu      sync.Mutex // of what follows
	profile memory.Profile
	live    *Conn
	up      []Connected
	races   []Raced
	count   int           // last number of the stream
	lost    int           // numbers that never came
	gap     time.Duration // longest time without a new number
	last    time.Time
}

// Connected is a connection that was adopted. Ended is 0 while it lives.
type Connected struct {
	At, Ended time.Duration
	Class     route.Class
}

// Raced is a race that has ended.
type Raced struct {
	At    time.Duration
	Cause roam.Cause
	Plan  race.Plan
	Lanes []race.Lane
	Err   error
}

// keepAlive is the time between two signs of life, well below what makes a tunnel an orphan.
const keepAlive = 4 * time.Minute

// Conn is an authenticated connection.
type Conn struct {
	ws   *websocket.Conn
	v2   bool
	done chan struct{}
	once sync.Once
}

// Close ends the connection without waiting for the other end's goodbye.
func (c *Conn) Close() error {
	c.once.Do(func() { close(c.done) })
	return c.ws.CloseNow()
}

// Phone makes the app, signed in as ann.
func (w *World) Phone(s Subject, routes []memory.Route) *Phone {
	p := &Phone{Account: "ann", w: w, subject: s, profile: memory.Profile{Routes: routes, Memory: memory.New(s.Memory)}}
	p.registry.Trusting = s.TrustingRegistry
	p.racer = race.New(p.attempt, s.Race)
	return p
}

// Start runs the app until the story ends.
func (p *Phone) Start() {
	now := path(p.w.phone.Connectivity())
	p.session = roam.NewSession(roam.Config[*Conn]{
		Race: p.race, Adopt: p.adopt, Record: p.record, Policy: p.subject.Roam, Path: &now, Seed: p.w.Seed,
		Alive: func(ctx context.Context, c *Conn) error { return c.ws.Ping(ctx) },
		Done:  func(c *Conn) <-chan struct{} { return c.done },
	})
	ctx, cancel := context.WithCancel(p.w.ctx)
	done := make(chan struct{})
	p.w.Go("phone", func() {
		defer close(done)
		p.session.Run(ctx)
		p.racer.Close()
	})
	stop := p.w.phone.WatchConnectivity(0, func(c netsim.Connectivity) { p.session.Path(path(c)) })
	observe := func(seen bool) {
		p.session.Observe(roam.Observed{Discovered: seen, TailnetRoute: p.has(route.Tailnet), RelayEligible: p.Account == "ann" && p.has(route.Relay)})
	}
	p.w.mu.Lock()
	p.w.watchers = append(p.w.watchers, observe)
	seen := p.w.discovered
	p.w.mu.Unlock()
	observe(seen)
	p.w.Cleanup(func() { stop(); cancel(); <-done })
}

func (p *Phone) has(c route.Class) bool {
	for _, r := range p.profile.Routes {
		if r.Candidate().Class() == c {
			return true
		}
	}
	return false
}

// path is what the system tells the app.
func path(c netsim.Connectivity) route.Path {
	r := route.Path{Satisfied: c.Satisfied, WiFi: c.Wireless, Cellular: c.Cellular, Wired: c.Wired, Expensive: c.Expensive}
	if a := c.Addrs["wifi"]; len(a) > 0 {
		r.WiFiAddr = a[0]
	}
	if a := c.Addrs["tail"]; len(a) > 0 {
		r.TailnetAddr = a[0]
	}
	return r
}

// Remember records a success on a network, as if it had happened before the story.
func (p *Phone) Remember(network route.Fingerprint, key route.Key) {
	p.profile.Memory.Record(time.Now(), network, nil, &memory.Success{Key: key})
}

// Plan is the plan of a race over this network, now.
func (p *Phone) Plan(r roam.Request) race.Plan {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, mem := time.Now(), p.profile.Memory
	in := race.Input{Account: p.Account, Only: r.Only, Facts: rank.Facts{
		Path:        r.Path,
		Failing:     func(k route.Key) bool { return mem.Failing(now, k) },
		LastSuccess: func(k route.Key) time.Time { return mem.Endpoint(k).LastSuccessAt },
		LastGood:    mem.LastGood(),
	}}
	if r.Path != nil {
		in.Facts.Remembered = mem.Remembered(r.Path.Fingerprint())
	}
	for _, saved := range p.profile.Routes {
		in.Candidates = append(in.Candidates, saved.Candidate())
	}
	p.w.mu.Lock()
	if p.w.discovered {
		in.Candidates = append(in.Candidates, route.Candidate{Address: LAN, Port: 8787, Live: true})
	}
	p.w.mu.Unlock()
	return race.Build(in, p.subject.Race)
}

func (p *Phone) race(ctx context.Context, r roam.Request) (race.Outcome[*Conn], error) {
	p.registry.ReleaseAll()
	return p.racer.Race(ctx, p.Plan(r))
}

func (p *Phone) record(r roam.Request, won race.Outcome[*Conn], err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var network route.Fingerprint
	if r.Path != nil {
		network = r.Path.Fingerprint()
	}
	var success *memory.Success
	if err == nil {
		success = &memory.Success{Key: won.Slot.Key, ReadyV2: won.Conn.v2}
	}
	p.profile.Memory.Record(time.Now(), network, won.Failed, success)
	p.races = append(p.races, Raced{p.w.Elapsed(), r.Cause, won.Plan, won.Lanes, err})
}

func (p *Phone) adopt(won race.Outcome[*Conn]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.live = won.Conn
	i := len(p.up)
	p.up = append(p.up, Connected{At: p.w.Elapsed(), Class: won.Slot.Class})
	go func() {
		<-won.Conn.done
		p.mu.Lock()
		defer p.mu.Unlock()
		p.up[i].Ended = p.w.Elapsed()
	}()
}

// attempt makes one connection to the machine.
func (p *Phone) attempt(ctx context.Context, c route.Candidate, opened func()) (*Conn, error) {
	if c.Class() != route.Relay {
		ws, _, err := websocket.Dial(ctx, "ws://"+c.Target(), p.w.dialing(p.w.phone))
		if err != nil {
			return nil, err
		}
		opened()
		if err := p.hello(ctx, ws, ""); err != nil {
			ws.CloseNow()
			return nil, err
		}
		return p.keep(ws, false), nil
	}
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
		Registry: &p.registry, Policy: p.subject.Handshake,
	}
	p.mu.Lock()
	negotiated := p.profile.Memory.Endpoint(c.Key()).NegotiatedReadyV2
	p.mu.Unlock()
	s, v2, err := d.Dial(ctx, c.Target(), negotiated, opened)
	if err != nil {
		return nil, err
	}
	return p.keep(s.Conn, v2), nil
}

// socket closes a WebSocket at once.
type socket struct{ *websocket.Conn }

func (s *socket) Close() error { return s.CloseNow() }

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

func (p *Phone) hello(ctx context.Context, ws *websocket.Conn, token string) error {
	p.mu.Lock()
	hello := message{Type: "hello", Secret: secret, Token: token, Stream: p.Stream, N: p.count}
	p.mu.Unlock()
	if err := send(ctx, ws, hello); err != nil {
		return err
	}
	m, err := receive(ctx, ws)
	switch {
	case err != nil:
		return err
	case m.Type == "account":
		return fmt.Errorf("hello: %w", route.ErrAccount)
	case m.Type != "welcome":
		return fmt.Errorf("hello: the machine says %q", m.Type)
	}
	return nil
}

// keep reads the connection to its end.
func (p *Phone) keep(ws *websocket.Conn, v2 bool) *Conn {
	c := &Conn{ws: ws, v2: v2, done: make(chan struct{})}
	go func() {
		defer c.Close()
		for {
			m, err := receive(context.Background(), ws)
			if err != nil {
				return
			}
			p.counted(m.N)
		}
	}()
	go func() { // an idle tunnel without a sign of life would be taken for an orphan
		beat := time.NewTicker(keepAlive)
		defer beat.Stop()
		for {
			select {
			case <-c.done:
				return
			case <-beat.C:
				ctx, cancel := context.WithTimeout(context.Background(), keepAlive/2)
				err := ws.Ping(ctx)
				cancel()
				if err != nil {
					c.Close()
					return
				}
			}
		}
	}()
	return c
}

// counted takes a number of the stream; while two connections are open, both bring it.
func (p *Phone) counted(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n <= p.count {
		return
	}
	now := time.Now()
	if p.count > 0 {
		p.gap = max(p.gap, now.Sub(p.last))
		p.lost += n - p.count - 1
	}
	p.count, p.last = n, now
}

// Connections lists the connections that were adopted, with their times.
func (p *Phone) Connections() []Connected {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Connected(nil), p.up...)
}

// Races lists the races that have ended.
func (p *Phone) Races() []Raced {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Raced(nil), p.races...)
}

// Failures is the number of consecutive failures recorded for a route.
func (p *Phone) Failures(k route.Key) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.profile.Memory.Endpoint(k).ConsecutiveFailures
}

// Flow says how the stream fares: numbers received, numbers lost, longest time without one.
func (p *Phone) Flow() (count, lost int, gap time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count, p.lost, p.gap
}
