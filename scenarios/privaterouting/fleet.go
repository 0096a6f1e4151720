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
		{ID: "PR-28", Title: "10 proxies, 5 of them broken: recovery after the re-picks that the draws say", Play: playTen},
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
	w := NewWorld(p, s, Setup{First: "p1", Relays: []string{"known"}})
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
			res, err := w.App.DoAt(p.Context(), name, command, forward.Urgency{})
			require.NoError(p, err)
			require.Equal(p, proxied, !res.Direct, "mode %v, hidden %v, %s", tc.mode, tc.hidden, name)
			require.Equal(p, proxied, res.Proxy != "")
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

func playTen(p *scenarios.Play, s Subject) {
	all := names(10)
	w := NewWorld(p, s, Setup{Proxies: all, Broken: all[:5], First: "p1"})
	w.Contact.Receive(p.Context())
	began := p.Elapsed()
	p.Go("deliver", func() { w.App.Deliver(p.Context(), contactQueue, 1, false) })
	got, ok := w.Journal.Wait(10*unfixed, func(n Note) bool { return n.Actor == "contact" && n.What == "received" })
	require.True(p, ok, "never")
	w.triedFirst("p1")
	repicks := w.App.Forgotten() - 1
	require.GreaterOrEqual(p, repicks, 0)
	for _, c := range w.App.Changes() {
		require.Contains(p, all[:5], c.Event.Choice.Proxy, "only the broken ones are left")
	}
	want := ordinaryAfter(s, repicks)
	require.GreaterOrEqual(p, got.At-began, want)
	require.LessOrEqual(p, got.At-began, want+time.Duration(repicks+2)*time.Second)
	p.Figure("repicks", repicks)
}

func playOneDirection(p *scenarios.Play, s Subject) {
	w := NewWorld(p, s, Setup{Proxies: names(12), First: "p1"})
	w.warm()
	p.Net.Path(w.Host(relayName), w.Host("p1")).Cut()
	done := make(chan error, 1)
	began := p.Elapsed()
	go func() {
		_, err := w.App.client.Deliver(p.Context(), request(command, forward.Urgency{}), true)
		done <- err
	}()
	time.Sleep(time.Second) // it has picked p1 and waits
	// Somebody else, who picked another, notices nothing.
	other := newApp(w)
	w.Only("p7")
	res, err := other.client.Do(p.Context(), forward.Request{User: "bob", Destination: destination, Command: wire.Encode(command)})
	require.NoError(p, err)
	require.Equal(p, "p7", res.Proxy)
	require.Empty(p, other.Changes())
	w.Configure(nil)
	require.NoError(p, <-done)
	require.NotZero(p, w.App.Forgotten())
	for _, c := range w.App.Changes() {
		require.Equal(p, "p1", c.Event.Choice.Proxy)
	}
	require.GreaterOrEqual(p, p.Elapsed()-began, 62*time.Second)
}

func playShared(p *scenarios.Play, s Subject) {
	w := NewWorld(p, s, Setup{First: "p1"})
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

func playSlow(p *scenarios.Play, s Subject) {
	w := NewWorld(p, s, Setup{First: "p1"})
	w.warm()
	w.Server("p1").Script(func(m wire.Message) Reaction {
		_, is := m.(*wire.Forward)
		return Reaction{Silent: is}
	})
	for _, tc := range []struct {
		u            forward.Urgency
		normal, slow time.Duration
	}{
		{forward.Urgency{}, 60 * time.Second, 90 * time.Second},
		{forward.Urgency{Interactive: true}, 20 * time.Second, 30 * time.Second},
		{forward.Urgency{Interactive: true, Retry: 1}, 30 * time.Second, 45 * time.Second},
		{forward.Urgency{Interactive: true, Retry: 2}, 45 * time.Second, 67500 * time.Millisecond},
		{forward.Urgency{Interactive: true, Retry: 3}, 67500 * time.Millisecond, 101250 * time.Millisecond},
	} {
		for _, slow := range []bool{false, true} {
			w.Configure(func(c *forward.Config) { c.SlowNetwork = slow })
			began := p.Elapsed()
			_, err := w.App.Do(p.Context(), command, tc.u)
			require.ErrorContains(p, err, "BROKER TIMEOUT")
			want := tc.normal
			if slow {
				want = tc.slow
			}
			require.InDelta(p, want.Seconds(), (p.Elapsed() - began).Seconds(), 0.001)
		}
	}
}
