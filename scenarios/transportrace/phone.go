package transportrace

import (
	"context"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/selection/handshake"
	"github.com/seed-5a7f77c4/deadair/selection/memory"
	"github.com/seed-5a7f77c4/deadair/selection/race"
	"github.com/seed-5a7f77c4/deadair/selection/rank"
	"github.com/seed-5a7f77c4/deadair/selection/roam"
	"github.com/seed-5a7f77c4/deadair/selection/route"
)

// Phone is the app: a session over the routes of a stored profile. What a user can set is set before Start.
type Phone struct {
	// Account is the signed-in account, "" for none.
	Account string
	// Stream asks the machine to count.
	Stream bool
	// KeyLost says that the device cannot prove its key.
	KeyLost bool
	// Keystore is the time for which the app is busy storing what a hello over the tailnet gave it. Nothing can
	// interrupt it.
	Keystore time.Duration
	// Stored is the profile as it is kept on the device.
	Stored []byte

	w        *World
	subject  Subject
	registry *handshake.Registry
	racer    *race.Racer[*Conn]
	session  *roam.Session[*Conn]
	stop     func()

	mu      sync.Mutex // of what follows
	profile *memory.Profile
	records records
	flow    flow
}

// Phone makes the app, signed in as the relay's owner, with these routes saved.
func (w *World) Phone(s Subject, routes []memory.Route) *Phone {
	p := &Phone{Account: owner, w: w, subject: s, stop: func() {}}
	if s.SingleFlight {
		p.registry = &handshake.Registry{Trusting: s.TrustingRegistry}
	}
	p.save(&memory.Profile{Routes: routes, Memory: memory.New(s.Memory)})
	return p
}

func (p *Phone) save(profile *memory.Profile) {
	var err error
	p.Stored, err = p.subject.Save(profile)
	require.NoError(p.w, err)
}

func (p *Phone) load() *memory.Profile {
	profile, err := p.subject.Load(p.Stored, p.subject.Memory)
	require.NoError(p.w, err)
	return profile
}

// Remember records a success on a network, as if it had happened before. The app must not run.
func (p *Phone) Remember(network route.Fingerprint, success memory.Success) {
	profile := p.load()
	profile.Memory.Record(time.Now(), network, nil, &success)
	p.save(profile)
}

// Start runs the app until Stop, or until the story ends.
func (p *Phone) Start() {
	p.profile = p.load()
	p.racer = race.New(p.attempt, p.subject.Race)
	now := p.w.path(p.w.phone.Connectivity())
	p.session = roam.NewSession(roam.Config[*Conn]{
		Race: p.race, Adopt: p.adopt, Record: p.record, Policy: p.subject.Roam, Path: &now, Seed: p.w.Seed,
		Alive: func(ctx context.Context, c *Conn) error { return c.ws.Ping(ctx) },
		Done:  func(c *Conn) <-chan struct{} { return c.done },
	})
	ctx, cancel := context.WithCancel(p.w.ctx)
	done := make(chan struct{})
	session, racer := p.session, p.racer
	go func() {
		defer close(done)
		session.Run(ctx)
		racer.Close()
	}()
	unwatch := p.w.watch(session.Path)
	unseen := p.w.discovery.watch(func(seen bool) {
		session.Observe(roam.Observed{
			Discovered: seen, TailnetRoute: p.has(route.Tailnet), RelayEligible: p.Account == owner && p.has(route.Relay),
		})
	})
	var once sync.Once
	p.stop = func() {
		once.Do(func() {
			unwatch()
			unseen()
			cancel()
			<-done
		})
	}
	p.w.Cleanup(p.stop)
}

// Stop ends the app as a user does: it closes what it has open.
func (p *Phone) Stop() { p.stop() }

// Restart ends the app and starts it again with what it has stored.
func (p *Phone) Restart() {
	p.Stop()
	p.Start()
}

func (p *Phone) has(c route.Class) bool {
	for _, r := range p.profile.Routes {
		if r.Candidate().Class() == c {
			return true
		}
	}
	return false
}

// plan is the plan of a race, now.
func (p *Phone) plan(r roam.Request) race.Plan {
	seen := p.w.discovery.sees()
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
	if seen {
		in.Candidates = append(in.Candidates, route.Candidate{Address: LAN, Port: p.w.port, Live: true})
	}
	return race.Build(in, p.subject.Race)
}

// race runs one race. It supersedes the one before, whose dials lose their claims.
func (p *Phone) race(ctx context.Context, r roam.Request) (Outcome, error) {
	plan := p.plan(r)
	if p.registry != nil {
		p.registry.ReleaseAll()
	}
	racer := p.racer
	if !p.subject.OneRacer {
		racer = race.New(p.attempt, p.subject.Race)
		defer racer.Close()
	}
	n := p.began(r, plan)
	won, err := racer.Race(ctx, plan)
	p.ended(n, won, err)
	return won, err
}

// record writes a race into the memories, and these to the device.
func (p *Phone) record(r roam.Request, won Outcome, err error) {
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
	p.subject.Record(p.profile.Memory, time.Now(), network, won, success)
	p.save(p.profile)
}

// Endpoint is what the app knows about a route.
func (p *Phone) Endpoint(k route.Key) memory.Endpoint {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.profile.Memory.Endpoint(k)
}

// Failures is the number of consecutive failures recorded for a route.
func (p *Phone) Failures(k route.Key) int { return p.Endpoint(k).ConsecutiveFailures }
