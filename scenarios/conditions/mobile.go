package conditions

import (
	"time"

	"github.com/seed-5a7f77c4/deadair/clock"
	"github.com/seed-5a7f77c4/deadair/netsim"
)

// NoNetworkFor takes an interface down for d: with no other one, dials fail at
// once with ENETUNREACH, which says nothing about any server. Report:
// getlantern/lantern#2588 (30 s).
func NoNetworkFor(n *netsim.Network, i *netsim.Interface, d time.Duration) {
	i.Down()
	n.After(d, "network back", i.Up)
}

// WiFiLost takes one interface down while others stay. What was on it vanishes;
// the program is told as late as it watches (see [netsim.Host.WatchConnectivity]).
// Report: tailscale/tailscale#276 (1 s late).
func WiFiLost(wifi *netsim.Interface) { wifi.Down() }

// SleepFor makes a phone sleep for d: it sends nothing and its timers, those of
// clk, stand still, while its wall clock and its peers go on. Report:
// golang/go#35012 (15 min).
func SleepFor(n *netsim.Network, phone *netsim.Host, clk *clock.Skewed, d time.Duration) {
	clk.Pause()
	phone.Pause()
	n.After(d, "wake "+phone.Name(), func() {
		phone.Resume()
		clk.Resume()
	})
}

// WrongDateFor is a clock that is so far behind until it is corrected after d.
// Report: opnsense/core#9181 (30 days, 10 min).
func WrongDateFor(n *netsim.Network, behind, d time.Duration) *clock.Skewed {
	c := clock.NewSkewed(clock.System, clock.Skew{Offset: -behind})
	n.After(d, "clock corrected", func() { c.Jump(behind) })
	return c
}
