package transportrace

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/seed-5a7f77c4/deadair/scenarios"
	"github.com/seed-5a7f77c4/deadair/selection/race"
	"github.com/seed-5a7f77c4/deadair/selection/roam"
	"github.com/seed-5a7f77c4/deadair/selection/route"
)

// Wander is a random walk of that length through home, streets, tunnels and other Wi-Fis, with a tailnet that comes and
// goes, a path that flaps, a machine that sleeps and a relay that dawdles. The rules that hold on every walk are checked
// over the whole of it.
func Wander(length time.Duration) scenarios.Scenario[Subject] {
	sc := scene("TR-walk", fmt.Sprintf("a random walk of %v", length), func(p *scenarios.Play, s Subject) {
		w := NewWorld(p, Setup{Relay: cold})
		phone := w.Phone(s, AllRoutes)
		log := &walkLog{}
		stop := w.watch(log.add(w))
		defer stop()
		unseen := w.discovery.watch(func(bool) { log.updated(w) })
		defer unseen()
		draw := rand.New(rand.NewPCG(p.Seed, 0x77616c6b))
		w.Enter(Leg{Place: Home, WiFi: Home, Cell: true})
		phone.Start()
		for w.now() < length {
			w.step(draw, phone)
		}
		phone.Stop()
		time.Sleep(time.Second)
		log.check(w, phone)
		up := phone.Connections()
		p.Figure("races", len(phone.Races()))
		p.Figure("roams", len(phone.Roams()))
		p.Figure("connections", len(up))
	})
	sc.Budget = 2 * length
	return sc
}

// step is one thing that happens on a walk, and the time until the next.
func (w *World) step(draw *rand.Rand, phone *Phone) {
	chance := func(percent int) bool { return draw.IntN(100) < percent }
	switch n := draw.IntN(20); {
	case n < 6:
		leg := Leg{Place: "somewhere", Cell: chance(85), Tail: chance(30)}
		if chance(60) {
			leg.WiFi = []string{Home, Home, "office", "café", "train"}[draw.IntN(5)]
		}
		leg.Tail = leg.Tail && (leg.Cell || leg.WiFi != "")
		w.Enter(leg)
	case n < 8:
		w.phone.SetExpensive(chance(50))
	case n < 10:
		w.LowData(chance(50))
	case n < 12:
		w.Discover(w.on(Home))
	case n < 13:
		w.Unsettled(time.Duration(1+draw.IntN(2000)) * ms)
	case n < 14:
		w.Relay.Behave([]Tunnels{quick, cold, asleep, {AcceptedAfter: 2 * time.Second, Old: chance(50)}}[draw.IntN(4)])
	case n < 15:
		w.Net.Link(w.phone, w.machine).Heal()
		if chance(40) {
			w.Net.Link(w.phone, w.machine).Cut().MayMiss() // its LAN and tailnet are silent, the relay goes on
		}
	case n < 16:
		if up := phone.Connections(); len(up) > 0 && up[len(up)-1].Class == route.Relay && up[len(up)-1].Ended == 0 {
			w.Net.Link(w.phone, w.relayHost).Reset()
		}
	}
	// Mostly minutes; sometimes no longer than a race, a debounce or a floor takes.
	pause := time.Duration(draw.ExpFloat64() * float64(4*time.Minute))
	if chance(40) {
		pause = time.Duration(draw.ExpFloat64() * float64(1500*ms))
	}
	time.Sleep(min(pause, 30*time.Minute).Round(time.Microsecond) + 331*time.Microsecond)
}

// walkLog is what the system and discovery have told the app, with the times.
type walkLog struct {
	mu      sync.Mutex
	entries []logged
}

type logged struct {
	at   time.Duration
	path route.Path
	seen bool
}

func (l *walkLog) add(w *World) func(route.Path) {
	return func(p route.Path) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.entries = append(l.entries, logged{w.now(), p, w.discovery.sees()})
	}
}

func (l *walkLog) updated(w *World) { l.add(w)(w.path(w.phone.Connectivity())) }

// check holds the rules against a walk.
func (l *walkLog) check(w *World, phone *Phone) {
	l.triggers(w, phone)
	makesBeforeItBreaks(w, phone)
	oneWinner(w, phone)
	if n := most(phone.Attempts()); n > race.Concurrent {
		w.Errorf("%d attempts at once", n)
	}
}

// triggers checks that no roam came from a standing fact: a path change needs that the interfaces have changed since the
// race before, a probe that a better class was observed, and both keep their distance.
func (l *walkLog) triggers(w *World, phone *Phone) {
	races := phone.Races()
	last := time.Duration(-1)
	for i, r := range races {
		if r.Cause == roam.Connect {
			continue
		}
		floor := roam.Floor
		switch r.Cause {
		case roam.Roam:
			if i > 0 && !l.changed(races[i-1].Began-roam.Debounce, r.Began) {
				w.Errorf("a path change at %v without one", r.Began)
			}
		case roam.Probe:
			floor = roam.Interval
			if !l.better(phone, r) {
				w.Errorf("a probe at %v, and nothing better is there: %v", r.Began, r.Path)
			}
		}
		if last >= 0 && r.Began-last < floor {
			w.Errorf("a %v at %v, %v after the last roam", r.Cause, r.Began, r.Began-last)
		}
		last = r.Began
	}
}

// changed reports whether the interfaces were not the same all the time between two instants.
func (l *walkLog) changed(from, to time.Duration) bool {
	var before *route.Path
	for _, e := range l.entries {
		if e.at > to {
			break
		}
		if before != nil && e.at >= from && !before.SameInterfaces(e.path) {
			return true
		}
		before = &e.path
	}
	return false
}

// better reports whether, when the race began, a class could be observed that is better than the one in use.
func (l *walkLog) better(phone *Phone, r Raced) bool {
	current := route.Unknown
	for _, c := range phone.Connections() {
		if c.Adopted <= r.Began && (c.Ended == 0 || c.Ended >= r.Began) {
			current = c.Class
		}
	}
	seen := false
	for _, e := range l.entries {
		if e.at <= r.Began {
			seen = e.seen
		}
	}
	return seen && r.Path.LocalLink() && current > route.LAN || r.Path.TailnetAddr.IsValid() && current > route.Tailnet
}

// makesBeforeItBreaks checks that the app closed no live connection before it had adopted the next.
func makesBeforeItBreaks(w *World, phone *Phone) {
	up := phone.Connections()
	for i, c := range up {
		if i+1 < len(up) && !c.Lost && c.Ended < up[i+1].Adopted {
			w.Errorf("the connection of %v was closed at %v, the next one adopted at %v", c.Adopted, c.Ended, up[i+1].Adopted)
		}
	}
}

// oneWinner checks that a race has one winner at most, and that what was not adopted was closed, and what was replaced.
func oneWinner(w *World, phone *Phone) {
	for _, r := range phone.Races() {
		won := 0
		for _, lane := range r.Lanes {
			if lane.State == race.Won {
				won++
			}
		}
		if won > 1 || r.Err == nil && won == 0 {
			w.Errorf("the race of %v has %d winners", r.Began, won)
		}
	}
	for _, c := range phone.Made() {
		if c.Ended == 0 {
			w.Errorf("the connection of %v, adopted at %v, was never closed", c.At, c.Adopted)
		}
	}
}
