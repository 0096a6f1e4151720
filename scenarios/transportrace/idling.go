package transportrace

import (
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/scenarios"
)

// idleStories are about a connection that is to be left alone.
func idleStories() []story {
	return []story{
		{ID: "TR-7", Title: "idle on a cellular relay for 3.5 min, path flapping between cheap and expensive, constrained and not", Observed: "about 20 dials, replaced each time", Play: func(p *scenarios.Play, s Subject) {
			idle(p, s, 10, 21*time.Second)
		}},
	}
}

// Night is TR-7 for eight hours.
func Night() scenarios.Scenario[Subject] {
	return scene("TR-7-night", "idle on a cellular relay for a night of 8 h, path flapping", func(p *scenarios.Play, s Subject) {
		idle(p, s, 96, 5*time.Minute)
	})
}

// idle lets the path flap so often, and nothing else happen.
func idle(p *scenarios.Play, s Subject, flaps int, every time.Duration) {
	w := NewWorld(p, Setup{Relay: quick})
	phone := w.Phone(s, AllRoutes)
	w.online(phone)
	w.Relay.Behave(asleep) // as soon as nothing is asked of it
	before, since := len(w.Relay.Dials()), w.now()
	for i := range flaps {
		switch i % 4 {
		case 0, 2:
			w.phone.SetExpensive(i%4 == 0)
		default:
			w.LowData(i%4 == 1)
		}
		time.Sleep(every)
	}
	p.Figure("dials", len(w.Relay.Dials())-before)
	p.Figure("replaced", len(phone.Connections())-1)
	assert.Empty(p, w.Dialled(since))
	assert.Empty(p, phone.Roams())
	require.Len(p, phone.Connections(), 1)
	assert.Zero(p, phone.Connections()[0].Ended, "the same socket")
}
