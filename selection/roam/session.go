package roam

import (
	"context"
	"io"
	"time"

	"github.com/seed-5a7f77c4/deadair/selection/race"
	"github.com/seed-5a7f77c4/deadair/selection/route"
)

// Cause says why a session races.
type Cause uint8

// The causes of a race.
const (
	Connect Cause = iota
	Roam
	Probe
)

func (c Cause) String() string { return [...]string{"connect", "path change", "upgrade probe"}[c] }

// Request is a race that a session wants run.
type Request struct {
	Cause Cause
	// Path is the phone's network, nil before the first snapshot.
	Path *route.Path
	// Only limits the classes; nil for all.
	Only func(route.Class) bool
}

// Config is what a session is made of; every function is needed. They are called from the session's goroutine, and must not
// wait, but for Race and Alive, which have goroutines of their own and must end with their ctx.
type Config[C io.Closer] struct {
	// Race runs one race; see race.Racer.
	Race func(ctx context.Context, r Request) (race.Outcome[C], error)
	// Alive asks a connection for a sign of life, within Policy.Proof; nil means that there was one.
	Alive func(ctx context.Context, c C) error
	// Adopt makes a connection the live one. The one before is closed when it returns.
	Adopt func(won race.Outcome[C])
	// Record writes a race into the memories. Races won by the endpoint in use are not recorded.
	Record func(r Request, won race.Outcome[C], err error)
	// Done gives a channel that is closed when the connection has ended.
	Done func(c C) <-chan struct{}
	// Policy holds the rules; take DefaultPolicy and change what differs.
	Policy Policy
	// Path is the phone's network at the start, nil when it is not known yet.
	Path *route.Path
	// Seed is that of the ladder's jitter.
	Seed uint64
}

// Session keeps one connection. Use NewSession, and Run once; Path and Observe may be called from any goroutine, and wait for
// Run to take what they say.
type Session[C io.Closer] struct {
	config   Config[C]
	paths    chan route.Path
	observed chan Observed
	ended    chan struct{}
}

// NewSession makes a session.
func NewSession[C io.Closer](c Config[C]) *Session[C] {
	return &Session[C]{config: c, paths: make(chan route.Path), observed: make(chan Observed), ended: make(chan struct{})}
}

// Path tells the session of a path update. It returns at once after the session has ended.
func (s *Session[C]) Path(p route.Path) {
	select {
	case s.paths <- p:
	case <-s.ended:
	}
}

// Observe tells the session what discovery and the profile say. It returns at once after the session has ended.
func (s *Session[C]) Observe(o Observed) {
	select {
	case s.observed <- o:
	case <-s.ended:
	}
}

type raced[C io.Closer] struct {
	number  int
	request Request
	won     race.Outcome[C]
	err     error
}

type proved[C io.Closer] struct {
	raced[C]
	alive bool
}

// keeper is the state of a running session.
type keeper[C io.Closer] struct {
	Config[C]
	ctx     context.Context
	mon     *Monitor
	ladder  *Ladder
	live    race.Outcome[C]
	up      bool
	since   time.Time
	retry   time.Time // of the next attempt to connect, while nothing races
	number  int       // of the newest race
	racing  bool
	results chan raced[C]
	proofs  chan proved[C]
	flights int
}

// Run connects and keeps the connection until ctx ends; it then closes it, waits for every race and returns the cause.
func (s *Session[C]) Run(ctx context.Context) error {
	defer close(s.ended)
	ctx, cancel := context.WithCancel(ctx)
	k := &keeper[C]{Config: s.config, ctx: ctx, mon: NewMonitor(s.config.Policy), ladder: NewLadder(s.config.Policy, s.config.Seed),
		retry: time.Now(), results: make(chan raced[C]), proofs: make(chan proved[C])}
	defer k.close(cancel)
	if k.Path != nil {
		k.mon.Path(time.Now(), *k.Path)
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		now := time.Now()
		k.act(now)
		if wake, ok := k.wake(); ok {
			timer.Reset(time.Until(wake))
		} else {
			timer.Stop()
		}
		var gone <-chan struct{}
		if k.up {
			gone = k.Done(k.live.Conn)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
		case p := <-s.paths:
			k.mon.Path(time.Now(), p)
		case o := <-s.observed:
			k.mon.Observe(time.Now(), o)
		case <-gone:
			k.lose(time.Now())
		case r := <-k.results:
			k.flights--
			k.finish(time.Now(), r)
		case p := <-k.proofs:
			k.flights--
			k.prove(time.Now(), p)
		}
	}
}

// act starts what is due: a roam, or an attempt to connect.
func (k *keeper[C]) act(now time.Time) {
	switch k.mon.Tick(now) {
	case PathChange:
		k.race(Request{Cause: Roam})
	case UpgradeProbe:
		current, _ := k.mon.Live()
		k.race(Request{Cause: Probe, Only: func(c route.Class) bool { return k.Policy.Better(c, current) }})
	case None:
		if !k.up && !k.racing && !now.Before(k.retry) {
			k.race(Request{Cause: Connect})
		}
	}
}

func (k *keeper[C]) wake() (time.Time, bool) {
	wake, ok := k.mon.Wake()
	if !k.up && !k.racing && (!ok || k.retry.Before(wake)) {
		return k.retry, true
	}
	return wake, ok
}

// race starts a race; it supersedes the one that is under way.
func (k *keeper[C]) race(r Request) {
	if path, ok := k.mon.Current(); ok {
		r.Path = &path
	}
	k.mon.Racing()
	if k.Policy.Breaks && k.up {
		k.live.Conn.Close()
	}
	k.number++
	k.racing = true
	k.flights++
	number := k.number
	go func() {
		won, err := k.Race(k.ctx, r)
		k.results <- raced[C]{number, r, won, err}
	}()
}

// finish takes a race's end: a newer race makes it void, a loss leaves the live connection alone, a win replaces it.
func (k *keeper[C]) finish(now time.Time, r raced[C]) {
	if r.number != k.number && k.Policy.Supersedes {
		if r.err == nil {
			r.won.Conn.Close()
		}
		return
	}
	k.racing = false
	switch {
	case r.err != nil:
		k.Record(r.request, r.won, r.err)
		if !k.up {
			k.retry = now.Add(k.ladder.Next())
		}
	case k.up && k.Policy.KeepsSame && r.won.Slot.Key == k.live.Slot.Key:
		if r.request.Cause != Roam || !k.Policy.Proves {
			r.won.Conn.Close()
			return
		}
		k.flights++
		live := k.live.Conn
		go func() {
			ctx, cancel := context.WithTimeout(k.ctx, k.Policy.Proof)
			defer cancel()
			k.proofs <- proved[C]{r, k.Alive(ctx, live) == nil}
		}()
	default:
		k.adopt(now, r)
	}
}

// prove takes the live connection's sign of life: with one it stays, without one the new connection replaces it.
func (k *keeper[C]) prove(now time.Time, p proved[C]) {
	if p.number != k.number || p.alive && k.up {
		p.won.Conn.Close()
		return
	}
	k.adopt(now, p.raced)
}

// adopt makes before it breaks: the old connection is closed when the new one has been taken over.
func (k *keeper[C]) adopt(now time.Time, r raced[C]) {
	old, had := k.live, k.up
	if had {
		k.ladder.Lost(now.Sub(k.since))
	}
	k.Record(r.request, r.won, nil)
	k.live, k.up, k.since = r.won, true, now
	k.mon.Up(now, r.won.Slot.Class)
	k.Adopt(r.won)
	if had {
		old.Conn.Close()
	}
}

// lose takes the end of the live connection.
func (k *keeper[C]) lose(now time.Time) {
	k.live.Conn.Close()
	k.ladder.Lost(now.Sub(k.since))
	k.up = false
	k.mon.Down()
	k.retry = now.Add(k.ladder.Next())
}

func (k *keeper[C]) close(cancel context.CancelFunc) {
	cancel()
	for ; k.flights > 0; k.flights-- {
		select {
		case r := <-k.results:
			if r.err == nil {
				r.won.Conn.Close()
			}
		case p := <-k.proofs:
			p.won.Conn.Close()
		}
	}
	if k.up {
		k.live.Conn.Close()
	}
}
