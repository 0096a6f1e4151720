package privaterouting

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/scenarios"
	"github.com/seed-5a7f77c4/deadair/scenarios/privaterouting/wire"
	"github.com/seed-5a7f77c4/deadair/selection/choice"
	"github.com/seed-5a7f77c4/deadair/selection/forward"
)

// changingStories are about a user, a relay and an app that change.
func changingStories() []story {
	return []story{
		{ID: "PR-6", Title: "P1 failed 4 times, then only P2 is configured without a restart, and another link joined at once", Observed: "old: fails via P1", Labels: []string{field}, Play: playOnlyP2},
		{ID: "PR-7", Title: "a contact is stuck on P1, only P2 is configured at 59 s: connected at about 64 s", Observed: "old: not 240 s later", Labels: []string{field}, Play: playSwitchUnderway},
		{ID: "PR-8", Title: "the user stops after so many Retries, P1 broken / P2 good: joined as the number of re-picks says", Observed: "fixed: 2 trials still failing at a cap of 6", Labels: []string{field}, Play: playCapped},
		{ID: "PR-9", Title: `"connecting…" on a phone, watched for 300 s, P1 broken / P2 good`, Observed: "63, 63, 63, 67, 128 s (Android); old: 0 of 4 in 300 s", Labels: []string{field}, Play: playWatched},
		{ID: "PR-10", Title: "messages each way, the app restarts, messages each way: all arrive once", Play: playRestart},
		{ID: "PR-11", Title: "the relay restarts while 20 forwards are in flight: the destination stays with its proxy", Play: playBurst},
		{ID: "PR-35", Title: "R itself is down for an hour, then heals: attempts stay on the ladder, connected at the first one after", Play: playRelayDown},
	}
}

func playOnlyP2(p *scenarios.Play, s Subject) {
	w := NewWorld(p, s, Setup{Broken: []string{"p1"}, First: "p1"})
	w.Contact.Receive(p.Context())
	seen, joined := w.App.Join(p.Context(), "another", 3, time.Second)
	require.False(p, joined)
	require.Len(p, seen, 4)
	w.triedFirst("p1")
	w.Only("p2")
	began := p.Elapsed()
	_, joined = w.App.Join(p.Context(), contactLink, 0, time.Second)
	require.True(p, joined, "at once")
	require.Less(p, p.Elapsed()-began, handshakes)
}

func playSwitchUnderway(p *scenarios.Play, s Subject) {
	w := NewWorld(p, s, Setup{Broken: []string{"p1"}, First: "p1"})
	w.Contact.Receive(p.Context())
	began := p.Elapsed()
	p.Go("deliver", func() { w.App.Deliver(p.Context(), contactQueue, 1, false) })
	p.At(began + 59*time.Second)
	w.Only("p2")
	got, ok := w.Journal.Wait(5*time.Minute, func(n Note) bool { return n.Actor == "contact" && n.What == "received" })
	require.True(p, ok, "not connected")
	w.triedFirst("p1")
	require.InDelta(p, 64, (got.At - began).Seconds(), handshakes.Seconds())
	require.Equal(p, 1, w.App.Forgotten())
}

// playCapped holds that a user who gives up after 14 Retries has joined exactly
// if P1 was picked again five times at most, and the same for a cap of 6.
func playCapped(p *scenarios.Play, s Subject) {
	const patience = 14
	w := NewWorld(p, s, Setup{Broken: []string{"p1"}, First: "p1"})
	w.Contact.Receive(p.Context())
	seen, joined := w.App.Join(p.Context(), contactLink, patience, time.Second)
	w.triedFirst("p1")
	require.NotZero(p, w.App.Forgotten(), "p1 was never left")
	repicks := w.App.Forgotten() - 1
	if joined {
		require.Contains(p, []int{3 + 2*repicks, 4 + 2*repicks}, len(seen))
	} else {
		require.GreaterOrEqual(p, 4+2*(repicks+1), patience, "it should have joined")
	}
	p.Figure("joined within 6", joined && len(seen) <= 6)
	p.Figure("joined within 14", joined)
}

func playWatched(p *scenarios.Play, s Subject) {
	const watched = 300 * time.Second
	w := NewWorld(p, s, Setup{Broken: []string{"p1"}, First: "p1"})
	w.Configure(func(c *forward.Config) {})
	w.Contact.Receive(p.Context())
	w.App.Listen(p.Context())
	w.Contact.Join(p.Context(), 1)
	got, connected := w.Journal.Wait(watched, func(n Note) bool { return n.Actor == "contact" && n.What == "received" })
	w.triedFirst("p1")
	require.NotZero(p, w.App.Forgotten(), "p1 was never left")
	began, _ := w.Journal.First("app", "joined")
	repicks := w.App.Forgotten() - 1
	if connected {
		want := 62*time.Second + time.Duration(repicks)*64*time.Second
		require.InDelta(p, want.Seconds()+handshakes.Seconds()/2, (got.At - began.At).Seconds(), handshakes.Seconds()/2)
	} else {
		require.GreaterOrEqual(p, repicks, 3, "62 + 64·k is below 300 for k up to 3")
	}
	p.Figure("connected", connected)
	p.Figure("repicks", repicks)
}

func playRestart(p *scenarios.Play, s Subject) {
	w := NewWorld(p, s, Setup{First: "p1"})
	w.Contact.Receive(p.Context())
	talk := func(id uint64) {
		w.App.Listen(p.Context())
		require.NoError(p, w.App.Deliver(p.Context(), contactQueue, id, false))
		w.Contact.Join(p.Context(), id+100)
		_, ok := w.Journal.Wait(time.Minute, func(n Note) bool {
			return n.Actor == "contact" && n.What == "received" && n.Text == fmt.Sprint("message ", id+100)
		})
		require.True(p, ok, "the answer to message %d", id+100)
	}
	require.Zero(p, w.App.client.Choices())
	talk(1)
	require.Equal(p, 1, w.App.client.Choices())
	w.App.close()
	require.Zero(p, w.App.client.Choices())
	w.App = newApp(w)
	require.Zero(p, w.App.client.Choices(), "choices start empty")
	talk(2)
	got := map[string]int{}
	for _, n := range w.Journal.All("contact", "received") {
		got[n.Text]++
	}
	require.Equal(p, map[string]int{"message 1": 1, "message 101": 1, "message 2": 1, "message 102": 1}, got, "each once")
	require.Zero(p, w.App.Forgotten())
}

func playBurst(p *scenarios.Play, s Subject) {
	const inFlight = 20
	w := NewWorld(p, s, Setup{First: "p1"})
	w.warm()
	before, _ := w.App.Choice()
	w.Host(relayName).Crash()
	results := make(chan error, inFlight)
	for i := range inFlight {
		p.Go(fmt.Sprintf("forward %02d", i), func() {
			_, err := w.App.Do(p.Context(), command, forward.Urgency{})
			results <- err
		})
	}
	var first time.Duration
	for i := range inFlight {
		require.ErrorContains(p, <-results, "PROXY(BROKER TIMEOUT)")
		if i == 0 {
			first = p.Elapsed()
		}
	}
	require.Less(p, p.Elapsed()-first, 2*time.Second, "a burst")
	w.Host(relayName).Restart()
	w.serve(relayName, nil)
	_, ok := w.Journal.Wait(10*time.Minute, func(n Note) bool { return n.Actor == "p1" && n.What == "down" })
	require.True(p, ok, "the proxy's connection ends by its keep-alive")
	res, err := w.App.Do(p.Context(), command, forward.Urgency{})
	require.NoError(p, err)
	require.Equal(p, "p1", res.Proxy)
	after, there := w.App.Choice()
	require.True(p, there)
	require.Equal(p, before.Choice, after.Choice, "the destination stays with its proxy")
	require.Zero(p, w.App.Forgotten())
	w.untouched("p2", p.Elapsed())
}

func playRelayDown(p *scenarios.Play, s Subject) {
	w := NewWorld(p, s, Setup{First: "p1"})
	w.Contact.Receive(p.Context())
	w.Stop(relayName)
	const down = time.Hour
	began := p.Elapsed()
	done := make(chan error, 1)
	p.Go("deliver", func() {
		_, err := w.App.client.Deliver(p.Context(), request(&wire.NewQueue{Queue: "q"}, forward.Urgency{}), false)
		done <- err
	})
	p.At(began + down)
	attempts := len(w.App.Changes())
	// 2 s five times, then half as long again up to 120 s: about 40 in an hour.
	require.Greater(p, attempts, 30)
	require.Less(p, attempts, 50, "no hammering")
	for _, c := range w.App.Changes() {
		require.Equal(p, choice.SessionFailed, c.Event.Kind)
	}
	last := w.App.Changes()[attempts-1].At
	w.serve(relayName, nil)
	require.NoError(p, <-done)
	// The first try after healing may meet the proxy's stored error.
	require.LessOrEqual(p, p.Elapsed()-last, 2*s.Policy.Retry.Ladder.Max+handshakes)
	p.Figure("attempts", attempts)
}
