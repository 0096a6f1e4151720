package privaterouting

import (
	"context"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/netsim"
	"github.com/seed-5a7f77c4/deadair/scenarios"
	"github.com/seed-5a7f77c4/deadair/scenarios/privaterouting/wire"
	"github.com/seed-5a7f77c4/deadair/selection/choice"
	"github.com/seed-5a7f77c4/deadair/selection/forward"
)

// guardStories are about results that come late. Their interleavings are forced
// by gates at the proxy.
func guardStories() []story {
	return []story{
		{ID: "PR-14", Title: "the choice is forgotten while a NO_SESSION retry is under way: the retry does not put it back", Play: playForgottenDuringRetry},
		{ID: "PR-15", Title: "late failure of the old choice after the re-pick of another proxy: the new choice is untouched", Play: func(p *scenarios.Play, s Subject) { playLateFailure(p, s, "p2") }},
		{ID: "PR-15-same", Title: "late failure of the old choice after the re-pick of the same proxy: the new choice is untouched", Play: func(p *scenarios.Play, s Subject) { playLateFailure(p, s, "p1") }},
		{ID: "PR-16", Title: "late success of the old choice while the new one has a streak: the streak stays", Play: playLateSuccess},
		{ID: "PR-17", Title: "the old proxy's connection ends after the re-pick: the new choice is untouched, others that name it are forgotten", Play: playLateEnd},
		{ID: "PR-18", Title: "PRXY fails, because the relay refuses or the proxy is silent: forgotten at once, and a late failure touches nothing", Play: playSessionFails},
		{ID: "PR-19", Title: "an interactive request waits in vain for a background connect that succeeds at 20 s: the choice stays", Play: playWaiter},
		{ID: "PR-20", Title: "the connecting request is cancelled midway: its waiters are served by a new attempt", Play: playCancelled},
	}
}

// command is one that any relay can carry out.
var command = &wire.NewQueue{Queue: "q"}

// result is what came of a command that runs beside the story.
type result struct {
	res forward.Result
	err error
}

// async sends a command beside the story. It gives the command time to reach the
// proxy before it returns.
func (w *World) async(ctx context.Context, name string, u forward.Urgency) <-chan result {
	c := make(chan result, 1)
	go func() {
		res, err := w.App.DoAt(ctx, name, command, u)
		c <- result{res, err}
	}()
	time.Sleep(time.Second)
	return c
}

// warm brings the connections up through p1.
func (w *World) warm() {
	w.play.Helper()
	_, err := w.App.Do(w.play.Context(), command, forward.Urgency{})
	require.NoError(w.play, err)
	w.triedFirst("p1")
}

// forget ends the choice towards R by hand, so that a story about late results
// needs no other rule to end it.
func (w *World) forget() {
	w.play.Helper()
	require.True(w.play, w.App.client.Forget(towards(relayName)))
}

// fail has p1 report a failure of a forward to R.
func (w *World) fail() {
	w.play.Helper()
	w.Server("p1").Script(failing)
	_, err := w.App.Do(w.play.Context(), command, forward.Urgency{})
	require.ErrorContains(w.play, err, "PROXY(BROKER TIMEOUT)")
}

// gated sends a command that p1 holds until the gate is closed, and answers then:
// with the message given, or by forwarding it after all. The commands after it
// are p1's ordinary business.
func (w *World) gated(gate <-chan struct{}, answer wire.Message) <-chan result {
	held := false
	w.Server("p1").Script(func(m wire.Message) Reaction {
		if _, ok := m.(*wire.Forward); !ok || held {
			return Reaction{}
		}
		held = true
		return Reaction{Until: gate, Answer: answer}
	})
	late := w.async(w.play.Context(), relayName, forward.Urgency{})
	w.Server("p1").Script(nil)
	return late
}

func proxyFailure(c forward.Code) wire.Message {
	return &wire.Failure{Origin: forward.Proxy, Code: c}
}

func playForgottenDuringRetry(p *scenarios.Play, s Subject) {
	w := NewWorld(p, s, p1First())
	w.warm()
	gate := make(chan struct{})
	late := w.gated(gate, proxyFailure(forward.NoSession))
	w.forget()
	sessions := w.Journal.Count("p1", "PRXY")
	close(gate)
	r := <-late
	require.NoError(p, r.err, "the retry went through the same proxy")
	require.Equal(p, "p1", r.res.Proxy)
	require.Equal(p, sessions+1, w.Journal.Count("p1", "PRXY"), "with a new session")
	_, there := w.App.Choice()
	require.False(p, there, "and did not put the choice back")
	require.Empty(p, w.App.Changes())
	w.untouched("p2", p.Elapsed())
}

func playLateFailure(p *scenarios.Play, s Subject, next string) {
	w := NewWorld(p, s, p1First())
	w.warm()
	gate := make(chan struct{})
	late := w.gated(gate, proxyFailure(forward.Timeout))
	w.forget()
	w.Only(next)
	_, err := w.App.Do(p.Context(), command, forward.Urgency{})
	require.NoError(p, err)
	before, there := w.App.Choice()
	require.True(p, there)
	require.Equal(p, next, before.Proxy)
	close(gate)
	require.ErrorContains(p, (<-late).err, "PROXY(BROKER TIMEOUT)")
	after, there := w.App.Choice()
	require.True(p, there)
	require.Equal(p, before, after, "no streak begun")
	require.Empty(p, w.App.Changes())
}

func playLateSuccess(p *scenarios.Play, s Subject) {
	w := NewWorld(p, s, p1First())
	w.warm()
	gate := make(chan struct{})
	late := w.gated(gate, nil)
	w.forget()
	w.Only("p1")
	w.fail() // the new choice, the same proxy, has a streak
	before, there := w.App.Choice()
	require.True(p, there)
	require.True(p, before.Streak.Running())
	changes := len(w.App.Changes())
	close(gate)
	require.NoError(p, (<-late).err)
	after, there := w.App.Choice()
	require.True(p, there)
	require.Equal(p, before, after, "the streak is the new choice's own")
	require.Len(p, w.App.Changes(), changes)
}

func playLateEnd(p *scenarios.Play, s Subject) {
	setup := p1First()
	setup.Relays = []string{"r2"}
	w := NewWorld(p, s, setup)
	w.warm()
	w.Only("p1")
	_, err := w.App.DoAt(p.Context(), "r2", command, forward.Urgency{})
	require.NoError(p, err)
	w.forget()
	w.Only("p2")
	_, err = w.App.Do(p.Context(), command, forward.Urgency{})
	require.NoError(p, err)
	before, _ := w.App.Choice()
	require.Equal(p, "p2", before.Proxy)
	other, there := w.App.ChoiceFor("r2")
	require.True(p, there)
	require.Equal(p, "p1", other.Proxy)

	w.Stop("p1")
	time.Sleep(time.Second)
	after, there := w.App.Choice()
	require.True(p, there)
	require.Equal(p, before, after, "the new choice is another")
	_, there = w.App.ChoiceFor("r2")
	require.False(p, there, "the other relay's choice was this one")
	require.Len(p, w.App.Changes(), 1, "and nothing else changed")
}

func playSessionFails(p *scenarios.Play, s Subject) {
	w := NewWorld(p, s, p1First())
	w.Stop(relayName)
	_, err := w.App.Do(p.Context(), command, forward.Urgency{})
	require.ErrorContains(p, err, "PROXY(BROKER NETWORK)")
	w.triedFirst("p1")
	_, there := w.App.Choice()
	require.False(p, there, "forgotten at once")
	require.Equal(p, choice.SessionFailed, w.App.Changes()[0].Event.Kind)
	require.Zero(p, w.Journal.Count("p1", "PFWD"), "nothing was forwarded")
	w.untouched("p2", p.Elapsed())

	// A silent proxy: the app's own time-out, and another choice meanwhile.
	w.Only("p1")
	time.Sleep(forward.PersistErrorInterval)
	w.Server("p1").Script(func(m wire.Message) Reaction {
		_, session := m.(*wire.SessionRequest)
		return Reaction{Silent: session}
	})
	began := p.Elapsed()
	late := w.async(p.Context(), relayName, forward.Urgency{})
	r := <-late
	require.ErrorContains(p, r.err, "BROKER TIMEOUT")
	require.GreaterOrEqual(p, p.Elapsed()-began, forward.DefaultTimes.Background.Session())
	_, there = w.App.Choice()
	require.False(p, there)

	time.Sleep(forward.PersistErrorInterval)
	late = w.async(p.Context(), relayName, forward.Urgency{})
	w.App.client.Reconnect() // a changed network configuration clears the choices
	w.Only("p2")
	_, err = w.App.Do(p.Context(), command, forward.Urgency{})
	require.Error(p, err, "the relay is still down")
	w.serve(relayName, nil)
	time.Sleep(RelayErrorStored + forward.PersistErrorInterval)
	_, err = w.App.Do(p.Context(), command, forward.Urgency{})
	require.NoError(p, err)
	before, there := w.App.Choice()
	require.True(p, there)
	require.Error(p, (<-late).err)
	after, there := w.App.Choice()
	require.True(p, there, "a late failure of PRXY touches nothing")
	require.Equal(p, before, after)
}

// slowToAnswer delays the proxy's answers to SYNs.
func (w *World) slowToAnswer(name string, d time.Duration) *netsim.Fault {
	return w.play.Net.Apply(netsim.Rule{
		From: w.Host(name), To: w.Host("app"), Kind: netsim.SYNACK,
		Verdict: netsim.Verdict{Delay: d},
	})
}

func playWaiter(p *scenarios.Play, s Subject) {
	w := NewWorld(p, s, p1First())
	w.slowToAnswer("p1", 20*time.Second)
	slow := w.async(p.Context(), relayName, forward.Urgency{})
	before, there := w.App.Choice()
	require.True(p, there)
	began := p.Elapsed()
	_, err := w.App.Do(p.Context(), command, forward.Urgency{Interactive: true})
	require.Equal(p, connectionTimeout, errorText(err))
	require.Equal(p, forward.DefaultTimes.Interactive.Connect, p.Elapsed()-began)
	after, there := w.App.Choice()
	require.True(p, there, "the waiter's own time-out says nothing about the proxy")
	require.Equal(p, before, after)
	r := <-slow
	require.NoError(p, r.err)
	require.Equal(p, "p1", r.res.Proxy)
	require.Empty(p, w.App.Changes())
	require.Equal(p, 1, w.Journal.Count("app", "dial"), "one connection for both")
}

func playCancelled(p *scenarios.Play, s Subject) {
	w := NewWorld(p, s, p1First())
	slow := w.slowToAnswer("p1", 20*time.Second)
	ctx, cancel := context.WithCancel(p.Context())
	defer cancel()
	first := w.async(ctx, relayName, forward.Urgency{})
	second := w.async(p.Context(), relayName, forward.Urgency{})
	third := w.async(p.Context(), relayName, forward.Urgency{})
	slow.Undo()
	cancel()
	require.ErrorIs(p, (<-first).err, context.Canceled)
	cancelled := p.Elapsed()
	for _, c := range []<-chan result{second, third} {
		r := <-c
		require.NoError(p, r.err)
		require.Equal(p, "p1", r.res.Proxy)
	}
	require.Less(p, p.Elapsed()-cancelled, handshakes, "a new attempt at once")
	require.Equal(p, 2, w.Journal.Count("app", "dial"), "by one of the two, and the other shared it")
	require.Equal(p, 1, w.Journal.Count("p1", "PRXY"))

	// Without a waiter nothing is left behind, no error either.
	w.App.client.Reconnect()
	w.Only("p1")
	slow = w.slowToAnswer("p1", 20*time.Second)
	ctx, cancel = context.WithCancel(p.Context())
	defer cancel()
	alone := w.async(ctx, relayName, forward.Urgency{})
	slow.Undo()
	cancel()
	require.ErrorIs(p, (<-alone).err, context.Canceled)
	_, err := w.App.Do(p.Context(), command, forward.Urgency{})
	require.NoError(p, err, "at once")
	require.Equal(p, 4, w.Journal.Count("app", "dial"))
	require.Empty(p, w.App.Changes(), "a cancellation says nothing about the proxy")
	w.untouched("p2", p.Elapsed())
}
