package transportrace

import (
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/scenarios"
	"github.com/seed-5a7f77c4/deadair/selection/roam"
)

// reconnectStories are about the way back after a connection is lost.
func reconnectStories() []story {
	return []story{
		{ID: "TR-26", Title: "the reconnect ladder: 1, 2, 4, 8, 16, 16, 16 s, then a slow beat; a stable connection resets it", Play: ladder},
	}
}

// waits are the times between the end of a race and the start of the next, for races that began since then.
func waits(phone *Phone, since time.Duration) (waits []float64) {
	races := phone.Races()
	for i, r := range races {
		if i > 0 && r.Began >= since {
			waits = append(waits, seconds(r.Began-races[i-1].Ended))
		}
	}
	return waits
}

func ladder(p *scenarios.Play, s Subject) {
	w := NewWorld(p, Setup{Relay: quick, Port: fixed})
	w.WiFi.Up()
	link := p.Net.Link(w.phone, w.machine)
	link.Refuse()
	phone := w.Phone(s, RoutesAt(fixed)[:1])
	phone.Start()
	time.Sleep(5 * time.Minute)
	got := waits(phone, 0)
	require.Greater(p, len(got), len(roam.Rungs)+3)
	for i, rung := range roam.Rungs {
		assert.InDelta(p, seconds(rung), got[i], 0.2*seconds(rung)+0.001, "rung %d", i)
	}
	for _, beat := range got[len(roam.Rungs):] {
		assert.InDelta(p, 35, beat, 5.001)
	}
	assert.Len(p, w.Dialled(0), len(phone.Races()), "one socket for each")

	link.Heal()
	// lose takes the newest connection away when it has that age, and gives the wait until the next attempt.
	lose := func(age time.Duration) float64 {
		n := len(phone.Connections())
		p.At(phone.Connections()[n-1].Adopted + age)
		link.Reset()
		w.until(time.Minute, func() bool { return len(phone.Connections()) > n })
		races := phone.Races()
		return seconds(races[len(races)-1].Began - phone.Connections()[n-1].Ended)
	}
	w.until(time.Minute, func() bool { return len(phone.Connections()) == 1 })
	assert.InDelta(p, 35, lose(roam.Stable-100*ms), 5.001, "it was not stable: the ladder goes on")
	assert.InDelta(p, 1, lose(roam.Stable+100*ms), 0.201, "it was: the ladder begins anew")
	assert.Empty(p, phone.Roams())
}
