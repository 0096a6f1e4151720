package transportrace

import (
	"math"
	"slices"

	"github.com/seed-5a7f77c4/deadair/selection/race"
	"github.com/seed-5a7f77c4/deadair/selection/rank"
	"github.com/seed-5a7f77c4/deadair/selection/roam"
	"github.com/seed-5a7f77c4/deadair/selection/route"
)

// old makes the client before the change: the relay is dialled when every direct route has failed, and abandoned after
// 350 ms; the token is fetched last; one last good endpoint is remembered for all networks, and failures are not. On
// cellular a saved tailnet route makes it look for a better one at every update of the path, and the winner replaces
// the live connection whoever it is; of interfaces it sees only that there is none.
func old(s *Subject) {
	s.Race.Rounds = twoRaces
	s.Race.Rank.LocalLinkOnly = func(string) bool { return false }
	s.Race.Rank.Hoists = func(f rank.Facts) []route.Key { return []route.Key{f.LastGood} }
	s.Race.Rank.Hoist = bringBack
	s.Handshake.Extends, s.Handshake.TokenWithOpen = false, false
	s.Handshake.Redials = func(bool, bool) bool { return true }
	s.Memory.Threshold = math.MaxInt
	s.TrustingRegistry = true
	s.Roam.Changes = func(before, after route.Path) bool { return before.Satisfied != after.Satisfied }
	s.Roam.Best = func(o roam.Observed) route.Class {
		if o.TailnetRoute && o.Path.Cellular && !o.Path.LocalLink() {
			return route.Tailnet
		}
		return route.Unknown
	}
	s.Roam.Better = func(best, current route.Class) bool { return best != route.Unknown && current == route.Relay }
	s.Roam.MinAge, s.Roam.Interval = 0, 0
	s.Roam.KeepsSame = false
}

// twoRaces parts a plan into its direct routes and its relays.
func twoRaces(p race.Plan) []race.Plan {
	direct, relay := p, p
	direct.Slots = slices.DeleteFunc(slices.Clone(p.Slots), func(s race.Slot) bool { return s.Class == route.Relay })
	relay.Slots = slices.DeleteFunc(slices.Clone(p.Slots), func(s race.Slot) bool { return s.Class != route.Relay })
	if len(relay.Slots) > 0 {
		relay.Slots[0].Delay = 0
	}
	return slices.DeleteFunc([]race.Plan{direct, relay}, func(p race.Plan) bool { return len(p.Slots) == 0 })
}

// bringBack hoists as it should, and adds a remembered relay that is not in the order.
func bringBack(order []rank.Ranked, key route.Key) []rank.Ranked {
	present := slices.ContainsFunc(order, func(r rank.Ranked) bool { return r.Key == key })
	if c := (route.Candidate{Address: string(key)}); !present && c.Class() == route.Relay {
		order = append(order, rank.Ranked{Candidate: c, Class: route.Relay, Key: key})
	}
	return rank.Hoist(order, key)
}
