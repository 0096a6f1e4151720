package transportrace

import (
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/scenarios"
	"github.com/seed-5a7f77c4/deadair/selection/memory"
	"github.com/seed-5a7f77c4/deadair/selection/race"
)

// planStories are about who is dialled when.
func planStories() []story {
	return []story{
		{ID: "TR-21", Title: "plan shapes: slots, delays, stragglers, pull-forward", Play: planShapes},
		{ID: "TR-22", Title: "port sweep: every route once before any alternate port, one strike per route and race", Play: portSweep},
	}
}

// planShapes plays races to addresses that nobody answers for, and to one that refuses, and reads from the network when
// each was dialled.
func planShapes(p *scenarios.Play, s Subject) {
	const second, third, printer = "192.168.1.11", "192.168.1.12", "192.168.1.13"
	w := NewWorld(p, Setup{Relay: quick})
	p.Net.Dark(second, third)
	p.Net.Link(w.phone, w.machine).Cut()
	p.Net.Link(w.phone, w.relayHost).Cut()
	w.neighbour("printer", printer) // refuses
	w.WiFi.Up()
	w.Tail.Up()
	routes := map[string]memory.Route{
		"lan": {Address: LAN, Port: fixed}, "tailnet": {Address: Tailnet, Port: fixed}, "relay": {Address: Relay, Owner: owner},
		second: {Address: second, Port: fixed}, third: {Address: third, Port: fixed}, printer: {Address: printer, Port: fixed},
	}
	for _, shape := range []struct {
		routes []string
		want   map[string]time.Duration // when each was dialled
	}{
		{[]string{"relay"}, map[string]time.Duration{"relay": 0}},
		{[]string{"lan", "relay"}, map[string]time.Duration{"lan": 0, "relay": 300 * ms}},
		{[]string{"lan", "tailnet", "relay"}, map[string]time.Duration{"lan": 0, "tailnet": 250 * ms, "relay": 500 * ms}},
		// The best of each class comes first; a second LAN address waits for a place, which an open window frees.
		{[]string{"lan", second, "tailnet", "relay"}, map[string]time.Duration{"lan": 0, "tailnet": 250 * ms, "relay": 500 * ms, second: 5 * time.Second}},
		{[]string{"lan", second, third, "relay"}, map[string]time.Duration{"lan": 0, "relay": 300 * ms, second: 500 * ms, third: 5 * time.Second}},
		// A refusal takes a round trip of 10 ms; it pulls the next of the first wave forward, and no other.
		{[]string{printer, "tailnet", "relay"}, map[string]time.Duration{printer: 0, "tailnet": 10 * ms, "relay": 500 * ms}},
	} {
		var saved []memory.Route
		for _, name := range shape.routes {
			saved = append(saved, routes[name])
		}
		phone := w.Phone(s, saved)
		began := w.now()
		phone.Start()
		time.Sleep(6 * time.Second)
		phone.Stop()
		got := map[string]time.Duration{}
		for _, d := range w.Dialled(began) {
			if _, twice := got[d.To]; !twice && d.To != "account" {
				got[d.To] = d.At - phone.Races()[0].Began
			}
		}
		require.Len(p, got, len(shape.want), "%v", shape.routes)
		for name, at := range shape.want {
			assert.InDelta(p, seconds(at), seconds(got[name]), 0.001, "%v of %v", name, shape.routes)
		}
		assert.LessOrEqual(p, most(phone.Attempts()), race.Concurrent)
	}
}

// most is the number of attempts that were under way at once. One that ends makes room for one that begins in the same
// instant.
func most(attempts []Attempted) int {
	n := 0
	for _, a := range attempts {
		at := 0
		for _, b := range attempts {
			if b.Began <= a.Began && (b.Ended == 0 || b.Ended > a.Began) {
				at++
			}
		}
		n = max(n, at)
	}
	return n
}

func portSweep(p *scenarios.Play, s Subject) {
	const moved, gone = 8790, "192.168.1.11"
	w := NewWorld(p, Setup{Relay: quick, Port: fixed})
	w.neighbour("gone", gone)
	w.WiFi.Up()
	phone := w.Phone(s, []memory.Route{{Address: "127.0.0.1", Port: fixed + 1}, {Address: LAN}, {Address: gone, Port: Port}})
	phone.Start()
	time.Sleep(700 * ms)
	require.Len(p, phone.Races(), 1)
	dials := w.Dialled(0)
	require.Len(p, dials, 1+2*9, "a port outside of the family stands alone")
	assert.ElementsMatch(p, []string{"127.0.0.1", "lan", gone}, order(dials[:3]), "every route once")
	for _, route := range []string{"lan", gone} {
		ports := map[uint16]bool{}
		for _, d := range To(dials, route) {
			ports[d.Port] = true
		}
		assert.Len(p, ports, 9, "%s: each port once", route)
	}
	assert.Equal(p, 1, phone.Failures(LAN), "nine ports, one strike")
	assert.Equal(p, 1, phone.Failures(gone))

	w.Machine.Listen(moved)
	time.Sleep(3 * time.Second)
	require.Len(p, phone.Connections(), 1, "the machine is found where it has moved to")
	assert.Zero(p, phone.Failures(LAN), "its first ports failed before it was found")
	assert.NotZero(p, phone.Failures(gone))
}
