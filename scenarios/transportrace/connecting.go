package transportrace

import (
	"os"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/scenarios"
	"github.com/seed-5a7f77c4/deadair/selection/memory"
	"github.com/seed-5a7f77c4/deadair/selection/roam"
	"github.com/seed-5a7f77c4/deadair/selection/route"
)

func connecting() []story {
	return []story{
		{ID: "TR-1", Title: "cold connect on cellular, relay the only way, nothing remembered", Observed: "10 to 20 s, two dials", Play: coldConnect},
		{ID: "TR-2", Title: "the same, relay remembered for cell", Play: remembered},
		{ID: "TR-3", Title: "cold relay: accepted at 100 ms, ready at 4 s", Observed: "abandoned at 350 ms, redialled", Play: coldRelay},
		{ID: "TR-4", Title: "relay accepts and never gets ready", Observed: "not recorded", Play: halfOpen},
		{ID: "TR-5", Title: "old relay that knows no ready-v2", Play: oldRelay},
		{ID: "TR-6", Title: "ready before accepted is ignored", Play: readyFirst},
		{ID: "TR-17", Title: "LAN addresses on cellular go to the back", Observed: "5 s each at the front", Play: offLink},
		{ID: "TR-18", Title: "signed out with the relay remembered: no relay in the plan, from any memory", Observed: "the remembered relay entered the race", Play: signedOut},
		{ID: "TR-20", Title: "sixteen tunnels held by orphans, freed by the sweep", Play: orphans},
		{ID: "TR-24", Title: "nobody answers: the race ends within its budget with the last error", Play: budget},
	}
}

// connect starts a phone on cellular and gives the time until it was connected; false when it never was.
func connect(p *scenarios.Play, w *World, phone *Phone, wait time.Duration) (time.Duration, bool) {
	w.Cell.Up()
	began := p.Elapsed()
	phone.Start()
	time.Sleep(wait)
	up := phone.Connections()
	if len(up) == 0 {
		return 0, false
	}
	p.Figure("connected", (up[0].At - began).Seconds())
	return up[0].At - began, true
}

func coldConnect(p *scenarios.Play, s Subject) {
	w := NewWorld(p, Setup{AcceptedAfter: 50 * ms, ColdStart: 200 * ms})
	phone := w.Phone(s, AllRoutes)
	took, ok := connect(p, w, phone, 30*time.Second)
	require.True(p, ok)
	assert.Equal(p, route.Relay, phone.Connections()[0].Class)
	assert.Less(p, took, 1500*ms)
	assert.Equal(p, 1, w.Dials())
	_, tried := w.FirstDirect()
	assert.True(p, tried, "a direct route was tried first")
	lanes := phone.Races()[0].Lanes
	assert.Equal(p, relayDelay, started(phone.Races()[0], route.Relay)-lanes[0].Started)
}

// relayDelay is how far a relay behind the first direct route starts.
const relayDelay = 300 * ms

// started is when the class's first candidate was dialled, from the start of the race; -1 when it was not.
func started(r Raced, c route.Class) time.Duration {
	for i, slot := range r.Plan.Slots {
		if slot.Class == c && (i == 0 || r.Lanes[i].Started > 0) {
			return r.Lanes[i].Started
		}
	}
	return -1
}

func remembered(p *scenarios.Play, s Subject) {
	w := NewWorld(p, Setup{AcceptedAfter: 50 * ms, ColdStart: 200 * ms})
	phone := w.Phone(s, AllRoutes)
	_, ok := connect(p, w, phone, 5*time.Second)
	require.True(p, ok)
	path := route.Path{Satisfied: true, Cellular: true}
	plan := phone.Plan(roam.Request{Path: &path})
	assert.Equal(p, route.Relay, plan.Slots[0].Class)
	assert.Zero(p, plan.Slots[0].Delay)
	// A tailnet worked last, but somewhere else.
	phone.mu.Lock()
	phone.Remember("wifi:10.9.9", Tailnet)
	phone.mu.Unlock()
	assert.Equal(p, route.Relay, phone.Plan(roam.Request{Path: &path}).Slots[0].Class, "what worked on this network outranks the last good")
}

func coldRelay(p *scenarios.Play, s Subject) {
	w := NewWorld(p, Setup{AcceptedAfter: 50 * ms, ColdStart: 3500 * ms, TokenAfter: 3 * time.Second})
	phone := w.Phone(s, AllRoutes[2:])
	took, ok := connect(p, w, phone, 30*time.Second)
	require.True(p, ok)
	assert.Equal(p, 1, w.Dials())
	assert.Greater(p, took, 3500*ms)
	assert.Less(p, took, 4500*ms, "the token was fetched meanwhile")
}

func halfOpen(p *scenarios.Play, s Subject) {
	w := NewWorld(p, Setup{AcceptedAfter: 50 * ms, NeverReady: true})
	phone := w.Phone(s, AllRoutes[2:])
	_, ok := connect(p, w, phone, 8500*ms)
	assert.False(p, ok)
	require.NotEmpty(p, phone.Races())
	first := phone.Races()[0]
	assert.ErrorIs(p, first.Err, os.ErrDeadlineExceeded)
	assert.Equal(p, 1, phone.Failures(Relay))
	assert.InDelta(p, 7.3, first.Lanes[0].Ended.Seconds(), 0.3)
}

func oldRelay(p *scenarios.Play, s Subject) {
	w := NewWorld(p, Setup{OldRelay: true})
	phone := w.Phone(s, AllRoutes[2:])
	_, ok := connect(p, w, phone, 5*time.Second)
	require.True(p, ok)
	seen := w.relay.seen()
	require.Len(p, seen, 2)
	assert.True(p, seen[0].v2)
	assert.False(p, seen[1].v2)

	again := w.Phone(s, AllRoutes[2:])
	again.profile.Memory.Record(time.Now().Add(-time.Hour), "", nil, &memory.Success{Key: Relay, ReadyV2: true})
	again.Start()
	time.Sleep(900 * ms)
	assert.Len(p, w.relay.seen(), 3, "an endpoint that once negotiated ready=2 is never redialled the old way")
}

func readyFirst(p *scenarios.Play, s Subject) {
	w := NewWorld(p, Setup{ReadyFirst: true, AcceptedAfter: 50 * ms})
	phone := w.Phone(s, AllRoutes[2:])
	_, ok := connect(p, w, phone, 5*time.Second)
	assert.False(p, ok)
	assert.Equal(p, 1, w.Dials())
}

func offLink(p *scenarios.Play, s Subject) {
	w := NewWorld(p, Setup{})
	phone := w.Phone(s, append([]memory.Route{{Address: "desk.local"}, {Address: "127.0.0.1"}}, AllRoutes...))
	path := route.Path{Satisfied: true, Cellular: true}
	plan := phone.Plan(roam.Request{Path: &path})
	first := map[string]bool{}
	for _, slot := range plan.Slots {
		if !slot.Alternate {
			first[slot.Address] = slot.Demoted()
		}
	}
	assert.Equal(p, map[string]bool{"desk.local": true, "127.0.0.1": false, LAN: true, Tailnet: false, Relay: false}, first)
	assert.True(p, plan.Slots[3].Demoted() && plan.Slots[4].Demoted(), "%v", plan)
}

func signedOut(p *scenarios.Play, s Subject) {
	w := NewWorld(p, Setup{})
	phone := w.Phone(s, AllRoutes)
	phone.Remember("cell", Relay)
	path := route.Path{Satisfied: true, Cellular: true}
	for account, want := range map[string]error{"": route.ErrSignIn, "bob": route.ErrWrongAccount} {
		phone.Account = account
		plan := phone.Plan(roam.Request{Path: &path})
		assert.NotContains(p, plan.Classes(), route.Relay)
		assert.ErrorIs(p, plan.Missing, want)
	}
	_, ok := connect(p, w, phone, 12*time.Second)
	assert.False(p, ok)
	assert.Zero(p, w.Dials())
}

func orphans(p *scenarios.Play, s Subject) {
	w := NewWorld(p, Setup{Orphans: maxTunnels})
	phone := w.Phone(s, AllRoutes[2:])
	took, ok := connect(p, w, phone, 20*time.Minute)
	require.True(p, ok)
	assert.GreaterOrEqual(p, took, 10*time.Minute)
	assert.LessOrEqual(p, took, 16*time.Minute)
	assert.ErrorContains(p, phone.Races()[0].Err, "4503")
}

func budget(p *scenarios.Play, s Subject) {
	w := NewWorld(p, Setup{})
	phone := w.Phone(s, AllRoutes[:2])
	_, ok := connect(p, w, phone, 10500*ms)
	assert.False(p, ok)
	require.NotEmpty(p, phone.Races())
	assert.LessOrEqual(p, phone.Races()[0].At-p.Elapsed(), time.Duration(0))
	assert.Error(p, phone.Races()[0].Err)
}
