package transportrace

import (
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/scenarios"
	"github.com/seed-5a7f77c4/deadair/selection/memory"
	"github.com/seed-5a7f77c4/deadair/selection/roam"
	"github.com/seed-5a7f77c4/deadair/selection/route"
)

// decisionStories are about when to look for a better route. TR-27 is the decision table, a story for each row.
func decisionStories() []story {
	stories := []story{
		{ID: "TR-9", Title: "the machine appears in discovery while on Wi-Fi: probed after 10 s of age and 300 s since the last roam", Play: appears},
		{ID: "TR-11", Title: "a burst of path updates: one decision, 250 ms after the last; the floor of 3 s holds the next, which is not lost", Play: burst},
	}
	for _, row := range decisions {
		stories = append(stories, story{ID: "TR-27-" + row.id, Title: "the roaming decision: " + row.title, Play: row.play})
	}
	return stories
}

// causes are the causes of the roams so far.
func causes(phone *Phone) []roam.Cause {
	causes := []roam.Cause{}
	for _, r := range phone.Roams() {
		causes = append(causes, r.Cause)
	}
	return causes
}

func appears(p *scenarios.Play, s Subject) {
	w := NewWorld(p, Setup{Relay: quick, Port: fixed})
	asleep := p.Net.Link(w.phone, w.machine).Cut()
	w.Join(Home)
	w.Tail.Up()
	phone := w.Phone(s, RoutesAt(fixed))
	phone.Start()
	w.connected(phone, 1)
	require.Equal(p, route.Relay, phone.Connections()[0].Class)
	up := phone.Connections()[0].Adopted

	p.At(up + roam.MinAge - ms)
	w.Discover(true)
	time.Sleep(ms / 2)
	assert.Empty(p, causes(phone), "too young")
	p.At(up + roam.MinAge + ms)
	w.Discover(true)
	time.Sleep(20 * time.Second)
	require.Equal(p, []roam.Cause{roam.Probe}, causes(phone))
	first := phone.Roams()[0]
	assert.Equal(p, up+roam.MinAge+ms, first.Began)
	assert.Error(p, first.Err)
	assert.Len(p, phone.Connections(), 1, "it failed, and nothing happened")

	asleep.Undo()
	p.At(first.Began + roam.Interval - ms)
	w.Discover(true)
	time.Sleep(ms / 2)
	assert.Len(p, causes(phone), 1, "roamed lately")
	p.At(first.Began + roam.Interval + ms)
	w.Discover(true)
	time.Sleep(3 * time.Second)
	require.Equal(p, []roam.Cause{roam.Probe, roam.Probe}, causes(phone))
	for _, r := range phone.Roams() {
		assert.Equal(p, []route.Class{route.LAN, route.Tailnet}, r.Plan.Classes(), "strictly better classes only")
	}
	assert.Len(p, w.Relay.Dials(), 1)
	require.Len(p, phone.Connections(), 2)
	assert.Equal(p, route.LAN, phone.Connections()[1].Class)
}

func burst(p *scenarios.Play, s Subject) {
	w := NewWorld(p, Setup{Relay: quick})
	phone := w.Phone(s, RelayOnly)
	phone.Stream = true
	w.Cell.Up()
	phone.Start()
	p.At(10 * time.Second)
	for i := range 5 {
		if i%2 == 0 {
			w.Join("café")
		} else {
			w.Join("")
		}
		if i < 4 {
			time.Sleep(100 * ms)
		}
	}
	p.At(11 * time.Second)
	w.Unsettled(50 * ms)
	p.At(25 * time.Second)
	var began []time.Duration
	for _, r := range phone.Roams() {
		began = append(began, r.Began.Round(ms))
	}
	assert.Equal(p, []time.Duration{10650 * ms, 13650 * ms}, began)
	unbroken(p, phone)
}

// row is a row of the decision table: it lets things happen to an app that is connected, on cellular through the relay
// if begins says nothing else.
type row struct {
	id, title string
	routes    []memory.Route
	begins    func(w *World)
	happens   func(w *World, phone *Phone)
	want      []roam.Cause
	// classes are those of the last race.
	classes []route.Class
}

var decisions = []row{
	{id: "not-live", title: "not live: none, which is reconnect's business", routes: RelayOnly, happens: func(w *World, phone *Phone) {
		w.Net.Path(w.phone, w.relayHost).Refuse()
		w.Net.Link(w.phone, w.relayHost).Reset()
		time.Sleep(100 * ms)
		w.Join("café")
		time.Sleep(time.Minute)
		require.NotZero(w, phone.Connections()[0].Ended)
	}},
	{id: "no-path", title: "no satisfied path: none until there is one", routes: RelayOnly, happens: func(w *World, phone *Phone) {
		w.Unsettled(10 * time.Second)
		w.Join("café")
		time.Sleep(9 * time.Second)
		assert.Empty(w, causes(phone))
		time.Sleep(5 * time.Second)
	}, want: []roam.Cause{roam.Roam}},
	{id: "changed", title: "interfaces changed: everything is raced now, age and class ignored", routes: AllRoutes, happens: func(w *World, phone *Phone) {
		w.WiFi.Up() // to the LAN, the best class
		w.connected(phone, 2)
		require.Equal(w, route.LAN, phone.Connections()[1].Class)
		w.At(phone.Connections()[1].Adopted + 4*time.Second)
		w.Cell.Down()
		time.Sleep(roam.Debounce + ms)
		require.Len(w, causes(phone), 2)
		assert.Less(w, phone.Roams()[1].Began-phone.Connections()[1].Adopted, roam.MinAge)
	}, want: []roam.Cause{roam.Roam, roam.Roam}, classes: route.Classes},
	{id: "floor", title: "interfaces changed within 3 s of a roam: decided at the end of the 3 s", routes: RelayOnly, happens: func(w *World, phone *Phone) {
		w.Join("café")
		time.Sleep(2 * time.Second)
		w.Unsettled(50 * ms)
		time.Sleep(5 * time.Second)
		require.Len(w, causes(phone), 2)
		assert.Equal(w, roam.Floor, phone.Roams()[1].Began-phone.Roams()[0].Began)
	}, want: []roam.Cause{roam.Roam, roam.Roam}},
	{id: "unknown", title: "best class unknown: none", routes: AllRoutes[:1], begins: func(w *World) { w.WiFi.Up() }, happens: func(w *World, phone *Phone) {
		for range 3 {
			w.Discover(false)
			time.Sleep(400 * time.Second)
		}
		require.Equal(w, route.LAN, phone.Connections()[0].Class)
	}},
	{id: "no-better", title: "best class not strictly better: none", routes: RelayOnly, happens: func(w *World, phone *Phone) {
		for range 3 {
			w.Discover(false)
			time.Sleep(400 * time.Second)
		}
	}},
	{id: "standing", title: "a saved route is no observation: none, however long", routes: AllRoutes, happens: func(w *World, phone *Phone) {
		for range 3 {
			w.Discover(true) // heard over cellular: it cannot be the LAN's
			time.Sleep(400 * time.Second)
		}
	}},
	{id: "young", title: "connection younger than 10 s: none", routes: AllRoutes, happens: func(w *World, phone *Phone) {
		w.Net.Link(w.phone, w.relayHost).Reset()
		w.connected(phone, 2)
		up := phone.Connections()[1].Adopted
		w.At(up + 5*time.Second)
		w.Tail.Up()
		w.At(up + roam.MinAge - ms)
		w.Discover(false) // an update decides at once
		time.Sleep(ms / 2)
	}},
	{id: "lately", title: "less than 300 s since the last roam: none", routes: AllRoutes, happens: func(w *World, phone *Phone) {
		w.Join("café")
		time.Sleep(20 * time.Second)
		require.Len(w, causes(phone), 1)
		w.Tail.Up()
		w.At(phone.Roams()[0].Began + roam.Interval - ms)
		w.Discover(false)
		time.Sleep(ms / 2)
	}, want: []roam.Cause{roam.Roam}, classes: route.Classes},
	{id: "probe", title: "otherwise: the strictly better classes are raced", routes: AllRoutes, happens: func(w *World, phone *Phone) {
		w.Tail.Up()
		w.connected(phone, 2)
		assert.Equal(w, route.Tailnet, phone.Connections()[1].Class)
		assert.Len(w, w.Relay.Dials(), 1)
	}, want: []roam.Cause{roam.Probe}, classes: []route.Class{route.LAN, route.Tailnet}},
}

func (r row) play(p *scenarios.Play, s Subject) {
	w := NewWorld(p, Setup{Relay: cold})
	phone := w.Phone(s, r.routes)
	if r.begins != nil {
		r.begins(w)
	}
	w.online(phone)
	r.happens(w, phone)
	want := r.want
	if want == nil {
		want = []roam.Cause{}
	}
	require.Equal(p, want, causes(phone))
	if r.classes != nil {
		assert.Equal(p, r.classes, phone.Roams()[len(want)-1].Plan.Classes())
	}
}
