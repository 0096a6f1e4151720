package roam_test

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-5a7f77c4/deadair/selection/race"
	"github.com/seed-5a7f77c4/deadair/selection/rank"
	"github.com/seed-5a7f77c4/deadair/selection/roam"
	"github.com/seed-5a7f77c4/deadair/selection/route"
)

// session is a connection of the example.
type session struct {
	over route.Class
	done chan struct{}
}

func (s *session) Close() error {
	fmt.Println("closed:", s.over)
	close(s.done)
	return nil
}

// A phone that is connected over the relay comes into its Wi-Fi: the new connection is there before the old one is closed.
func ExampleSession() {
	street := route.Path{Satisfied: true, Cellular: true}
	home := route.Path{Satisfied: true, Cellular: true, WiFi: true}
	adopted := make(chan route.Class, 1)
	s := roam.NewSession(roam.Config[*session]{
		Race: func(_ context.Context, r roam.Request) (race.Outcome[*session], error) {
			fmt.Printf("race on %v: %v\n", r.Path, r.Cause)
			best := route.Relay // a program runs a race.Racer here
			if r.Path.WiFi {
				best = route.LAN
			}
			won := race.Outcome[*session]{Conn: &session{over: best, done: make(chan struct{})}}
			won.Slot.Ranked = rank.Ranked{Class: best, Key: route.Key(best.String())}
			return won, nil
		},
		Alive: func(context.Context, *session) error { return nil },
		Adopt: func(won race.Outcome[*session]) {
			fmt.Println("connected:", won.Conn.over)
			adopted <- won.Conn.over
		},
		Record: func(roam.Request, race.Outcome[*session], error) {},
		Done:   func(c *session) <-chan struct{} { return c.done },
		Policy: roam.DefaultPolicy(),
		Path:   &street,
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Run(ctx)
	}()
	<-adopted
	s.Path(home)
	<-adopted
	s.Path(home) // is taken when the session has finished with the roam
	cancel()
	<-ended
	// Output:
	// race on cellular: connect
	// connected: relay
	// race on wifi+cellular: path change
	// connected: lan
	// closed: relay
	// closed: lan
}

// A Monitor is told what happens, and when; it says what to do, and when to ask again.
func ExampleMonitor() {
	now := time.Date(2026, 5, 4, 9, 0, 0, 0, time.UTC)
	m := roam.NewMonitor(roam.DefaultPolicy())
	m.Path(now, route.Path{Satisfied: true, WiFi: true})
	m.Up(now, route.Relay)
	ask := func() {
		for wake, ok := m.Wake(); ok; wake, ok = m.Wake() {
			now = wake
			fmt.Println(m.Tick(now))
		}
	}
	ask() // the first path sets the base

	now = now.Add(time.Minute)
	m.Observe(now, roam.Observed{Discovered: true, RelayEligible: true})
	ask() // the machine has appeared on this network

	now = now.Add(time.Second)
	m.Path(now, route.Path{Satisfied: true, Cellular: true})
	ask() // Wi-Fi is gone, less than 3 s after the probe: decided again at their end
	// Output:
	// none
	// upgrade probe
	// none
	// path change
}

// The decision alone, for a program with a driver of its own.
func ExampleDecide() {
	in := roam.Input{Live: true, Satisfied: true, Current: route.Relay, Best: route.LAN, Age: time.Minute}
	fmt.Println(roam.Decide(in, roam.DefaultPolicy()))
	ago := time.Second
	in.Changed, in.SinceRoam = true, &ago
	fmt.Println(roam.Decide(in, roam.DefaultPolicy()))
	// Output:
	// upgrade probe 0s
	// none 2s
}
