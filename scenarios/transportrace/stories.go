package transportrace

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/netsim"
	"github.com/seed-5a7f77c4/deadair/scenarios"
	"github.com/seed-5a7f77c4/deadair/selection/roam"
)

const ms = time.Millisecond

// story is a scenario about the app.
type story = scenarios.Scenario[Subject]

// Stories are the stories of the transport race, each in a world of its own.
func Stories() []story {
	var all []story
	for _, group := range [][]story{
		connectingStories(), planStories(), handshakeStories(), tunnelStories(), memoryStories(),
		idleStories(), roamingStories(), decisionStories(), reconnectStories(),
	} {
		all = append(all, group...)
	}
	for i := range all {
		all[i].Labels = append(all[i].Labels, "transport-race")
		if all[i].Observed != "" {
			all[i].Labels = append(all[i].Labels, "field")
		}
		all[i].Network = append(all[i].Network, netsim.Defaults(netsim.Conditions{Latency: 5 * ms}))
	}
	return all
}

// connect starts the app on cellular and gives the time until it was connected; false when it never was.
func (w *World) connect(phone *Phone, wait time.Duration) (time.Duration, bool) {
	w.Cell.Up()
	began := w.now()
	phone.Start()
	time.Sleep(wait)
	up := phone.Connections()
	if len(up) == 0 {
		return 0, false
	}
	took := up[0].Adopted - began
	w.Figure("connected", took.Seconds())
	return took, true
}

// online starts the app on cellular, waits until it is connected, through the relay if nothing else is there, and lets
// the connection grow old enough to be probed.
func (w *World) online(phone *Phone) {
	w.Helper()
	w.Cell.Up()
	phone.Start()
	w.connected(phone, 1)
	time.Sleep(roam.MinAge + 2*time.Second)
}

// connected waits until the app has adopted its n-th connection.
func (w *World) connected(phone *Phone, n int) {
	w.Helper()
	w.until(25*time.Second, func() bool { return len(phone.Connections()) >= n })
	require.Len(w, phone.Connections(), n)
}

// until lets time pass until ok, for the limit at most; then the story ends.
func (w *World) until(limit time.Duration, ok func() bool) {
	w.Helper()
	for end := w.now() + limit; !ok(); time.Sleep(10 * ms) {
		require.Less(w, w.now(), end, "waited for in vain")
	}
}

// seconds gives a time of the world as a number, for asserts with a tolerance.
func seconds(d time.Duration) float64 { return d.Seconds() }
