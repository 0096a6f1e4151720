package privaterouting

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/netsim"
	"github.com/seed-5a7f77c4/deadair/scenarios"
	"github.com/seed-5a7f77c4/deadair/scenarios/privaterouting/wire"
	"github.com/seed-5a7f77c4/deadair/selection/choice"
	"github.com/seed-5a7f77c4/deadair/selection/forward"
)

// outcomeStories are about what each answer, and each silence, means.
func outcomeStories() []story {
	return []story{
		{ID: "PR-21", Title: "the relay's own error, PROXY(PROTOCOL) and an unusable answer: each reached the relay and clears the streak", Play: playReached},
		{ID: "PR-22", Title: "host error of an onion-only relay: kept, and direct exactly where the fallback allows it", Play: playHostError},
		{ID: "PR-23", Title: "client time-outs only: nothing counts", Play: playClientTimeouts},
		{ID: "PR-24", Title: "a silent proxy connection is dropped at about 1200 s, one that answers with errors never", Play: playDropRule},
		{ID: "PR-25", Title: "a stored connect error is given at once for 3 s, then there is a real attempt", Play: playStoredError},
	}
}

func playReached(p *scenarios.Play, s Subject) {
	w := NewWorld(p, s, p1First())
	w.warm()
	for _, tc := range []struct {
		name  string
		react func(m wire.Message) Reaction
	}{
		{"RELAY AUTH", func(m wire.Message) Reaction {
			if _, ok := m.(*wire.NewQueue); ok {
				return Reaction{Answer: refuse("AUTH")}
			}
			return Reaction{}
		}},
		{"PROXY PROTOCOL", func(m wire.Message) Reaction {
			if _, ok := m.(*wire.RelayForward); ok {
				return Reaction{Answer: proxyFailure(forward.Protocol)}
			}
			return Reaction{}
		}},
		{"RELAY UNUSABLE", func(m wire.Message) Reaction {
			if _, ok := m.(*wire.RelayForward); ok {
				return Reaction{Answer: &wire.RelayAnswer{Answer: []byte("junk")}}
			}
			return Reaction{}
		}},
	} {
		w.fail()
		e, _ := w.App.Choice()
		require.True(p, e.Streak.Running())
		w.Server("p1").Script(nil)
		w.Server(relayName).Script(tc.react)
		_, err := w.App.Do(p.Context(), command, forward.Urgency{})
		require.ErrorContains(p, err, tc.name)
		e, there := w.App.Choice()
		require.True(p, there)
		require.False(p, e.Streak.Running(), "%s cleared it", tc.name)
		w.Server(relayName).Script(nil)
	}
	require.Zero(p, w.App.Forgotten())
	w.untouched("p2", p.Elapsed())
}

func playHostError(p *scenarios.Play, s Subject) {
	const onion = "hidden.onion"
	w := NewWorld(p, s, Setup{Draws: []string{"p1"}, Relays: []string{onion, "ancient"}, Direct: true})
	w.warm()
	w.Only("p1")
	do := func(relay string, f forward.Fallback, hidden bool) (forward.Result, error) {
		w.Configure(func(c *forward.Config) {
			c.Servers = c.Servers[:1]
			c.Fallback, c.AddressHidden = f, hidden
		})
		return w.App.DoAt(p.Context(), relay, command, forward.Urgency{})
	}
	kept := func(relay string) {
		e, there := w.App.ChoiceFor(relay)
		require.True(p, there, "a host error keeps the entry")
		require.Equal(p, "p1", e.Proxy)
		require.False(p, e.Streak.Running())
	}
	for _, tc := range []struct {
		fallback forward.Fallback
		hidden   bool
		direct   bool
	}{
		{forward.Prohibit, false, false}, {forward.Prohibit, true, false},
		{forward.Protected, false, false}, {forward.Protected, true, true},
		{forward.Allow, false, true}, {forward.Allow, true, true},
	} {
		dials := len(w.dialsTo(onion))
		res, err := do(onion, tc.fallback, tc.hidden)
		require.Equal(p, tc.direct, res.Direct, "fallback %v, hidden %v", tc.fallback, tc.hidden)
		if tc.direct {
			require.NoError(p, err)
		} else {
			require.ErrorContains(p, err, "PROXY(BROKER HOST)")
			require.Len(p, w.dialsTo(onion), dials, "nothing went there directly")
		}
		kept(onion)
		time.Sleep(2 * forward.PersistErrorInterval)
	}
	require.Equal(p, 2, w.Journal.Count("p1", "PRXY"), "the host error of PRXY stays cached")

	w.Stop(onion)
	time.Sleep(time.Second)
	res, err := do(onion, forward.Allow, false)
	require.True(p, res.Direct)
	require.ErrorContains(p, err, "BROKER NETWORK", "the direct try's own error is given")

	// A relay that is too old is a host error too, and so is a forward's.
	w.Server("ancient").Script(func(m wire.Message) Reaction {
		if _, is := m.(*wire.Hello); is {
			return Reaction{Answer: &wire.Hello{Version: MinVersion - 1, Name: "ancient"}}
		}
		return Reaction{}
	})
	_, err = do("ancient", forward.Prohibit, false)
	require.ErrorContains(p, err, "PROXY(BROKER TRANSPORT VERSION)")
	res, err = do("ancient", forward.Allow, false)
	require.NoError(p, err)
	require.True(p, res.Direct)
	kept("ancient")
	w.Server("p1").Script(func(m wire.Message) Reaction {
		if _, is := m.(*wire.Forward); is {
			return Reaction{Answer: proxyFailure(forward.Host)}
		}
		return Reaction{}
	})
	res, err = do(relayName, forward.Allow, false)
	require.NoError(p, err)
	require.True(p, res.Direct)
	kept(relayName)

	// Never after a time-out.
	w.Server("p1").Script(func(m wire.Message) Reaction {
		_, is := m.(*wire.Forward)
		return Reaction{Silent: is}
	})
	dials := len(w.dialsTo(relayName))
	res, err = w.App.Do(p.Context(), command, forward.Urgency{})
	require.ErrorContains(p, err, "BROKER TIMEOUT")
	require.False(p, res.Direct)
	require.Len(p, w.dialsTo(relayName), dials)
}

// dialsTo are the app's SYNs to a host.
func (w *World) dialsTo(name string) []netsim.Event {
	return w.play.Net.Trace().Find(func(e netsim.Event) bool {
		return e.From == "app" && e.To == name && e.Kind == netsim.SYN && !e.Again
	})
}

func playClientTimeouts(p *scenarios.Play, s Subject) {
	w := NewWorld(p, s, p1First())
	w.warm()
	w.Server("p1").Script(func(m wire.Message) Reaction {
		_, is := m.(*wire.Forward)
		return Reaction{Silent: is}
	})
	before, _ := w.App.Choice()
	for range 5 {
		_, err := w.App.Do(p.Context(), command, forward.Urgency{Interactive: true})
		require.Equal(p, connectionTimeout, errorText(err))
		time.Sleep(20 * time.Second)
	}
	after, there := w.App.Choice()
	require.True(p, there, "kept")
	require.Equal(p, before, after, "no streak")
	require.Empty(p, w.App.Changes())
	w.untouched("p2", p.Elapsed())
}

func playDropRule(p *scenarios.Play, s Subject) {
	w := NewWorld(p, s, p1First())
	w.warm()
	w.Server("p1").Script(func(wire.Message) Reaction { return Reaction{Silent: true} })
	silent := p.Elapsed()
	for range 3 {
		_, err := w.App.Do(p.Context(), command, forward.Urgency{})
		require.ErrorContains(p, err, "BROKER TIMEOUT")
	}
	_, ok := w.Journal.Wait(2*time.Hour, func(n Note) bool { return n.Actor == "app" && n.What == "ended" })
	require.True(p, ok, "never dropped")
	require.InDelta(p, 1200, (p.Elapsed() - silent).Seconds(), 5)
	changes := w.App.Changes()
	require.Len(p, changes, 1)
	require.Equal(p, choice.ConnectionEnded, changes[0].Event.Kind)
	_, there := w.App.Choice()
	require.False(p, there)

	// Silence alone is not enough: at 1200 s one ping has gone unanswered.
	w.Only("p2")
	_, err := w.App.Do(p.Context(), command, forward.Urgency{})
	require.NoError(p, err)
	w.Server("p2").Script(func(wire.Message) Reaction { return Reaction{Silent: true} })
	time.Sleep(1300 * time.Second)
	require.Equal(p, 1, w.Journal.Count("app", "ended"))

	// Errors for ever are answers.
	w.Server("p2").Script(func(m wire.Message) Reaction {
		if _, is := m.(*wire.Forward); is {
			return Reaction{Answer: proxyFailure(forward.BasicAuth)}
		}
		return Reaction{}
	})
	for range 20 {
		_, err := w.App.Do(p.Context(), command, forward.Urgency{})
		require.ErrorContains(p, err, "BASIC_AUTH")
		time.Sleep(5 * time.Minute)
	}
	require.Equal(p, 1, w.Journal.Count("app", "ended"))
	require.Len(p, w.dialsTo("p2"), 1, "one connection all along")
}

func playStoredError(p *scenarios.Play, s Subject) {
	w := NewWorld(p, s, Setup{Proxies: []string{"p1"}, Draws: []string{"p1"}})
	w.Stop("p1")
	do := func() time.Duration {
		began := p.Elapsed()
		_, err := w.App.Do(p.Context(), command, forward.Urgency{})
		require.ErrorContains(p, err, "BROKER NETWORK")
		_, there := w.App.Choice()
		require.False(p, there, "each of them forgets")
		return p.Elapsed() - began
	}
	require.GreaterOrEqual(p, do(), 2*Latency)
	w.triedFirst("p1")
	time.Sleep(time.Second)
	require.Zero(p, do(), "the stored error, at once")
	time.Sleep(1900 * time.Millisecond)
	require.Zero(p, do())
	require.Len(p, w.dialsTo("p1"), 1, "and no packet")
	time.Sleep(200 * time.Millisecond)
	require.GreaterOrEqual(p, do(), 2*Latency, "three seconds are over")
	require.Len(p, w.dialsTo("p1"), 2)
	kinds := []choice.Kind{}
	for _, c := range w.App.Changes() {
		kinds = append(kinds, c.Event.Kind)
	}
	require.Equal(p, []choice.Kind{choice.ConnectFailed, choice.ConnectErrorShared, choice.ConnectErrorShared, choice.ConnectFailed}, kinds)
}
