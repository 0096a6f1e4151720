package transportrace

import (
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/scenarios"
	"github.com/seed-5a7f77c4/deadair/selection/memory"
	"github.com/seed-5a7f77c4/deadair/selection/race"
	"github.com/seed-5a7f77c4/deadair/selection/route"
)

// connectingStories are about the first connection on a network.
func connectingStories() []story {
	return []story{
		{ID: "TR-1", Title: "cold connect on cellular, relay the only way, nothing remembered", Observed: "10 to 20 s, two dials", Play: coldConnect},
		{ID: "TR-2", Title: "the same, relay remembered for cell: dialled at once", Play: remembered},
		{ID: "TR-17", Title: "LAN addresses on cellular go to the back; loopback and tailnet stay", Observed: "5 s each at the front", Play: offLink},
		{ID: "TR-18", Title: "signed out, wrong account, relay remembered: no relay in the plan, from any memory", Observed: "the remembered relay entered the race", Play: signedOut},
		{ID: "TR-24", Title: "nobody says hello: the race ends at 10 s with the last error, and who was silent is recorded", Play: budget},
	}
}

func coldConnect(p *scenarios.Play, s Subject) {
	w := NewWorld(p, Setup{Relay: asleep})
	phone := w.Phone(s, AllRoutes)
	took, ok := w.connect(phone, 30*time.Second)
	require.True(p, ok)
	dials := w.Dialled(0)
	p.Figure("relay dials", len(To(dials, "relay")))
	assert.Less(p, took, 1500*ms)
	assert.Equal(p, route.Relay, phone.Connections()[0].Class)
	require.NotEmpty(p, To(dials, "lan", "tailnet"))
	require.Len(p, To(dials, "relay"), 1)
	require.Len(p, w.Relay.Dials(), 1)
	direct, relay := To(dials, "lan", "tailnet")[0], To(dials, "relay")[0]
	assert.Equal(p, race.RelayJoin, relay.At-direct.At, "a direct route is tried first, the relay joins")
	assert.Less(p, took-(relay.At-direct.At), 1200*ms, "about a relay's handshake")
	assert.Len(p, phone.Races(), 1)
}

func remembered(p *scenarios.Play, s Subject) {
	w := NewWorld(p, Setup{Relay: cold})
	phone := w.Phone(s, AllRoutes)
	phone.Remember("cell", memory.Success{Key: Relay, ReadyV2: true})
	phone.Remember("wifi:10.9.9", memory.Success{Key: Tailnet}) // worked last, but somewhere else
	_, ok := w.connect(phone, 3*time.Second)
	require.True(p, ok)
	dials := w.Dialled(0)
	require.Len(p, To(dials, "relay"), 1)
	assert.Zero(p, To(dials, "relay")[0].At-phone.Races()[0].Began)
	assert.Equal(p, "relay", order(dials)[0])

	phone.Restart() // what is remembered now is what the app itself has written
	time.Sleep(3 * time.Second)
	dials = w.Dialled(phone.Races()[1].Began)
	assert.Equal(p, "relay", order(dials)[0])
	assert.Zero(p, To(dials, "relay")[0].At-phone.Races()[1].Began)
	assert.Len(p, w.Relay.Dials(), 2)
}

// fixed is a port outside of any sweep.
const fixed = 22022

func offLink(p *scenarios.Play, s Subject) {
	w := NewWorld(p, Setup{Relay: quick, Port: fixed})
	p.Net.Alias("desk.local", w.machine)
	w.Tail.Up()
	p.Net.Link(w.phone, w.relayHost).Cut()
	p.Net.Link(w.phone, w.machine).Cut()
	routes := append([]memory.Route{{Address: "desk.local", Port: fixed}, {Address: "127.0.0.1", Port: fixed}}, RoutesAt(fixed)...)
	phone := w.Phone(s, routes)
	_, ok := w.connect(phone, 10500*ms)
	assert.False(p, ok)
	began := map[string]time.Duration{}
	for _, a := range phone.Attempts() {
		if _, again := began[a.Candidate.Address]; !again {
			began[a.Candidate.Address] = a.Began
		}
	}
	require.Len(p, began, len(routes), "all are tried")
	for _, untouched := range []string{"127.0.0.1", Tailnet, Relay} {
		for _, demoted := range []string{"desk.local", LAN} {
			assert.LessOrEqual(p, began[untouched], began[demoted], "%s before %s", untouched, demoted)
		}
	}
	dials := w.Dialled(0)
	assert.LessOrEqual(p, To(dials, "relay")[0].At, To(dials, "lan")[0].At, "as the network saw it")
	assert.Zero(p, To(dials, "127.0.0.1")[0].At-phone.Races()[0].Began)
}

func signedOut(p *scenarios.Play, s Subject) {
	w := NewWorld(p, Setup{Relay: quick, Port: fixed})
	w.Cell.Up()
	for _, user := range []struct {
		account string
		want    error
	}{{"", route.ErrSignIn}, {"bob", route.ErrWrongAccount}} {
		phone := w.Phone(s, RoutesAt(fixed))
		phone.Account = user.account
		phone.Remember("cell", memory.Success{Key: Relay, ReadyV2: true})
		began := w.now()
		phone.Start()
		time.Sleep(12 * time.Second)
		phone.Stop()
		require.NotEmpty(p, phone.Races())
		first := phone.Races()[0]
		assert.ErrorIs(p, first.Err, user.want)
		assert.NotContains(p, first.Plan.Classes(), route.Relay)
		dials := w.Dialled(began)
		assert.NotEmpty(p, To(dials, "lan", "tailnet"), "the direct routes are tried")
		assert.Empty(p, To(dials, "relay", "account"), "signed in as %q", user.account)
	}
	assert.Empty(p, w.Relay.Dials())
}

func budget(p *scenarios.Play, s Subject) {
	const dark = "192.168.1.11"
	w := NewWorld(p, Setup{Relay: quick, Port: fixed})
	p.Net.Dark(dark, "192.168.1.12")
	w.Machine.Answer(Silent)
	w.WiFi.Up()
	phone := w.Phone(s, []memory.Route{
		{Address: LAN, Port: fixed}, {Address: Tailnet, Port: fixed}, {Address: dark, Port: fixed}, {Address: "192.168.1.12", Port: fixed},
	})
	_, ok := w.connect(phone, 10500*ms)
	assert.False(p, ok)
	require.NotEmpty(p, phone.Races())
	r := phone.Races()[0]
	assert.Equal(p, race.Budget, r.Ended-r.Began)
	assert.ErrorIs(p, r.Err, race.ErrSilent)
	assert.Equal(p, 1, phone.Failures(LAN), "it opened, and was silent to the end")
	assert.Equal(p, 1, phone.Failures(Tailnet), "it did not open in its time")
	assert.Equal(p, 1, phone.Failures(dark), "nor did this one")
	assert.Zero(p, phone.Failures("192.168.1.12"), "it was still opening")
	require.Len(p, r.Lanes, 4)
	for i, l := range r.Lanes {
		assert.NotEqual(p, race.Waiting, l.State, "%v was tried", r.Plan.Slots[i])
	}
}
