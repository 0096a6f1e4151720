package transportrace

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/scenarios"
	"github.com/seed-5a7f77c4/deadair/selection/memory"
	"github.com/seed-5a7f77c4/deadair/selection/route"
)

// memoryStories are about what the app learns of its routes.
func memoryStories() []story {
	return []story{
		{ID: "TR-14", Title: "dead endpoint: two failures put it last, still tried; 121 s later it is back at its rank", Observed: "raced for ever", Play: deadEndpoint},
		{ID: "TR-15", Title: "cancellation, losers, single-flight, account and key-proof errors are not recorded", Play: blameless},
		{ID: "TR-16", Title: "remembered per network: home, office, cell, nine networks, eight kept", Observed: "last-good only", Play: nineNetworks},
		{ID: "TR-23", Title: "an old profile is used, and loses nothing when it is written back", Play: oldProfile},
	}
}

// visit starts the app, lets it connect, stops it, and gives the order in which it dialled.
func (w *World) visit(phone *Phone) []string {
	began := w.now()
	phone.Start()
	time.Sleep(3 * time.Second)
	phone.Stop()
	return order(w.Dialled(began))
}

// deadEndpoint has three LAN addresses in the profile: one refuses, one is silent for longer than a race takes, and the
// machine's own, which takes a second, so that the others are dialled in every race.
func deadEndpoint(p *scenarios.Play, s Subject) {
	const dead, silent = "192.168.1.11", "192.168.1.12"
	w := NewWorld(p, Setup{Relay: quick, Port: fixed})
	w.neighbour("dead", dead)
	p.Net.Dark(silent)
	w.Machine.Delay(time.Second)
	w.WiFi.Up()
	phone := w.Phone(s, []memory.Route{{Address: dead, Port: fixed}, {Address: silent, Port: fixed}, {Address: LAN, Port: fixed}})
	failed := func() time.Time { return phone.Endpoint(dead).LastFailedAt }
	assert.Equal(p, []string{dead, silent, "lan"}, w.visit(phone))
	assert.Equal(p, []string{"lan", dead, silent}, w.visit(phone), "one failure is none")
	require.Equal(p, 2, phone.Failures(dead))
	time.Sleep(time.Until(failed().Add(memory.FailureWindow)))
	assert.Equal(p, []string{"lan", silent, dead}, w.visit(phone), "last, still tried; the window includes its end")
	require.Equal(p, 3, phone.Failures(dead))
	time.Sleep(time.Until(failed().Add(memory.FailureWindow + time.Second)))
	assert.Equal(p, []string{"lan", dead, silent}, w.visit(phone), "back at its rank")
	assert.Len(p, phone.Connections(), 4)
}

func blameless(p *scenarios.Play, s Subject) {
	const alias, silent = "wss://relay.example/eu/m1", "192.168.1.12"
	w := NewWorld(p, Setup{Relay: cold, Port: fixed})
	p.Net.Dark(silent)
	w.WiFi.Up()
	// play plays races for so long, without the profile of those before.
	play := func(d time.Duration, routes []memory.Route, prepare func(*Phone)) *Phone {
		phone := w.Phone(s, routes)
		prepare(phone)
		phone.Start()
		time.Sleep(d)
		phone.Stop()
		require.NotEmpty(p, phone.Races())
		return phone
	}
	for _, c := range []struct {
		answer string
		lost   bool
		want   error
	}{{Welcome, true, route.ErrKeyProof}, {Account, false, route.ErrAccount}, {Version, false, route.ErrVersion}} {
		w.Machine.Answer(c.answer)
		for _, routes := range [][]memory.Route{RoutesAt(fixed)[:1], RelayOnly} {
			phone := play(2*time.Second, routes, func(phone *Phone) { phone.KeyLost = c.lost })
			assert.ErrorIs(p, phone.Races()[0].Err, c.want)
			assert.Zero(p, phone.Failures(routes[0].Candidate().Key()), "%v", c.want)
		}
	}
	w.Machine.Answer(Welcome)
	phone := play(2*time.Second, append([]memory.Route{{Address: silent, Port: fixed}}, RoutesAt(fixed)[0]), func(*Phone) {})
	require.Len(p, phone.Connections(), 1)
	assert.Zero(p, phone.Failures(silent), "it lost")
	phone = play(100*ms, RelayOnly, func(*Phone) {})
	assert.ErrorIs(p, phone.Races()[0].Err, context.Canceled)
	assert.Zero(p, phone.Failures(Relay), "the user gave up")
	phone = play(2*time.Second, append([]memory.Route{{Address: alias, Owner: owner}}, RelayOnly...), func(*Phone) {})
	refused := busy(phone.Races()[0])
	require.Len(p, refused, 1)
	assert.Zero(p, phone.Failures(refused[0]), "a dial to its machine was under way")

	// And what is a failure is one.
	phone = play(500*ms, []memory.Route{{Address: LAN, Port: fixed + 1}}, func(*Phone) {})
	assert.Equal(p, 1, phone.Failures(LAN), "it refused")
}

func nineNetworks(p *scenarios.Play, s Subject) {
	w := NewWorld(p, Setup{Relay: cold})
	phone := w.Phone(s, AllRoutes)
	at := func(leg Leg) string {
		w.Enter(leg)
		time.Sleep(time.Second)
		return w.visit(phone)[0]
	}
	home, office, street := Leg{WiFi: Home}, Leg{WiFi: "office", Tail: true}, Leg{Cell: true}
	for _, leg := range []Leg{home, office, street} { // learn
		at(leg)
	}
	assert.Equal(p, "tailnet", at(office), "and not the relay, which worked last")
	assert.Equal(p, "lan", at(home))
	assert.Equal(p, "relay", at(street), "which outranks the last good")
	for i := range 6 {
		at(Leg{Place: "café", WiFi: fmt.Sprint("café ", i)})
	}
	assert.Len(p, phone.load().Memory.Networks(), 8)
	assert.Equal(p, "lan", at(home), "kept, before the last good")
	assert.Equal(p, "lan", at(office), "the oldest is gone: the last good")
}

// An app of long ago stored this, and a later one a field that this one does not know.
const stored = `{"routes":[{"address":"192.168.1.10","port":8787,"note":"desk"},{"address":"100.64.0.10"}],"lastGood":"100.64.0.10","theme":"dark"}`

func oldProfile(p *scenarios.Play, s Subject) {
	w := NewWorld(p, Setup{Relay: quick})
	phone := w.Phone(s, nil)
	phone.Stored = []byte(stored)
	w.WiFi.Up()
	w.Tail.Up()
	assert.Equal(p, []string{"tailnet"}, w.visit(phone), "the last good comes first")
	require.Len(p, phone.Connections(), 1)

	var before, after map[string]any
	require.NoError(p, json.Unmarshal([]byte(stored), &before))
	require.NoError(p, json.Unmarshal(phone.Stored, &after))
	for name := range before {
		assert.Equal(p, before[name], after[name], "%s", name)
	}
	assert.Contains(p, after, "networks", "what was learnt has been added")
	assert.Contains(p, after, "endpoints")
	phone.Restart()
	time.Sleep(3 * time.Second)
	assert.Len(p, phone.Connections(), 2)
}
