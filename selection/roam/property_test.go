package roam_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-5a7f77c4/deadair/selection/race"
	"github.com/seed-5a7f77c4/deadair/selection/roam"
	"github.com/seed-5a7f77c4/deadair/selection/route"
)

// event is something that happens to a phone, after a pause.
type event struct {
	pause time.Duration
	kind  int
}

// The kinds of event.
const (
	flapCost = iota
	toggleWiFi
	toggleCellular
	toggleTailnet
	toggleDiscovery
	repeatPath
	repeatObserved
	toggleLANServer
	toggleTailnetServer
	toggleRelayServer
	endLive   // the live connection ends
	muteLive  // it stays, and gives no sign of life any longer
	slowHello // hellos take longer than a race from now on, or are quick again
	kindsOfEvent
)

var addresses = map[route.Class]string{route.LAN: "192.168.1.10", route.Tailnet: "100.64.0.7", route.Relay: "wss://relay.example/m1"}

// walk is a phone on its way, and the judge of its session.
type walk struct {
	mu       sync.Mutex
	problems []string
	path     route.Path
	observed roam.Observed
	serves   map[route.Class]bool
	slow     bool
	all      []*tie
	live     *tie // the one adopted last
	since    time.Time
	changed  bool // interfaces have, since the last race began
	roamed   time.Time
	over     bool // the session has been told to end
}

// tie is a connection of a walk.
type tie struct {
	w           *walk
	class       route.Class
	done        chan struct{}
	ended, mute bool
	closed      int
}

func (w *walk) problem(format string, args ...any) {
	w.problems = append(w.problems, fmt.Sprintf(format, args...))
}

func (c *tie) Close() error {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	if c.closed++; c.w.live == c && !c.ended && !c.w.over && !c.mute {
		c.w.problem("the live connection over %v is closed, and nothing has replaced it", c.class)
	}
	c.end()
	return nil
}

func (c *tie) end() {
	if !c.ended {
		c.ended = true
		close(c.done)
	}
}

// attempt makes a connection, if the class is served and the phone has a way to it.
func (w *walk) attempt(ctx context.Context, c route.Candidate, opened func()) (*tie, error) {
	w.mu.Lock()
	hello := 30*time.Millisecond + time.Duration(c.Class())*1_234_567
	if w.slow {
		hello = 2 * race.Budget
	}
	w.mu.Unlock()
	opened()
	timer := time.NewTimer(hello)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	way := map[route.Class]bool{route.LAN: w.path.LocalLink(), route.Tailnet: w.path.TailnetAddr.IsValid(), route.Relay: w.path.Satisfied}
	if !w.serves[c.Class()] || !way[c.Class()] {
		return nil, errors.New("nobody answers")
	}
	made := &tie{w: w, class: c.Class(), done: make(chan struct{})}
	w.all = append(w.all, made)
	return made, nil
}

// judge looks at what makes a session race.
func (w *walk) judge(r roam.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	up := w.live != nil && !w.live.ended
	switch {
	case r.Cause == roam.Connect && up:
		w.problem("a race to connect while %v is live", w.live.class)
	case r.Cause == roam.Roam && !w.changed:
		w.problem("a path change without one")
	case r.Cause != roam.Connect && !w.roamed.IsZero() && now.Sub(w.roamed) < roam.Floor:
		w.problem("%v %v after the last roam", r.Cause, now.Sub(w.roamed))
	}
	if r.Cause == roam.Probe {
		o := w.observed
		o.Path = w.path
		best := roam.Best(o)
		switch {
		case w.live == nil || !best.Better(w.live.class):
			w.problem("a probe although the best class observed is %v", best)
		case !r.Only(best) || r.Only(w.live.class) || r.Only(route.Relay):
			w.problem("a probe of classes that are not better than %v", w.live.class)
		case now.Sub(w.since) < roam.MinAge || !w.roamed.IsZero() && now.Sub(w.roamed) < roam.Interval:
			w.problem("a probe at the age of %v, %v after the last roam", now.Sub(w.since), now.Sub(w.roamed))
		}
	}
	w.changed = false
	if r.Cause != roam.Connect {
		w.roamed = now
	}
}

// run plays the events. An abrupt walk ends with the last of them, whatever is under way then.
func (w *walk) run(events []event, abrupt bool, seed uint64) []string {
	w.path = route.Path{Satisfied: true, Cellular: true}
	w.observed = roam.Observed{TailnetRoute: true, RelayEligible: true}
	w.serves = map[route.Class]bool{route.LAN: true, route.Tailnet: true, route.Relay: true}
	racer := race.New(w.attempt, race.DefaultPolicy())
	var in race.Input
	in.Account = "ann"
	for _, c := range route.Classes {
		in.Candidates = append(in.Candidates, route.Candidate{Address: addresses[c], Port: 9000, Owner: "ann"})
	}
	first := w.path
	told := w.path
	session := roam.NewSession(roam.Config[*tie]{
		Race: func(ctx context.Context, r roam.Request) (race.Outcome[*tie], error) {
			w.judge(r)
			in := in
			in.Only, in.Facts.Path = r.Only, r.Path
			return racer.Race(ctx, race.Build(in, race.DefaultPolicy()))
		},
		Alive: func(ctx context.Context, c *tie) error {
			w.mu.Lock()
			dead := c.mute || c.ended
			w.mu.Unlock()
			if dead {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		},
		Adopt: func(won race.Outcome[*tie]) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.live, w.since = won.Conn, time.Now()
		},
		Record: func(roam.Request, race.Outcome[*tie], error) {},
		Done:   func(c *tie) <-chan struct{} { return c.done },
		Policy: roam.DefaultPolicy(), Path: &first, Seed: seed,
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		session.Run(ctx)
	}()
	tell := func() {
		w.mu.Lock()
		p := w.path
		p.Satisfied = p.WiFi || p.Cellular
		w.changed = w.changed || !p.SameInterfaces(told)
		w.path, told = p, p
		w.mu.Unlock()
		session.Path(p)
	}
	for _, e := range events {
		time.Sleep(e.pause)
		w.happens(e.kind)
		switch e.kind {
		case flapCost, toggleWiFi, toggleCellular, toggleTailnet, repeatPath:
			tell()
		case toggleDiscovery, repeatObserved:
			session.Observe(w.observed)
		}
	}
	if !abrupt { // with a way to the relay there is a connection again, soon, whatever has happened
		w.mu.Lock()
		w.slow, w.serves[route.Relay], w.path.Cellular = false, true, true
		if w.live != nil && w.live.mute {
			w.live.end()
		}
		w.mu.Unlock()
		tell()
		time.Sleep(2 * time.Minute)
	}
	w.mu.Lock()
	if !abrupt && (w.live == nil || w.live.ended) {
		w.problem("no connection although the relay answers")
	}
	w.over = true
	w.mu.Unlock()
	cancel()
	<-ended
	racer.Close()
	session.Path(w.path) // returns at once
	session.Observe(w.observed)
	for _, c := range w.all {
		if c.closed != 1 {
			w.problem("a connection over %v is closed %d times", c.class, c.closed)
		}
	}
	return w.problems
}

func (w *walk) happens(kind int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	serve := func(c route.Class) { w.serves[c] = !w.serves[c] }
	switch kind {
	case flapCost:
		w.path.Expensive = !w.path.Expensive
	case toggleWiFi:
		w.path.WiFi = !w.path.WiFi
	case toggleCellular:
		w.path.Cellular = !w.path.Cellular
	case toggleTailnet:
		if w.path.TailnetAddr.IsValid() {
			w.path.TailnetAddr = netip.Addr{}
		} else {
			w.path.TailnetAddr = netip.MustParseAddr("100.64.0.2")
		}
	case toggleDiscovery:
		w.observed.Discovered = !w.observed.Discovered
	case toggleLANServer:
		serve(route.LAN)
	case toggleTailnetServer:
		serve(route.Tailnet)
	case toggleRelayServer:
		serve(route.Relay)
	case endLive:
		if w.live != nil {
			w.live.end()
		}
	case muteLive:
		if w.live != nil {
			w.live.mute = true
		}
	case slowHello:
		w.slow = !w.slow
	}
}

// Over a running session and a running race, whatever happens to the phone, its networks, its servers and its connection:
// a live connection is never closed before another has been adopted in its place, unless it gave no sign of life; every
// connection is closed exactly once; nothing races because of a standing fact; roams keep their distances; and the session
// is connected again soon after there is a way.
func TestSessionMakesBeforeItBreaks(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		events := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) event {
			longest := rapid.SampledFrom([]int{400, 4_000, 40_000, 400_000}).Draw(t, "at most")
			return event{
				pause: time.Duration(rapid.IntRange(0, longest).Draw(t, "ms"))*time.Millisecond + time.Duration(rapid.IntRange(1, 999_999).Draw(t, "ns")),
				kind:  rapid.IntRange(0, kindsOfEvent-1).Draw(t, "kind"),
			}
		}), 0, 60).Draw(rt, "events")
		abrupt, seed := rapid.Bool().Draw(rt, "abrupt"), rapid.Uint64().Draw(rt, "seed")
		var problems []string
		synctest.Test(t, func(*testing.T) { problems = new(walk).run(events, abrupt, seed) })
		if len(problems) > 0 {
			rt.Fatalf("%v", problems)
		}
	})
}
