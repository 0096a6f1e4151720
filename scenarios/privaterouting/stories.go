package privaterouting

import (
	"slices"
	"time"

	"github.com/seed-5a7f77c4/deadair/netsim"
	"github.com/seed-5a7f77c4/deadair/scenarios"
)

// story is a scenario about the agent.
type story = scenarios.Scenario[Subject]

// Stories are all stories, by their ids.
func Stories() []story {
	var all []story
	for _, s := range [][]story{
		offlineStories(), streakStories(), joinStories(), sessionStories(), changingStories(), guardStories(),
		outcomeStories(), fleetStories(), variantStories(),
	} {
		all = append(all, s...)
	}
	for i := range all {
		all[i].Labels = append([]string{"private-routing"}, all[i].Labels...)
		all[i].Network = append(all[i].Network, netsim.Defaults(netsim.Conditions{Latency: Latency}))
	}
	return all
}

// Times of the agent that stories compute with.
const (
	reportAfter = RelayAnswerLimit // when a proxy reports that the relay is silent
	handshakes  = 5 * time.Second  // room for the connections that a way needs
	unfixed     = 600 * time.Second
)

// field marks a story that was observed outside.
const field = "field"

// triedFirst checks that the proxy was tried before any other, by what the app
// noted and by what the network saw.
func (w *World) triedFirst(name string) {
	w.play.Helper()
	if first, ok := w.Journal.First("app", "dial"); !ok || first.About != name {
		w.play.Fatalf("%s was to be tried first: the first was %v", name, first)
	}
	if syn, ok := w.play.Net.Trace().First(func(e netsim.Event) bool {
		return e.From == "app" && e.Kind == netsim.SYN && e.To != homeName
	}); !ok || syn.To != name {
		w.play.Fatalf("the app's first dial went to %q, not to %s", syn.To, name)
	}
}

// neverDirect checks that the app kept its address from every relay: it never
// dialled one itself, unless the story is about that.
func (w *World) neverDirect() {
	if w.setup.Direct {
		return
	}
	if syn, ok := w.play.Net.Trace().First(func(e netsim.Event) bool {
		return e.From == "app" && e.Kind == netsim.SYN && (e.To == relayName || slices.Contains(w.setup.Relays, e.To))
	}); ok {
		w.play.Errorf("the app went to a relay itself: %v", syn)
	}
}

// leftAlone says that nothing has gone from the app to a host since an instant of
// the play.
func (w *World) leftAlone(name string, since time.Duration) {
	w.play.Helper()
	if e, ok := w.play.Net.Trace().First(func(e netsim.Event) bool { return e.From == "app" && e.To == name && e.Sent >= since }); ok {
		w.play.Errorf("nothing was to go to %s since %v: %v", name, since, e)
	}
}

// untouched says that nothing went from the app to a host before an instant of
// the play.
func (w *World) untouched(name string, before time.Duration) {
	w.play.Helper()
	if e, ok := w.play.Net.Trace().First(func(e netsim.Event) bool { return e.From == "app" && e.To == name && e.Sent < before }); ok {
		w.play.Errorf("nothing was to go to %s before %v: %v", name, before, e)
	}
}
