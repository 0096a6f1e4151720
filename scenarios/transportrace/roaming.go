package transportrace

import (
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/scenarios"
	"github.com/seed-5a7f77c4/deadair/selection/roam"
	"github.com/seed-5a7f77c4/deadair/selection/route"
)

// roamingStories are about a live connection and the one that replaces it.
func roamingStories() []story {
	return []story{
		{ID: "TR-8", Title: "Wi-Fi comes back during a relay session, traffic flowing", Observed: "stays on the relay", Play: wifiBack},
		{ID: "TR-10", Title: "tailnet switched off mid-session: full race at once, age ignored", Observed: "about 5 s", Play: tailnetOff},
		{ID: "TR-12", Title: "a roam race fails: the live connection is untouched, traffic flowing", Play: roamFails},
		{ID: "TR-13", Title: "a roam race is won by the endpoint in use: the live socket stays, memories untouched", Play: sameEndpoint},
		{ID: "TR-13-dead", Title: "the same, and the live socket does not prove alive: the new one replaces it", Play: deadSocket},
		{ID: "TR-25", Title: "a superseded attempt: its late winner is closed", Play: superseded},
	}
}

// unbroken checks that the stream has flowed without a gap.
func unbroken(p *scenarios.Play, phone *Phone) {
	p.Helper()
	count, lost, gap := phone.Flow()
	p.Figure("gap", gap.Seconds())
	assert.Greater(p, count, 250)
	assert.Zero(p, lost)
	assert.LessOrEqual(p, gap, 2*tick)
}

func wifiBack(p *scenarios.Play, s Subject) {
	w := NewWorld(p, Setup{Relay: cold})
	phone := w.Phone(s, AllRoutes)
	phone.Stream = true
	w.online(phone)
	w.WiFi.Up()
	time.Sleep(3 * time.Second)
	require.Len(p, phone.Roams(), 1)
	assert.Equal(p, roam.Roam, phone.Roams()[0].Cause)
	assert.Equal(p, []route.Class{route.LAN, route.Tailnet, route.Relay}, phone.Roams()[0].Plan.Classes())
	up := phone.Connections()
	require.Len(p, up, 2)
	assert.Equal(p, []route.Class{route.Relay, route.LAN}, []route.Class{up[0].Class, up[1].Class})
	assert.Zero(p, up[1].Ended)
	require.NotZero(p, up[0].Ended)
	assert.GreaterOrEqual(p, up[0].Ended, up[1].Adopted, "the old socket serves until the new one does")
	served := w.Machine.Served()
	require.Len(p, served, 2)
	assert.NotZero(p, served[0].Ended, "and is closed after")
	assert.Greater(p, served[0].Ended, served[1].At)
	assert.Zero(p, w.Relay.Open())
	unbroken(p, phone)
}

func tailnetOff(p *scenarios.Play, s Subject) {
	w := NewWorld(p, Setup{Relay: quick, Port: fixed})
	w.Tail.Up()
	phone := w.Phone(s, RoutesAt(fixed))
	w.Cell.Up()
	phone.Start()
	time.Sleep(5 * time.Second)
	up := phone.Connections()
	require.Len(p, up, 1)
	require.Equal(p, route.Tailnet, up[0].Class)
	off := w.now()
	require.Less(p, off-up[0].Adopted, roam.MinAge, "too young for a probe")
	w.TailnetOff()
	time.Sleep(14 * time.Second)
	up = phone.Connections()
	require.Len(p, up, 2)
	assert.Equal(p, route.Relay, up[1].Class)
	p.Figure("recovered", (up[1].Adopted - off).Seconds())
	assert.Less(p, up[1].Adopted-off, 1300*ms, "about a second")
	require.Len(p, phone.Roams(), 1)
	r := phone.Roams()[0]
	assert.Equal(p, roam.Roam, r.Cause)
	assert.LessOrEqual(p, r.Began-off, reroute+roam.Debounce, "at once, when the path is quiet")
	assert.Equal(p, []route.Class{route.LAN, route.Tailnet, route.Relay}, r.Plan.Classes(), "a full race")
	assert.False(p, up[0].Lost, "nobody told the app that its socket was dead")
}

func roamFails(p *scenarios.Play, s Subject) {
	w := NewWorld(p, Setup{Relay: quick, Port: fixed})
	phone := w.Phone(s, RoutesAt(fixed))
	phone.Stream = true
	w.online(phone)
	before := phone.Endpoint(Relay)
	// Another Wi-Fi: the machine is not there, and new sockets to the relay open and are never served.
	w.Relay.Behave(Tunnels{NeverReady: true})
	w.Join("café")
	time.Sleep(25 * time.Second)
	require.Len(p, phone.Roams(), 1)
	assert.Error(p, phone.Roams()[0].Err)
	require.Len(p, phone.Connections(), 1)
	assert.Zero(p, phone.Connections()[0].Ended)
	assert.Equal(p, before.ConsecutiveFailures+1, phone.Failures(Relay), "a failed race is recorded all the same")
	assert.Equal(p, 1, w.Relay.Open())
	unbroken(p, phone)
}

func sameEndpoint(p *scenarios.Play, s Subject) {
	w := NewWorld(p, Setup{Relay: quick})
	phone := w.Phone(s, RelayOnly)
	phone.Stream = true
	w.online(phone)
	memories := string(phone.Stored)
	w.Join("café")
	time.Sleep(5 * time.Second)
	require.Len(p, phone.Roams(), 1)
	assert.NoError(p, phone.Roams()[0].Err)
	made := phone.Made()
	require.Len(p, made, 2)
	assert.Zero(p, made[0].Ended, "the live one proved alive and stays")
	assert.NotZero(p, made[1].Ended, "the new one is closed")
	assert.Len(p, phone.Connections(), 1)
	assert.Equal(p, 1, w.Relay.Open())
	assert.JSONEq(p, memories, string(phone.Stored), "nothing is recorded")
	unbroken(p, phone)
}

func deadSocket(p *scenarios.Play, s Subject) {
	w := NewWorld(p, Setup{Relay: quick})
	phone := w.Phone(s, RelayOnly)
	phone.Stream = true
	w.online(phone)
	before := phone.Endpoint(Relay)
	w.Cell.Cut() // silent, and the phone does not know
	dead := w.now()
	time.Sleep(500 * ms)
	w.Join("café")
	time.Sleep(6 * time.Second)
	require.Len(p, phone.Roams(), 1)
	up := phone.Connections()
	require.Len(p, up, 2, "the live one gave no sign of life")
	r := phone.Roams()[0]
	assert.Equal(p, roam.Proof, up[1].Adopted-r.Ended)
	assert.Equal(p, up[1].Adopted, up[0].Ended)
	assert.Equal(p, up[0].Key, up[1].Key)
	p.Figure("recovered", (up[1].Adopted - dead).Seconds())
	assert.True(p, phone.Endpoint(Relay).LastSuccessAt.After(before.LastSuccessAt), "recorded as any other win")
	last, _, _ := phone.Flow()
	assert.InDelta(p, float64(w.now()/tick), float64(last), 3, "the stream flows again")
}

// superseded has an app that is busy after its hello over the tailnet, whatever happens: its race has been superseded
// when it comes back.
func superseded(p *scenarios.Play, s Subject) {
	w := NewWorld(p, Setup{Relay: quick})
	phone := w.Phone(s, AllRoutes)
	phone.Keystore = 4 * time.Second
	w.online(phone)
	p.Net.Path(w.phone, w.relayHost).Refuse().MayMiss() // no new tunnels, if one is asked for
	w.Tail.Up()
	w.Unsettled(50 * ms)
	time.Sleep(3500 * ms)
	w.Join(Home)
	time.Sleep(4 * time.Second)
	roams := phone.Roams()
	require.Len(p, roams, 2)
	assert.ErrorIs(p, roams[0].Err, route.ErrSuperseded)
	assert.Less(p, roams[1].Ended-roams[1].Began, 500*ms)

	made := phone.Made()
	require.Len(p, made, 3)
	assert.Equal(p, []route.Class{route.Relay, route.LAN, route.Tailnet}, []route.Class{made[0].Class, made[1].Class, made[2].Class})
	assert.Zero(p, made[1].Ended, "the new race's winner stays")
	assert.Zero(p, made[2].Adopted)
	assert.Greater(p, made[2].At, made[1].Adopted, "the old one's came late")
	assert.Equal(p, made[2].At, made[2].Ended, "and was closed")
	open := 0
	for _, c := range w.Machine.Served() {
		if c.Ended == 0 {
			open++
		}
	}
	assert.Equal(p, 1, open, "as the machine sees it")
}
