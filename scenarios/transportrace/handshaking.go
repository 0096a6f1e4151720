package transportrace

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/scenarios"
	"github.com/seed-5a7f77c4/deadair/selection/memory"
	"github.com/seed-5a7f77c4/deadair/selection/race"
	"github.com/seed-5a7f77c4/deadair/selection/route"
)

// handshakeStories are about the way through a relay, up to the hello.
func handshakeStories() []story {
	return []story{
		{ID: "TR-3", Title: "cold relay: accepted at 100 ms, ready at 4 s", Observed: "abandoned at 350 ms, redialled", Play: coldRelay},
		{ID: "TR-4", Title: "relay accepts and never gets ready: fails at 7 s inside the race", Observed: "not recorded", Play: halfOpen},
		{ID: "TR-5", Title: "old relay that knows no ready-v2", Play: oldRelay},
		{ID: "TR-6", Title: "ready before accepted is ignored", Play: readyFirst},
		{ID: "TR-19", Title: "two concurrent dials to one machine key, and an abandoned dial's late release", Observed: "orphaned tunnels", Play: singleFlight},
	}
}

func coldRelay(p *scenarios.Play, s Subject) {
	w := NewWorld(p, Setup{Relay: Tunnels{AcceptedAfter: 100 * ms, ColdStart: 3700 * ms}, TokenAfter: 3 * time.Second})
	phone := w.Phone(s, RelayOnly)
	took, ok := w.connect(phone, 9*time.Second)
	require.True(p, ok)
	assert.InDelta(p, 4.4, seconds(took), 0.3)
	dials := w.Dialled(0)
	require.Len(p, To(dials, "relay"), 1, "one socket")
	require.Len(p, To(dials, "account"), 1)
	assert.InDelta(p, seconds(To(dials, "relay")[0].At), seconds(To(dials, "account")[0].At), 0.001, "the token is fetched meanwhile")
	assert.True(p, phone.Endpoint(Relay).NegotiatedReadyV2)
}

func halfOpen(p *scenarios.Play, s Subject) {
	w := NewWorld(p, Setup{Relay: Tunnels{AcceptedAfter: 51_310 * time.Microsecond, NeverReady: true}})
	phone := w.Phone(s, RelayOnly)
	_, ok := w.connect(phone, 8*time.Second)
	assert.False(p, ok)
	require.NotEmpty(p, phone.Races())
	first := phone.Races()[0]
	assert.ErrorIs(p, first.Err, os.ErrDeadlineExceeded)
	assert.Equal(p, 1, phone.Failures(Relay))
	require.NotZero(p, first.Ended)
	assert.Less(p, first.Ended-first.Began, race.Budget, "inside the race")
	assert.InDelta(p, 7.3, seconds(first.Ended-first.Began), 0.3)
	require.Len(p, w.Relay.Dials(), 1, "what was accepted is not redialled")
	assert.Zero(p, w.Relay.Open(), "the tunnel was given back")
	assert.Empty(p, w.Machine.Served())
}

func oldRelay(p *scenarios.Play, s Subject) {
	w := NewWorld(p, Setup{Relay: Tunnels{Old: true, ColdStart: quick.ColdStart}})
	phone := w.Phone(s, RelayOnly)
	_, ok := w.connect(phone, 3*time.Second)
	require.True(p, ok)
	dials := w.Relay.Dials()
	require.Len(p, dials, 2, "one legacy redial")
	assert.True(p, dials[0].V2)
	assert.False(p, dials[1].V2)
	assert.False(p, phone.Endpoint(Relay).NegotiatedReadyV2)
	phone.Stop()

	again := w.Phone(s, RelayOnly)
	again.Remember("cell", memory.Success{Key: Relay, ReadyV2: true})
	again.Start()
	time.Sleep(1200 * ms) // the race, and not the next one
	require.Len(p, again.Races(), 1)
	assert.Error(p, again.Races()[0].Err)
	assert.Len(p, w.Relay.Dials(), 3, "an endpoint that once negotiated ready=2 is never redialled the old way")
}

func readyFirst(p *scenarios.Play, s Subject) {
	w := NewWorld(p, Setup{Relay: Tunnels{ReadyFirst: true, AcceptedAfter: quick.AcceptedAfter, ColdStart: quick.ColdStart}})
	phone := w.Phone(s, RelayOnly)
	_, ok := w.connect(phone, 3*time.Second)
	require.True(p, ok, "the second ready is the one that counts")
	dials := w.Relay.Dials()
	require.Len(p, dials, 1)
	assert.Zero(p, dials[0].Code, "no hello went out before")
}

// singleFlight dials one machine under two URLs, first in a race, then by hand: the claim of a dial that was abandoned is
// given back late, when another dial owns the key.
func singleFlight(p *scenarios.Play, s Subject) {
	w := NewWorld(p, Setup{Relay: cold})
	const alias = "wss://relay.example/eu/m1"
	routes := append([]memory.Route{{Address: alias, Owner: owner}}, RelayOnly...)
	phone := w.Phone(s, routes)
	_, ok := w.connect(phone, 5*time.Second)
	require.True(p, ok)
	require.Len(p, w.Relay.Dials(), 1, "both URLs name one machine: one dial")
	assert.NotEmpty(p, busy(phone.Races()[0]))
	phone.Stop()
	time.Sleep(200 * ms)

	open := w.Relay.Open()
	w.Relay.Behave(Tunnels{AcceptedAfter: quick.AcceptedAfter, NeverReady: true})
	dial := func(ctx context.Context, url string) <-chan error {
		ended := make(chan error, 1)
		go func() {
			_, err := phone.tunnel(ctx, route.Candidate{Address: url, Owner: owner}, func() {})
			ended <- err
		}()
		time.Sleep(150 * ms)
		return ended
	}
	before := len(w.Relay.Dials())
	ctx, abandon := context.WithCancel(p.Context())
	abandoned := dial(ctx, Relay)
	if phone.registry != nil {
		phone.registry.ReleaseAll() // a new attempt begins
	}
	ctx, give := context.WithCancel(p.Context())
	owning := dial(ctx, Relay)
	abandon()
	require.Error(p, <-abandoned, "it gives its claim back only now")
	third, cancel := context.WithTimeout(p.Context(), time.Second)
	defer cancel()
	assert.ErrorIs(p, <-dial(third, alias), route.ErrBusy, "another attempt's token frees nothing")
	assert.Len(p, w.Relay.Dials()[before:], 2)
	give()
	assert.ErrorIs(p, <-owning, context.Canceled)
	time.Sleep(100 * ms)
	assert.Equal(p, open, w.Relay.Open(), "no orphan")
}

// busy lists the routes of a race that were refused because a dial to their machine was under way.
func busy(r Raced) (keys []route.Key) {
	for i, l := range r.Lanes {
		if errors.Is(l.Err, route.ErrBusy) {
			keys = append(keys, r.Ran.Slots[i].Key)
		}
	}
	return keys
}
