package transportrace

import (
	"time"

	"github.com/seed-5a7f77c4/deadair/scenarios"
	"github.com/seed-5a7f77c4/deadair/selection/race"
)

// Record is what a walk leaves behind for a picture.
type Record struct {
	Marks       []Mark      // what happened to the interfaces
	Connections []Connected // classes in use
	Races       []Raced
	Ended       time.Duration
	Lost        int
	Gap         time.Duration
}

// Mark is an interface that goes up or down.
type Mark struct {
	At        time.Duration
	Interface string
	Up        bool
}

// Walk goes from home Wi-Fi through the street and a train to the office, with the machine's stream running, and fills
// the record.
func Walk(r *Record) scenarios.Scenario[Subject] {
	return scenarios.Scenario[Subject]{ID: "walk", Title: "home, street, train, office", Play: func(p *scenarios.Play, s Subject) {
		w := NewWorld(p, quick)
		set := func(name string, up bool) {
			i := map[string]interface {
				Up()
				Down()
			}{"wifi": w.WiFi, "cell": w.Cell, "tail": w.Tail}[name]
			if up {
				i.Up()
			} else {
				i.Down()
			}
			r.Marks = append(r.Marks, Mark{p.Elapsed(), name, up})
		}
		set("cell", true)
		set("wifi", true)
		phone := w.Phone(s, AllRoutes)
		phone.Stream = true
		phone.Start()
		p.At(20 * time.Second) // at home
		set("wifi", false)
		p.At(40 * time.Second) // in the street
		set("tail", true)
		p.At(60 * time.Second) // on the train: a tunnel, and the tailnet goes with the network under it
		set("cell", false)
		set("tail", false)
		p.At(66 * time.Second)
		set("cell", true)
		p.At(90 * time.Second) // at the office, another Wi-Fi
		w.WiFi.Move("office", "10.20.30.40")
		set("wifi", true)
		p.At(110 * time.Second)
		r.Connections, r.Races, r.Ended = phone.Connections(), phone.Races(), p.Elapsed()
		_, r.Lost, r.Gap = phone.Flow()
	}}
}

// ColdConnect is TR-1; it gives its first race.
func ColdConnect(r *Record) scenarios.Scenario[Subject] {
	return scenarios.Scenario[Subject]{ID: "race", Title: "cold connect on cellular", Play: func(p *scenarios.Play, s Subject) {
		w := NewWorld(p, Setup{AcceptedAfter: 50 * ms, ColdStart: 200 * ms})
		phone := w.Phone(s, AllRoutes)
		connect(p, w, phone, 12*time.Second)
		r.Races = phone.Races()
	}}
}

// Dialled lists the lanes of a race that were dialled, with their slots.
func (r Raced) Dialled() (slots []race.Slot, lanes []race.Lane) {
	for i, l := range r.Lanes {
		if l.State != race.Waiting {
			slots, lanes = append(slots, r.Plan.Slots[i]), append(lanes, l)
		}
	}
	return slots, lanes
}
