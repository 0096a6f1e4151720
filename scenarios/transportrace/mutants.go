package transportrace

import (
	"math"
	"slices"
	"time"

	"github.com/seed-5a7f77c4/deadair/scenarios"
	"github.com/seed-5a7f77c4/deadair/selection/race"
	"github.com/seed-5a7f77c4/deadair/selection/rank"
	"github.com/seed-5a7f77c4/deadair/selection/roam"
	"github.com/seed-5a7f77c4/deadair/selection/route"
)

// Mutants are our client with one rule off or wrong each. The one named "old" is the client before the change.
func Mutants() []scenarios.Mutant[Subject] {
	m := func(name, doc string, change func(*Subject), kills ...string) scenarios.Mutant[Subject] {
		return scenarios.Mutant[Subject]{Name: name, Doc: doc, Kills: kills, Apply: func(s Subject) Subject { change(&s); return s }}
	}
	return []scenarios.Mutant[Subject]{
		m("old", "two races, the LAN never demoted, accepted does not extend, the token last, only the last good remembered", old, "TR-1", "TR-2", "TR-3", "TR-4", "TR-5", "TR-6", "TR-17", "TR-7", "TR-8", "TR-9", "TR-10", "TR-12", "TR-14", "TR-16", "TR-19", "TR-27"),
		m("two-races", "the direct routes race first, the relay after them", func(s *Subject) { s.Race.Rounds = twoRaces }, "TR-1", "TR-2", "TR-7", "TR-8", "TR-9", "TR-10", "TR-12"),
		m("relay-joins-early", "the relay is not held back", func(s *Subject) {
			s.Race.Delay = func(slot int, _ route.Class) time.Duration { return time.Duration(slot) * race.Stagger }
		}, "TR-1", "TR-21"),
		m("relay-waits-in-front", "the relay is held back even in slot 0", func(s *Subject) {
			s.Race.Delay = func(slot int, c route.Class) time.Duration {
				if c == route.Relay {
					return max(race.Delay(slot, c), race.RelayJoin)
				}
				return race.Delay(slot, c)
			}
		}, "TR-2", "TR-21"),
		m("relay-forgotten", "a win of the relay is not remembered for the network", func(s *Subject) {
			s.Memory.Remembers = func(c route.Class) bool { return c != route.Relay }
		}, "TR-2", "TR-16"),
		m("last-good-first", "the last good outranks the network's endpoint", func(s *Subject) {
			s.Race.Rank.Hoists = func(f rank.Facts) []route.Key { return []route.Key{f.LastGood, f.Remembered} }
		}, "TR-2", "TR-8", "TR-16"),
		m("failing-removed", "a failing endpoint is taken out of the plan", func(s *Subject) {
			s.Race.Rank.Keeps = func(r rank.Ranked) bool { return !r.Failing }
		}, "TR-14"),
		m("failing-not-demoted", "a failing endpoint keeps its rank", func(s *Subject) { s.Memory.Threshold = math.MaxInt }, "TR-14"),
		m("failing-for-ever", "failures never expire", func(s *Subject) { s.Memory.Recent = func(time.Duration) bool { return true } }, "TR-14"),
		m("threshold-1", "one failure demotes", func(s *Subject) { s.Memory.Threshold = 1 }, "TR-14"),
		m("window-exclusive", "the window excludes its end", func(s *Subject) {
			s.Memory.Recent = func(age time.Duration) bool { return age >= 0 && age < 120*time.Second }
		}, "TR-14"),
		m("cancellation-recorded", "every error blames the route", func(s *Subject) { s.Race.Blames = func(err error) bool { return err != nil } }, "TR-15"),
		m("lan-on-cellular", "local-link addresses keep their rank on cellular", func(s *Subject) {
			s.Race.Rank.LocalLinkOnly = func(string) bool { return false }
		}, "TR-1", "TR-17"),
		m("loopback-demoted", "loopback counts as local-link only", func(s *Subject) {
			s.Race.Rank.LocalLinkOnly = func(a string) bool { return route.LocalLinkOnly(a) || a == "127.0.0.1" }
		}, "TR-17"),
		m("accepted-does-not-extend", "accepted leaves the deadline as it is", func(s *Subject) { s.Handshake.Extends = false }, "TR-3", "TR-4", "TR-6"),
		m("legacy-always", "every time-out is followed by a legacy redial", func(s *Subject) {
			s.Handshake.Redials = func(bool, bool) bool { return true }
		}, "TR-4", "TR-5"),
		m("legacy-never", "no time-out is followed by a legacy redial", func(s *Subject) {
			s.Handshake.Redials = func(bool, bool) bool { return false }
		}, "TR-5"),
		m("token-after-open", "the token is fetched when the hello is built", func(s *Subject) { s.Handshake.TokenWithOpen = false }, "TR-3"),
		m("registry-without-token", "any release frees a dial", func(s *Subject) { s.TrustingRegistry = true }, "TR-19"),
		m("standing-fact", "a saved tailnet route counts as observed", func(s *Subject) {
			s.Roam.Best = func(o roam.Observed) route.Class {
				if o.TailnetRoute {
					return min(route.Tailnet, roam.Best(o))
				}
				return roam.Best(o)
			}
		}, "TR-7", "TR-27"),
		m("probe-without-age", "a young connection is probed", func(s *Subject) { s.Roam.MinAge = 0 }, "TR-9", "TR-27"),
		m("probe-without-interval", "probes follow at once", func(s *Subject) { s.Roam.Interval = 0 }, "TR-27"),
		m("probe-any-class", "a probe does not ask for a better class", func(s *Subject) {
			s.Roam.Better = func(best, current route.Class) bool { return best != route.Unknown && current != route.Unknown }
		}, "TR-7", "TR-9", "TR-27"),
		m("break-before-make", "the live connection is closed before the race", func(s *Subject) { s.Roam.Breaks = true }, "TR-8", "TR-12", "TR-13"),
		m("same-endpoint-swaps", "a win on the endpoint in use replaces the live connection", func(s *Subject) { s.Roam.KeepsSame = false }, "TR-13"),
		m("hoist-brings-back", "a remembered endpoint is hoisted although it was refused", func(s *Subject) { s.Race.Rank.Hoist = bringBack }, "TR-18", "TR-9"),
		m("no-re-arm", "a change held back by the floor is lost", func(s *Subject) { s.Roam.Rearms = false }, "TR-11"),
		m("cap-off-by-one", "nine networks are kept", func(s *Subject) { s.Memory.Capacity = 9 }, "TR-16"),
	}
}

func old(s *Subject) {
	s.Race.Rounds = twoRaces
	s.Race.Rank.LocalLinkOnly = func(string) bool { return false }
	s.Race.Rank.Hoists = func(f rank.Facts) []route.Key { return []route.Key{f.LastGood} }
	s.Handshake.Extends, s.Handshake.TokenWithOpen = false, false
	s.Handshake.Redials = func(bool, bool) bool { return true }
	s.Memory.Threshold = math.MaxInt
	s.TrustingRegistry = true
	s.Roam.Better = func(route.Class, route.Class) bool { return false }
}

// twoRaces parts a plan into its direct routes and its relays.
func twoRaces(p race.Plan) []race.Plan {
	direct, relay := p, p
	direct.Slots = slices.DeleteFunc(slices.Clone(p.Slots), func(s race.Slot) bool { return s.Class == route.Relay })
	relay.Slots = slices.DeleteFunc(slices.Clone(p.Slots), func(s race.Slot) bool { return s.Class != route.Relay })
	if len(relay.Slots) > 0 {
		relay.Slots[0].Delay = 0
	}
	return []race.Plan{direct, relay}
}

// bringBack hoists as it should, and adds a remembered relay that is not in the order.
func bringBack(order []rank.Ranked, key route.Key) []rank.Ranked {
	present := slices.ContainsFunc(order, func(r rank.Ranked) bool { return r.Key == key })
	if c := (route.Candidate{Address: string(key)}); !present && c.Class() == route.Relay {
		order = append(order, rank.Ranked{Candidate: c, Class: route.Relay, Key: key})
	}
	return rank.Hoist(order, key)
}
