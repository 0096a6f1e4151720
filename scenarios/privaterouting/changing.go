package privaterouting

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/scenarios"
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
	setup := p1Silent()
	setup.Draws = []string{"p1", "", "p2", "p2"} // a choice left too early would go to P2
	w := opened(p, s, setup)
	seen, joined := w.App.Join(p.Context(), "another", 3, time.Second)
	require.False(p, joined)
	w.triedFirst("p1")
	require.Equal(p, []string{connectionTimeout, connectionTimeout, routingTimeout, routingTimeout}, seen)
	w.untouched("p2", p.Elapsed())
	w.Only("p2")
	began, asked := p.Elapsed(), w.Journal.Count("p1", "PFWD")
	_, joined = w.App.Join(p.Context(), contactLink, 0, time.Second)
	require.True(p, joined, "at once")
	require.Less(p, p.Elapsed()-began, handshakes)
	require.Equal(p, asked, w.Journal.Count("p1", "PFWD"), "p1 hears of it no more")
	require.Equal(p, 1, w.App.Forgotten())
}

func playSwitchUnderway(p *scenarios.Play, s Subject) {
	const switched = 59 * time.Second
	w := opened(p, s, p1Silent())
	began := p.Elapsed()
	w.deliver()
	p.At(began + switched)
	w.Only("p2")
	asked := w.Journal.Count("p1", "PFWD")
	took, ok := w.received(began, 5*time.Minute)
	require.True(p, ok, "not connected")
	w.within(took, 64*time.Second)
	require.Zero(p, w.repicks())
	require.Equal(p, asked, w.Journal.Count("p1", "PFWD"), "p1 is asked no more")
	w.untouched("p2", w.App.Changes()[1].At)
	require.Equal(p, 1, w.Journal.Count("contact", "received"), "once")
}

// playCapped holds that a user who gives up after 14 Retries has joined exactly
// if P1 was picked again five times at most, and the same for a cap of 6.
func playCapped(p *scenarios.Play, s Subject) {
	w := opened(p, s, p1Silent())
	seen, joined := w.join(Patience)
	repicks := w.repicks()
	if joined {
		require.Contains(p, joinedAt(repicks), len(seen))
	} else {
		require.GreaterOrEqual(p, joinedAt(repicks + 1)[1], Patience, "it should have joined")
	}
	p.Figure("joined within 6", joined && len(seen) <= 6)
	p.Figure("joined within 14", joined)
}

func playWatched(p *scenarios.Play, s Subject) {
	const watched = 300 * time.Second
	w := opened(p, s, p1Silent())
	took, connected := w.reply(watched)
	repicks := w.repicks()
	if connected {
		w.within(took, replyAfter(repicks))
	} else {
		require.GreaterOrEqual(p, replyAfter(repicks+1)+handshakes, watched, "it should be connected")
	}
	p.Figure("connected", connected)
	p.Figure("repicks", repicks)
}

func playRestart(p *scenarios.Play, s Subject) {
	w := opened(p, s, p1First())
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
	w.triedFirst("p1")
	require.Equal(p, 1, w.App.client.Choices())

	// The changed list would not clear the choice; the restart does.
	w.Only("p2")
	w.untouched("p2", p.Elapsed())
	w.restart()
	time.Sleep(time.Second)
	require.Empty(p, w.Host("app").Sockets(), "nothing of the app outlives it")
	restarted := p.Elapsed()
	require.Zero(p, w.App.client.Choices(), "choices start empty")
	talk(2)
	w.leftAlone("p1", restarted)
	got := map[string]int{}
	for _, n := range w.Journal.All("contact", "received") {
		got[n.Text]++
	}
	require.Equal(p, map[string]int{"message 1": 1, "message 101": 1, "message 2": 1, "message 102": 1}, got, "each once")
	require.Zero(p, w.App.Forgotten())
}

func playBurst(p *scenarios.Play, s Subject) {
	const inFlight = 20
	w := NewWorld(p, s, p1First())
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
	w := opened(p, s, p1First())
	w.Stop(relayName)
	const down = time.Hour
	began := p.Elapsed()
	done := make(chan error, 1)
	p.Go("deliver", func() {
		_, err := w.App.client.Deliver(p.Context(), request(command, forward.Urgency{}), false)
		done <- err
	})
	p.At(began + down)
	w.triedFirst("p1")
	changes := w.App.Changes()
	attempts := len(changes)
	// 2 s five times, then half as long again up to 120 s: about 40 in an hour.
	require.Greater(p, attempts, 30)
	require.Less(p, attempts, 50, "no hammering")
	require.LessOrEqual(p, len(w.dialsTo("p1"))+len(w.dialsTo("p2")), 2, "over one connection to each proxy")
	ladder := s.Policy.Retry.Ladder.Start()
	for i, c := range changes {
		require.Equal(p, choice.SessionFailed, c.Event.Kind)
		if i > 0 {
			require.GreaterOrEqual(p, c.At-changes[i-1].At, ladder.Next(), "attempt %d stays on the ladder", i)
		}
	}
	w.serve(relayName, nil)
	require.NoError(p, <-done)
	// The proxies have long ceased to store the error.
	require.Len(p, w.App.Changes(), attempts, "at the first try after healing")
	require.LessOrEqual(p, p.Elapsed()-changes[attempts-1].At, s.Policy.Retry.Ladder.Max+handshakes)
	p.Figure("attempts", attempts)
}
