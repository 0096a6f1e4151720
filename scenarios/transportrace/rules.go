package transportrace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/scenarios"
	"github.com/seed-5a7f77c4/deadair/selection/handshake"
	"github.com/seed-5a7f77c4/deadair/selection/memory"
	"github.com/seed-5a7f77c4/deadair/selection/race"
	"github.com/seed-5a7f77c4/deadair/selection/rank"
	"github.com/seed-5a7f77c4/deadair/selection/roam"
	"github.com/seed-5a7f77c4/deadair/selection/route"
)

// rules are the stories that need no packets: each gives one part of the client its events, with their times.
func rules() []story {
	return []story{
		{ID: "TR-11", Title: "a burst of path updates: one decision, the last change not lost", Play: burst},
		{ID: "TR-14", Title: "dead endpoint: two failures put it last, 121 s later it is back at its rank", Observed: "raced for ever", Play: deadEndpoint},
		{ID: "TR-15", Title: "cancellation, losers, single-flight, account and key-proof errors are not recorded", Play: blameless},
		{ID: "TR-16", Title: "remembered per network: nine networks, eight kept", Observed: "last-good only", Play: nineNetworks},
		{ID: "TR-19", Title: "two concurrent dials to one machine key, and a late release", Observed: "orphaned tunnels", Play: singleFlight},
		{ID: "TR-21", Title: "plan shapes: slots, delays, stragglers, pull-forward", Play: planShapes},
		{ID: "TR-22", Title: "port sweep: every route once before any alternate port, one strike per race", Play: portSweep},
		{ID: "TR-23", Title: "an old profile decodes, and loses nothing when it is written back", Play: oldProfile},
		{ID: "TR-25", Title: "a superseded attempt's late winner is closed", Play: superseded},
		{ID: "TR-26", Title: "the reconnect ladder", Play: ladder},
		{ID: "TR-27", Title: "the roaming decision, row by row", Play: decisions},
	}
}

var (
	onCell = route.Path{Satisfied: true, Cellular: true}
	onWiFi = route.Path{Satisfied: true, Cellular: true, WiFi: true}
	boom   = errors.New("connection reset by peer")
)

func burst(p *scenarios.Play, s Subject) {
	began := time.Now()
	at := func(d time.Duration) time.Time { return began.Add(d) }
	m := roam.NewMonitor(s.Roam)
	var decided []time.Duration
	settle := func(until time.Duration) {
		for {
			wake, ok := m.Wake()
			if !ok || wake.After(at(until)) {
				return
			}
			if m.Tick(wake) == roam.PathChange {
				decided = append(decided, wake.Sub(began))
			}
		}
	}
	m.Path(began, onCell)
	m.Up(began, route.Relay)
	settle(10 * time.Second)
	for i := range 5 {
		m.Path(at(10*time.Second+time.Duration(i)*100*ms), onWiFi)
	}
	settle(11 * time.Second)
	m.Path(at(11*time.Second), onCell)
	settle(time.Minute)
	assert.Equal(p, []time.Duration{10650 * ms, 13650 * ms}, decided)
}

// first gives the order of the routes that a client with this memory would try.
func first(s Subject, mem *memory.Memory, now time.Time, path route.Path) (order []string) {
	plan := race.Build(race.Input{
		Candidates: []route.Candidate{{Address: LAN}, {Address: Tailnet}, {Address: Relay, Owner: "ann"}}, Account: "ann",
		Facts: rank.Facts{Path: &path, Remembered: mem.Remembered(path.Fingerprint()), LastGood: mem.LastGood(),
			Failing: func(k route.Key) bool { return mem.Failing(now, k) }},
	}, s.Race)
	for _, slot := range plan.Slots {
		if !slot.Alternate {
			order = append(order, slot.Address)
		}
	}
	return order
}

func deadEndpoint(p *scenarios.Play, s Subject) {
	now := time.Now()
	mem := memory.New(s.Memory)
	mem.Record(now, "", []route.Key{LAN}, nil)
	assert.Equal(p, []string{LAN, Tailnet, Relay}, first(s, mem, now, onWiFi), "one failure is none")
	mem.Record(now, "", []route.Key{LAN}, nil)
	assert.Equal(p, []string{Tailnet, Relay, LAN}, first(s, mem, now, onWiFi), "last, still tried")
	assert.Equal(p, []string{Tailnet, Relay, LAN}, first(s, mem, now.Add(120*time.Second), onWiFi), "the window includes its end")
	assert.Equal(p, []string{LAN, Tailnet, Relay}, first(s, mem, now.Add(121*time.Second), onWiFi))
}

func blameless(p *scenarios.Play, s Subject) {
	for _, err := range []error{context.Canceled, route.ErrBusy, route.ErrAccount, route.ErrSignIn, route.ErrKeyProof, route.ErrVersion} {
		m := race.NewMachine(race.Build(race.Input{Candidates: []route.Candidate{{Address: LAN, Port: 9000}}}, s.Race), s.Race)
		m.Start(time.Now())
		m.Fail(time.Now(), 0, fmt.Errorf("attempt: %w", err))
		result, over := m.Result()
		require.True(p, over)
		assert.ErrorIs(p, result.Err, err)
		assert.Empty(p, result.Failed, "%v", err)
	}
}

func nineNetworks(p *scenarios.Play, s Subject) {
	now := time.Now()
	mem := memory.New(s.Memory)
	mem.Record(now, "cell", nil, &memory.Success{Key: Relay})
	assert.Equal(p, Relay, first(s, mem, now, onCell)[0])
	mem.Record(now, "wifi", nil, &memory.Success{Key: Tailnet})
	assert.Equal(p, []string{Relay, Tailnet, LAN}, first(s, mem, now, onCell), "the network's outranks the last good")
	for i := range 7 {
		mem.Record(now, route.Fingerprint(fmt.Sprintf("wifi:10.0.%d", i)), nil, &memory.Success{Key: LAN})
	}
	assert.Len(p, mem.Networks(), 8)
	assert.Empty(p, mem.Remembered("cell"))
}

func singleFlight(p *scenarios.Play, s Subject) {
	r := handshake.Registry{Trusting: s.TrustingRegistry}
	key := handshake.MachineKey(Relay)
	abandoned, err := r.Acquire(key)
	require.NoError(p, err)
	_, err = r.Acquire(handshake.MachineKey(Relay + "?ready=2"))
	require.ErrorIs(p, err, route.ErrBusy)
	r.ReleaseAll()
	_, err = r.Acquire(key)
	require.NoError(p, err)
	assert.False(p, r.Release(key, abandoned), "another attempt's token frees nothing")
	_, err = r.Acquire(key)
	assert.ErrorIs(p, err, route.ErrBusy)
}

func planShapes(p *scenarios.Play, s Subject) {
	shape := func(addresses ...string) (delays []time.Duration) {
		var in []route.Candidate
		for _, a := range addresses {
			in = append(in, route.Candidate{Address: a, Port: 9000, Owner: "ann"})
		}
		for _, slot := range race.Build(race.Input{Candidates: in, Account: "ann"}, s.Race).Slots {
			delays = append(delays, slot.Delay)
		}
		return delays
	}
	assert.Equal(p, []time.Duration{0}, shape(Relay))
	assert.Equal(p, []time.Duration{0, 300 * ms}, shape(LAN, Relay))
	assert.Equal(p, []time.Duration{0, 250 * ms, 500 * ms}, shape(LAN, Tailnet, Relay))
	assert.Equal(p, []time.Duration{0, 250 * ms, 500 * ms, 0}, shape(LAN, Tailnet, "10.0.0.1", "10.0.0.2"))
}

func portSweep(p *scenarios.Play, s Subject) {
	plan := race.Build(race.Input{Candidates: []route.Candidate{{Address: LAN}, {Address: Tailnet}}}, s.Race)
	require.Len(p, plan.Slots, 18)
	began := time.Now()
	m := race.NewMachine(plan, s.Race)
	queue := m.Start(began)
	var tried []string
	for len(queue) > 0 {
		a := queue[0]
		queue = queue[1:]
		if a.Op == race.Dial {
			tried = append(tried, plan.Slots[a.Slot].Address)
			queue = append(queue, m.Fail(began, a.Slot, boom)...)
		}
	}
	require.Len(p, tried, 18)
	assert.ElementsMatch(p, []string{LAN, Tailnet}, tried[:2])
	result, _ := m.Result()
	assert.ElementsMatch(p, []route.Key{LAN, Tailnet}, result.Failed)
}

func oldProfile(p *scenarios.Play, s Subject) {
	const stored = `{"routes":[{"address":"192.168.1.10","port":8787,"note":"desk"}],"lastGood":"192.168.1.10","theme":"dark"}`
	profile, err := memory.DecodeProfile([]byte(stored), s.Memory)
	require.NoError(p, err)
	assert.Equal(p, route.Key(LAN), profile.Memory.LastGood())
	out, err := json.Marshal(profile)
	require.NoError(p, err)
	assert.JSONEq(p, stored, string(out))
}

type closer func()

func (c closer) Close() error { c(); return nil }

func superseded(p *scenarios.Play, s Subject) {
	closed := make(chan string, 2)
	r := race.New(func(_ context.Context, c route.Candidate, _ func()) (closer, error) {
		if c.Address == LAN {
			time.Sleep(2 * time.Second) // deaf to its context
		}
		return func() { closed <- c.Address }, nil
	}, s.Race)
	plan := func(a string) race.Plan {
		return race.Build(race.Input{Candidates: []route.Candidate{{Address: a, Port: 9000}}}, s.Race)
	}
	old := make(chan error, 1)
	go func() {
		_, err := r.Race(p.Context(), plan(LAN))
		old <- err
	}()
	time.Sleep(time.Second)
	_, err := r.Race(p.Context(), plan(Tailnet))
	require.NoError(p, err)
	assert.ErrorIs(p, <-old, route.ErrSuperseded)
	require.NoError(p, r.Close())
	assert.Equal(p, LAN, <-closed)
}

func ladder(p *scenarios.Play, _ Subject) {
	l := roam.NewLadder(p.Seed)
	for _, base := range []float64{1, 2, 4, 8, 16, 16, 16} {
		assert.InDelta(p, base, l.Next().Seconds(), 0.2*base)
	}
	assert.InDelta(p, 35, l.Next().Seconds(), 5)
	l.Lost(9 * time.Second)
	assert.InDelta(p, 35, l.Next().Seconds(), 5)
	l.Lost(10 * time.Second)
	assert.InDelta(p, 1, l.Next().Seconds(), 0.2)
}

func decisions(p *scenarios.Play, s Subject) {
	ago := func(d time.Duration) *time.Duration { return &d }
	const relay, lan, hour = route.Relay, route.LAN, time.Hour
	for i, row := range []struct {
		in   roam.Input
		want roam.Decision
	}{
		{roam.Input{Satisfied: true, Changed: true}, roam.None},
		{roam.Input{Live: true, Changed: true}, roam.None},
		{roam.Input{Live: true, Satisfied: true, Changed: true}, roam.PathChange},
		{roam.Input{Live: true, Satisfied: true, Changed: true, SinceRoam: ago(2 * time.Second)}, roam.None},
		{roam.Input{Live: true, Satisfied: true, Current: relay, Age: hour}, roam.None},
		{roam.Input{Live: true, Satisfied: true, Current: relay, Best: relay, Age: hour}, roam.None},
		{roam.Input{Live: true, Satisfied: true, Current: relay, Best: lan, Age: 9 * time.Second}, roam.None},
		{roam.Input{Live: true, Satisfied: true, Current: relay, Best: lan, Age: hour, SinceRoam: ago(299 * time.Second)}, roam.None},
		{roam.Input{Live: true, Satisfied: true, Current: relay, Best: lan, Age: 10 * time.Second, SinceRoam: ago(300 * time.Second)}, roam.UpgradeProbe},
	} {
		got, _ := roam.Decide(row.in, s.Roam)
		assert.Equal(p, row.want, got, "row %d", i)
	}
	standing := roam.Observed{Path: onCell, TailnetRoute: true, RelayEligible: true}
	assert.Equal(p, relay, s.Roam.Best(standing), "a saved route is no observation")
}
