package transportrace

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/netsim"
	"github.com/seed-5a7f77c4/deadair/scenarios"
	"github.com/seed-5a7f77c4/deadair/selection/race"
)

// Walked is what a walk leaves behind for a picture.
type Walked struct {
	Legs        []Leg
	Connections []Connected
	Races       []Raced
	Dials       []Dial
	Silences    []Silence // of the machine's stream
	Lost        int       // numbers of it
	Ended       time.Duration
}

// Walking is a walk with the machine's stream running; it fills the record.
func Walking(r *Walked, legs ...Leg) scenarios.Scenario[Subject] {
	return scene("walk", "the phone walks", func(p *scenarios.Play, s Subject) {
		w := NewWorld(p, Setup{Relay: cold})
		phone := w.Phone(s, AllRoutes)
		phone.Stream = true
		w.Enter(legs[0])
		phone.Start()
		w.Walk(legs...)
		r.Legs, r.Connections, r.Races, r.Ended = legs, phone.Connections(), phone.Races(), w.now()
		r.Dials, r.Silences = w.Dialled(0), phone.silences()
		_, r.Lost, _ = phone.Flow()
	})
}

// Connecting is the race of TR-1; it fills the record.
func Connecting(r *Raced) scenarios.Scenario[Subject] {
	return scene("race", "cold connect on cellular", func(p *scenarios.Play, s Subject) {
		w := NewWorld(p, Setup{Relay: asleep})
		phone := w.Phone(s, AllRoutes)
		_, ok := w.connect(phone, 12*time.Second)
		require.True(p, ok)
		*r = phone.Races()[0]
	})
}

// scene is a story that stands apart from the list.
func scene(id, title string, play func(*scenarios.Play, Subject)) scenarios.Scenario[Subject] {
	return scenarios.Scenario[Subject]{
		ID: id, Title: title, Play: play, Network: []netsim.Option{netsim.Defaults(netsim.Conditions{Latency: 5 * ms})},
	}
}

// Dialled lists the lanes of a race that were dialled, with their slots.
func (r Raced) Dialled() (slots []race.Slot, lanes []race.Lane) {
	for i, l := range r.Lanes {
		if l.State != race.Waiting {
			slots, lanes = append(slots, r.Ran.Slots[i]), append(lanes, l)
		}
	}
	return slots, lanes
}
