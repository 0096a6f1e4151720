package transportrace

import (
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/scenarios"
	"github.com/seed-5a7f77c4/deadair/selection/roam"
	"github.com/seed-5a7f77c4/deadair/selection/route"
)

func roaming() []story {
	return []story{
		{ID: "TR-7", Title: "idle on a cellular relay for a night, path flapping between cheap and expensive", Observed: "about 20 dials in 3.5 min, replaced each time", Play: idleNight},
		{ID: "TR-8", Title: "Wi-Fi comes back during a relay session, traffic flowing", Observed: "stays on the relay", Play: wifiBack},
		{ID: "TR-9", Title: "the machine appears in discovery while on Wi-Fi", Play: appears},
		{ID: "TR-10", Title: "tailnet switched off mid-session", Observed: "about 5 s", Play: tailnetOff},
		{ID: "TR-12", Title: "a roam race fails, the live connection stays", Play: roamFails},
		{ID: "TR-13", Title: "a roam race is won by the endpoint in use", Play: sameEndpoint},
	}
}

// quick is a relay that is awake. Its times are odd, so that no timer of a program falls into the instant of a packet:
// which of the two comes first would be left to the scheduler.
var quick = Setup{AcceptedAfter: 21_310 * time.Microsecond, ColdStart: 47_730 * time.Microsecond}

func idleNight(p *scenarios.Play, s Subject) {
	w := NewWorld(p, quick)
	phone := w.Phone(s, AllRoutes)
	_, ok := connect(p, w, phone, 10*time.Second)
	require.True(p, ok)
	races := len(phone.Races())
	for i := range 96 {
		w.phone.SetExpensive(i%2 == 0)
		time.Sleep(5 * time.Minute)
	}
	assert.Len(p, phone.Races(), races)
	assert.Len(p, phone.Connections(), 1)
	p.Figure("dials", w.Dials()-1)
	assert.Equal(p, 1, w.Dials())
}

func wifiBack(p *scenarios.Play, s Subject) {
	w := NewWorld(p, quick)
	phone := w.Phone(s, AllRoutes)
	phone.Stream = true
	phone.Remember("wifi:192.168.1", LAN)
	_, ok := connect(p, w, phone, 20*time.Second)
	require.True(p, ok)
	w.WiFi.Up()
	time.Sleep(3 * time.Second)
	up := phone.Connections()
	require.Len(p, up, 2)
	assert.Equal(p, route.LAN, up[1].Class)
	assert.Equal(p, roam.Roam, phone.Races()[1].Cause)
	count, lost, gap := phone.Flow()
	p.Figure("gap", gap.Seconds())
	assert.Greater(p, count, 1000)
	assert.Zero(p, lost)
	assert.LessOrEqual(p, gap, 2*tick)
}

func appears(p *scenarios.Play, s Subject) {
	w := NewWorld(p, quick)
	w.Net.Link(w.phone, w.machine).Cut()
	w.WiFi.Up()
	phone := w.Phone(s, AllRoutes)
	phone.Start()
	time.Sleep(5 * time.Second)
	require.Len(p, phone.Connections(), 1)
	w.Net.Link(w.phone, w.machine).Heal()
	w.Discover(true)
	time.Sleep(3 * time.Second)
	assert.Len(p, phone.Races(), 1, "too young to be probed")
	time.Sleep(5 * time.Second)
	w.Discover(true)
	time.Sleep(3 * time.Second)
	races := phone.Races()
	require.Len(p, races, 2)
	assert.Equal(p, roam.Probe, races[1].Cause)
	assert.NotContains(p, races[1].Plan.Classes(), route.Relay)
	assert.Equal(p, route.LAN, phone.Connections()[1].Class)
}

func tailnetOff(p *scenarios.Play, s Subject) {
	w := NewWorld(p, quick)
	w.Tail.Up()
	phone := w.Phone(s, AllRoutes)
	_, ok := connect(p, w, phone, 5*time.Second)
	require.True(p, ok)
	require.Equal(p, route.Tailnet, phone.Connections()[0].Class)
	off := p.Elapsed()
	w.Tail.Down()
	time.Sleep(5 * time.Second)
	up := phone.Connections()
	require.Len(p, up, 2)
	assert.Equal(p, route.Relay, up[1].Class)
	p.Figure("recovered", (up[1].At - off).Seconds())
	assert.Less(p, up[1].At-off, 2*time.Second)
}

func roamFails(p *scenarios.Play, s Subject) {
	w := NewWorld(p, quick)
	phone := w.Phone(s, AllRoutes)
	_, ok := connect(p, w, phone, 10*time.Second)
	require.True(p, ok)
	w.Net.Link(w.phone, w.machine).Cut()
	// New sockets to the relay are refused from now on, those that are open go on.
	w.Net.Link(w.phone, w.relayHost).Refuse()
	w.WiFi.Up()
	time.Sleep(15 * time.Second)
	races := phone.Races()
	require.Len(p, races, 2)
	assert.Error(p, races[1].Err)
	assert.Len(p, phone.Connections(), 1)
	require.NoError(p, phone.live.ws.Ping(p.Context()))
}

func sameEndpoint(p *scenarios.Play, s Subject) {
	w := NewWorld(p, quick)
	phone := w.Phone(s, AllRoutes[2:])
	_, ok := connect(p, w, phone, 10*time.Second)
	require.True(p, ok)
	w.WiFi.Up()
	time.Sleep(5 * time.Second)
	assert.Len(p, phone.Connections(), 1, "the live one proved alive and stays")
	assert.Equal(p, 2, w.Dials())
	assert.Empty(p, phone.profile.Memory.Remembered("wifi:192.168.1"))
}
