package privaterouting

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/scenarios"
	"github.com/seed-5a7f77c4/deadair/scenarios/privaterouting/wire"
	"github.com/seed-5a7f77c4/deadair/selection/choice"
	"github.com/seed-5a7f77c4/deadair/selection/forward"
	"github.com/seed-5a7f77c4/deadair/selection/pick"
)

// fleetStories are about many proxies, and about which of them is picked.
func fleetStories() []story {
	return []story{
		{ID: "PR-26", Title: "the pick: operators, shared hosts, roles and what is left when none remains; uniform over 10 000 draws", Play: playPick},
		{ID: "PR-27", Title: "modes × known or unknown × hidden or visible: proxied or not, and a change holds from the next call on", Play: playModes},
		{ID: "PR-28", Title: "10 proxies, 5 of them broken: recovery after the re-picks that the draws say", Play: func(p *scenarios.Play, s Subject) { playFleet(p, s, 5, false) }},
		{ID: "PR-32", Title: "twelve healthy proxies, one way broken in one direction: nothing for those who did not pick it", Play: playOneDirection},
		{ID: "PR-33", Title: "the proxy is also the app's receiving server: one shared connection, and its failure forgets", Play: playShared},
		{ID: "PR-34", Title: "slow network: every limit half as long again", Play: playSlow},
	}
}

func server(name, operator string, hosts ...string) pick.Server {
	if len(hosts) == 0 {
		hosts = []string{name}
	}
	return pick.Server{Name: name, Operator: operator, Hosts: hosts, Enabled: true, Proxy: true}
}

func playPick(p *scenarios.Play, s Subject) {
	off := func(x pick.Server) pick.Server { x.Enabled = false; return x }
	noRole := func(x pick.Server) pick.Server { x.Proxy = false; return x }
	r := pick.Server{Name: relayName, Operator: "acme", Hosts: []string{relayName}}
	for _, tc := range []struct {
		name    string
		servers []pick.Server
		want    []string
	}{
		{"all alike", []pick.Server{server("a", ""), server("b", "")}, []string{"a", "b"}},
		{"another operator", []pick.Server{server("a", "acme"), server("b", "other"), server("c", "")}, []string{"b", "c"}},
		{"only the same operator", []pick.Server{server("a", "acme"), server("b", "acme")}, []string{"a", "b"}},
		{"another host", []pick.Server{server("a", "", relayName), server("b", "")}, []string{"b"}},
		{"operator before host", []pick.Server{server("a", "other", relayName), server("b", "acme")}, []string{"a"}},
		{"role", []pick.Server{noRole(server("a", "")), off(server("b", "")), server("c", "")}, []string{"c"}},
		{"no role at all", []pick.Server{noRole(server("a", "")), off(server("b", ""))}, []string{"a", "b"}},
	} {
		var got []string
		for _, c := range pick.Candidates(tc.servers, r, s.Policy.Cascade...) {
			got = append(got, c.Name)
		}
		require.Equal(p, tc.want, got, tc.name)
	}
	// The app picks by it: P1 has R's operator, which is none, so it is never asked.
	w := NewWorld(p, s, Setup{})
	w.Configure(func(c *forward.Config) { c.Servers[1].Operator = "another" })
	for range 10 {
		res, err := w.App.Do(p.Context(), command, forward.Urgency{})
		require.NoError(p, err)
		require.Equal(p, "p2", res.Proxy)
		w.App.client.Reconnect() // which clears the choice
	}
	w.untouched("p1", p.Elapsed())

	const draws = 10_000
	three := []pick.Server{server("a", ""), server("b", ""), server("c", "")}
	counts := make([]int, 3)
	for seed := range uint64(draws) {
		one, ok := pick.One(rand.New(rand.NewPCG(p.Seed, seed)), three)
		require.True(p, ok)
		counts[one.Name[0]-'a']++
	}
	_, probability, err := scenarios.ChiSquare(counts, []float64{1. / 3, 1. / 3, 1. / 3})
	require.NoError(p, err)
	require.Greater(p, probability, 0.0001, "%v are not uniform", counts)
}

func playModes(p *scenarios.Play, s Subject) {
	w := NewWorld(p, s, Setup{Draws: []string{"p1"}, Relays: []string{"known"}, Direct: true})
	for _, tc := range []struct {
		mode            forward.Mode
		hidden          bool
		unknown, inList bool // proxied
	}{
		{forward.Always, false, true, true}, {forward.Always, true, true, true},
		{forward.Unknown, false, true, false}, {forward.Unknown, true, true, false},
		{forward.Unprotected, false, true, false}, {forward.Unprotected, true, false, false},
		{forward.Never, false, false, false}, {forward.Never, true, false, false},
	} {
		w.Configure(func(c *forward.Config) {
			c.Mode, c.AddressHidden = tc.mode, tc.hidden
			c.Servers = append(c.Servers, pick.Server{Name: "known", Hosts: []string{"known"}}) // not even enabled
		})
		for i, name := range []string{relayName, "known"} {
			proxied := [2]bool{tc.unknown, tc.inList}[i]
			forwarded, asked := w.Journal.Count(name, "RFWD"), w.Journal.Count(name, command.Tag())
			res, err := w.App.DoAt(p.Context(), name, command, forward.Urgency{})
			require.NoError(p, err)
			require.Equal(p, proxied, !res.Direct, "mode %v, hidden %v, %s", tc.mode, tc.hidden, name)
			require.Equal(p, proxied, res.Proxy != "")
			require.Equal(p, proxied, w.Journal.Count(name, "RFWD") > forwarded, "as the relay sees it")
			require.Equal(p, asked+1, w.Journal.Count(name, command.Tag()), "once")
		}
	}
}

func names(n int) []string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("p%d", i+1))
	}
	return all
}

func playFleet(p *scenarios.Play, s Subject, broken int, plain bool) {
	all := names(10)
	w := opened(p, s, Setup{Proxies: all, Broken: all[:broken], Draws: []string{"p1"}, Plain: plain})
	took, ok := w.ordinary(100 * unfixed)
	require.True(p, ok, "never")
	repicks := w.repicks()
	for _, c := range w.App.Changes() {
		require.Contains(p, all[:broken], c.Event.Choice.Proxy, "only the broken ones are left")
	}
	// Each proxy that is new to the app costs handshakes, so the later steps shift.
	want := ordinaryAfter(s, repicks)
	require.GreaterOrEqual(p, took, want)
	require.LessOrEqual(p, took, want+time.Duration(repicks+2)*time.Second)
	require.Equal(p, 1, w.Journal.Count("contact", "received"), "once")
	p.Figure("repicks", repicks)
}

func playOneDirection(p *scenarios.Play, s Subject) {
	w := opened(p, s, Setup{Proxies: names(12), Draws: []string{"p1"}})
	w.warm()
	p.Net.Path(w.Host(relayName), w.Host("p1")).Cut()
	began := p.Elapsed()
	done := make(chan time.Duration, 1)
	p.Go("deliver", func() {
		_, err := w.App.client.Deliver(p.Context(), request(command, forward.Urgency{}), true)
		require.NoError(p, err)
		done <- p.Elapsed() - began
	})
	time.Sleep(time.Second) // it has picked p1 and waits
	// Somebody else, who picked another, notices nothing, neither now nor after.
	other := newApp(w, nil, nil)
	ask := func() {
		res, err := other.client.Do(p.Context(), forward.Request{User: "bob", Destination: destination, Command: wire.Encode(command)})
		require.NoError(p, err)
		require.Equal(p, "p7", res.Proxy)
	}
	w.Only("p7")
	ask()
	w.Configure(nil)
	var took time.Duration
	select {
	case took = <-done:
	case <-time.After(unfixed):
		require.Fail(p, "not through", "after %v", unfixed)
	}
	w.within(took, replyAfter(w.repicks()))
	for _, c := range w.App.Changes() {
		require.Equal(p, "p1", c.Event.Choice.Proxy)
	}
	ask()
	require.Empty(p, other.Changes())
}

func playShared(p *scenarios.Play, s Subject) {
	w := NewWorld(p, s, p1First())
	w.warm()
	r := request(command, forward.Urgency{})
	r.Destination = relay("p1")
	res, err := w.App.client.Direct(p.Context(), r)
	require.NoError(p, err)
	require.True(p, res.Direct)
	require.Len(p, w.dialsTo("p1"), 1, "one connection for both purposes")
	w.Stop("p1")
	time.Sleep(time.Second)
	_, there := w.App.Choice()
	require.False(p, there, "its end forgets")
	changes := w.App.Changes()
	require.Len(p, changes, 1)
	require.Equal(p, choice.ConnectionEnded, changes[0].Event.Kind)
}

// playSlow meets every limit on a good network and on a slow one: of the
// connection, of the session, and of the forward.
func playSlow(p *scenarios.Play, s Subject) {
	w := NewWorld(p, s, Setup{Proxies: []string{"p1"}})
	w.warm()
	silentTo := func(is func(wire.Message) bool) func() {
		return func() { w.Server("p1").Script(func(m wire.Message) Reaction { return Reaction{Silent: is(m)} }) }
	}
	for _, step := range []struct {
		name   string
		silent func()
		limits [5]float64 // seconds: background, n = 0, 1, 2, 3
	}{
		{"forward", silentTo(func(m wire.Message) bool { _, is := m.(*wire.Forward); return is }), [5]float64{60, 20, 30, 45, 67.5}},
		{"session", silentTo(func(m wire.Message) bool { _, is := m.(*wire.SessionRequest); return is }), [5]float64{75, 25, 37.5, 56.25, 84.375}},
		{"connect", w.Host("p1").Crash, [5]float64{45, 15, 22.5, 33.75, 50.625}},
	} {
		step.silent()
		for i, limit := range step.limits {
			u := forward.Urgency{Interactive: i > 0, Retry: max(i-1, 0)}
			for _, slow := range []bool{false, true} {
				w.Configure(func(c *forward.Config) { c.SlowNetwork = slow })
				w.App.client.Reconnect()
				time.Sleep(forward.PersistErrorInterval)
				want := limit
				if slow {
					want *= 1.5
				}
				began := p.Elapsed()
				_, err := w.App.Do(p.Context(), command, u)
				require.ErrorContains(p, err, "BROKER TIMEOUT")
				require.InDelta(p, want, (p.Elapsed() - began).Seconds(), 0.5, "%s, %+v, slow %v: handshakes and the limit", step.name, u, slow)
			}
		}
	}
}
