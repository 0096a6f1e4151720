package transportrace

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/coder/websocket"

	"github.com/seed-5a7f77c4/deadair/scenarios"
	"github.com/seed-5a7f77c4/deadair/selection/memory"
	"github.com/seed-5a7f77c4/deadair/selection/race"
	"github.com/seed-5a7f77c4/deadair/selection/rank"
	"github.com/seed-5a7f77c4/deadair/selection/roam"
	"github.com/seed-5a7f77c4/deadair/selection/route"
)

// mutant is the client with one rule off or wrong.
type mutant = scenarios.Mutant[Subject]

// Mutants are our client with one rule off or wrong each, and the stories that fail with it. The one named old is the
// client before the change.
//
// A story is named where the rule is what it is about, and where it cannot be played without the rule: the second roam
// of TR-25 needs a live connection and a path change, TR-20 and TR-26 a route that is tried however often it has failed,
// the order of TR-14 and TR-16 that losers are not demoted, the probes of TR-9 and TR-27-probe that nothing comes back
// which was left out.
func Mutants() []mutant {
	return slices.Concat([]mutant{
		changed("old", "the client before the change", old, "TR-1", "TR-2", "TR-3", "TR-4", "TR-5", "TR-7", "TR-8", "TR-9", "TR-10", "TR-11", "TR-12", "TR-13", "TR-13-dead", "TR-14", "TR-16", "TR-17", "TR-18", "TR-19", "TR-21", "TR-25", "TR-27-changed", "TR-27-floor", "TR-27-lately", "TR-27-probe", "TR-27-standing", "TR-27-young"),
	}, planMutants(), memoryMutants(), handshakeMutants(), roamMutants())
}

// changed makes a mutant.
func changed(name, doc string, change func(*Subject), kills ...string) mutant {
	return mutant{Name: name, Doc: doc, Kills: kills, Apply: func(s Subject) Subject { change(&s); return s }}
}

// planMutants are about who is dialled when, and who wins.
func planMutants() []mutant {
	return []mutant{
		changed("two-races", "the direct routes race first, the relay after them", func(s *Subject) { s.Race.Rounds = twoRaces }, "TR-1", "TR-2", "TR-10", "TR-16", "TR-17", "TR-21"),
		changed("relay-joins-early", "the relay is not held back", func(s *Subject) {
			s.Race.Delay = func(slot int, _ route.Class) time.Duration { return time.Duration(slot) * race.Stagger }
		}, "TR-1", "TR-21"),
		changed("relay-waits-in-front", "the relay is held back even in slot 0", func(s *Subject) {
			s.Race.Delay = func(slot int, c route.Class) time.Duration {
				if c == route.Relay {
					return max(race.Delay(slot, c), race.RelayJoin)
				}
				return race.Delay(slot, c)
			}
		}, "TR-2", "TR-16", "TR-21"),
		changed("four-at-once", "a fourth candidate runs beside three", func(s *Subject) { s.Race.Concurrent = 4 }, "TR-21", "TR-24"),
		changed("no-pull-forward", "a failure starts nobody", func(s *Subject) { s.Race.PullsForward = false }, "TR-21"),
		changed("ports-first", "a route's alternate ports come before the next route", func(s *Subject) { s.Race.Rank.Sweep = portsFirst }, "TR-22"),
		changed("lan-on-cellular", "local-link addresses keep their rank on cellular", func(s *Subject) {
			s.Race.Rank.LocalLinkOnly = func(string) bool { return false }
		}, "TR-1", "TR-17"),
		changed("loopback-demoted", "loopback counts as local-link only", func(s *Subject) {
			s.Race.Rank.LocalLinkOnly = func(a string) bool { return route.LocalLinkOnly(a) || a == "127.0.0.1" }
		}, "TR-17"),
		changed("hoist-brings-back", "a remembered endpoint is hoisted although it was refused", func(s *Subject) { s.Race.Rank.Hoist = bringBack }, "TR-9", "TR-18", "TR-27-probe"),
		changed("endless-race", "a race has no budget", func(s *Subject) { s.Race.Budget = time.Hour }, "TR-24"),
		changed("late-winner", "a race that was superseded may still win", func(s *Subject) { s.OneRacer, s.Roam.Supersedes = false, false }, "TR-25"),
		changed("never-closes", "sockets that are not needed any more are left open", func(s *Subject) {
			s.Close = func(*websocket.Conn) error { return nil }
		}, "TR-8", "TR-13", "TR-20", "TR-25"),
	}
}

// portsFirst sweeps depth first.
func portsFirst(order []rank.Ranked) (swept []rank.Ranked) {
	for _, r := range order {
		swept = append(swept, rank.Sweep([]rank.Ranked{r})...)
	}
	return swept
}

// memoryMutants are about what the app learns and keeps.
func memoryMutants() []mutant {
	return []mutant{
		changed("relay-forgotten", "a win of the relay is not remembered for the network", func(s *Subject) {
			s.Memory.Remembers = func(c route.Class) bool { return c != route.Relay }
		}, "TR-2", "TR-16"),
		changed("last-good-first", "the last good outranks the network's endpoint", func(s *Subject) {
			s.Race.Rank.Hoists = func(f rank.Facts) []route.Key { return []route.Key{f.LastGood, f.Remembered} }
		}, "TR-2", "TR-16"),
		changed("cap-off-by-one", "nine networks are kept", func(s *Subject) { s.Memory.Capacity = 9 }, "TR-16"),
		changed("failing-removed", "a failing endpoint is taken out of the plan", func(s *Subject) {
			s.Race.Rank.Keeps = func(r rank.Ranked) bool { return !r.Failing }
		}, "TR-14", "TR-20", "TR-26"),
		changed("failing-not-demoted", "a failing endpoint keeps its rank", func(s *Subject) { s.Memory.Threshold = math.MaxInt }, "TR-14"),
		changed("failing-for-ever", "failures never expire", func(s *Subject) { s.Memory.Recent = func(time.Duration) bool { return true } }, "TR-14"),
		changed("threshold-1", "one failure demotes", func(s *Subject) { s.Memory.Threshold = 1 }, "TR-14"),
		changed("window-exclusive", "the window excludes its end", func(s *Subject) {
			s.Memory.Recent = func(age time.Duration) bool { return age >= 0 && age < memory.FailureWindow }
		}, "TR-14"),
		changed("cancellation-recorded", "every error blames the route, cancellation and the account's included", func(s *Subject) {
			s.Race.Blames = func(err error) bool { return err != nil }
		}, "TR-15"),
		changed("losers-recorded", "a candidate that lost is recorded as failed", func(s *Subject) { s.Record = recordLosers }, "TR-14", "TR-15", "TR-16", "TR-24"),
		changed("silence-not-recorded", "a candidate that opened and stayed silent is not recorded", func(s *Subject) {
			s.Race.Blames = func(err error) bool { return route.Blames(err) && !errors.Is(err, race.ErrSilent) }
		}, "TR-24"),
		changed("strike-per-port", "each port that failed is a strike", func(s *Subject) { s.Record = recordPorts }, "TR-22"),
		changed("unknown-dropped", "fields of the profile that are not understood are lost", func(s *Subject) { s.Save = saveKnown }, "TR-23"),
		changed("old-profile-refused", "a profile without the later fields is refused", func(s *Subject) { s.Load = loadStrict }, "TR-23"),
	}
}

// recordLosers blames every candidate of a race that did not win.
func recordLosers(m *memory.Memory, now time.Time, network route.Fingerprint, won Outcome, success *memory.Success) {
	for i, l := range won.Lanes {
		if l.State == race.Lost {
			won.Failed = append(slices.Clone(won.Failed), won.Plan.Slots[i].Key)
		}
	}
	m.Record(now, network, won.Failed, success)
}

// recordPorts writes each failed candidate down by itself.
func recordPorts(m *memory.Memory, now time.Time, network route.Fingerprint, won Outcome, success *memory.Success) {
	for i, l := range won.Lanes {
		if key := won.Plan.Slots[i].Key; l.State == race.Failed && slices.Contains(won.Failed, key) {
			m.Record(now, "", []route.Key{key}, nil)
		}
	}
	m.Record(now, network, nil, success)
}

// saveKnown stores what this version understands.
func saveKnown(p *memory.Profile) ([]byte, error) {
	known := &memory.Profile{Memory: p.Memory}
	for _, r := range p.Routes {
		known.Routes = append(known.Routes, memory.Route{Address: r.Address, Port: r.Port, Owner: r.Owner})
	}
	return json.Marshal(known)
}

// loadStrict refuses a profile that has a last good endpoint and nothing about it, as those of long ago do.
func loadStrict(data []byte, policy memory.Policy) (*memory.Profile, error) {
	p, err := memory.DecodeProfile(data, policy)
	if err != nil {
		return nil, err
	}
	if k := p.Memory.LastGood(); k != "" && !slices.Contains(p.Memory.Keys(), k) {
		return nil, fmt.Errorf("profile: nothing is known about its last good endpoint %q", k)
	}
	return p, nil
}

// handshakeMutants are about the way through the relay.
func handshakeMutants() []mutant {
	return []mutant{
		changed("accepted-does-not-extend", "accepted leaves the deadline as it is", func(s *Subject) { s.Handshake.Extends = false }, "TR-1", "TR-3", "TR-4"),
		changed("ready-window-as-race", "a half-open relay has as long as the race", func(s *Subject) { s.Handshake.ReadyWindow = race.Budget }, "TR-4"),
		changed("early-ready-taken", "ready counts before accepted", func(s *Subject) { s.Handshake.InOrder = false }, "TR-6"),
		changed("legacy-always", "every time-out is followed by a legacy redial", func(s *Subject) {
			s.Handshake.Redials = func(bool, bool) bool { return true }
		}, "TR-4", "TR-5"),
		changed("legacy-never", "no time-out is followed by a legacy redial", func(s *Subject) {
			s.Handshake.Redials = func(bool, bool) bool { return false }
		}, "TR-5"),
		changed("token-after-open", "the token is fetched when the hello is built", func(s *Subject) { s.Handshake.TokenWithOpen = false }, "TR-3"),
		changed("no-registry", "dials to one machine do not know of each other", func(s *Subject) { s.SingleFlight = false }, "TR-15", "TR-19"),
		changed("registry-without-token", "any release frees a dial", func(s *Subject) { s.TrustingRegistry = true }, "TR-19"),
	}
}

// roamMutants are about the live connection.
func roamMutants() []mutant {
	return []mutant{
		changed("flapping-counts", "a path that becomes expensive or constrained has changed", func(s *Subject) {
			s.Roam.Changes = func(before, after route.Path) bool {
				return !before.SameInterfaces(after) || before.Expensive != after.Expensive || before.Constrained != after.Constrained
			}
		}, "TR-7"),
		changed("changes-ignored", "interfaces may change as they like", func(s *Subject) {
			s.Roam.Changes = func(route.Path, route.Path) bool { return false }
		}, "TR-8", "TR-10", "TR-11", "TR-12", "TR-13", "TR-13-dead", "TR-25", "TR-27-changed", "TR-27-floor", "TR-27-lately", "TR-27-no-path"),
		changed("roams-without-connection", "what is not live is decided all the same", func(s *Subject) {
			s.Roam.Applies = func(in roam.Input) bool { return in.Satisfied }
		}, "TR-27-not-live"),
		changed("roams-without-path", "a race begins although no path is satisfied", func(s *Subject) {
			s.Roam.Applies = func(in roam.Input) bool { return in.Live }
		}, "TR-27-no-path"),
		changed("no-debounce", "each path update is decided at once", func(s *Subject) { s.Roam.Debounce = 0 }, "TR-11"),
		changed("no-floor", "a roam may follow a roam at once", func(s *Subject) { s.Roam.Floor = 0 }, "TR-11", "TR-27-floor"),
		changed("no-re-arm", "a change held back by the floor is lost", func(s *Subject) { s.Roam.Rearms = false }, "TR-11", "TR-27-floor"),
		changed("standing-fact", "a saved tailnet route counts as observed", func(s *Subject) {
			s.Roam.Best = func(o roam.Observed) route.Class {
				if o.TailnetRoute {
					return min(route.Tailnet, roam.Best(o))
				}
				return roam.Best(o)
			}
		}, "TR-7", "TR-27-standing"),
		changed("probe-without-age", "a young connection is probed", func(s *Subject) { s.Roam.MinAge = 0 }, "TR-9", "TR-27-young"),
		changed("probe-without-interval", "probes follow at once", func(s *Subject) { s.Roam.Interval = 0 }, "TR-9", "TR-27-lately"),
		changed("probe-any-class", "a probe does not ask for a better class", func(s *Subject) {
			s.Roam.Better = func(best, current route.Class) bool { return best != route.Unknown && current != route.Unknown }
		}, "TR-7", "TR-9", "TR-27-no-better", "TR-27-probe", "TR-27-standing"),
		changed("unknown-is-better", "a class that is not known counts as better than any", func(s *Subject) {
			s.Roam.Better = func(best, current route.Class) bool { return best < current }
		}, "TR-27-unknown"),
		changed("break-before-make", "the live connection is closed before the race", func(s *Subject) { s.Roam.Breaks = true }, "TR-8", "TR-9", "TR-11", "TR-12", "TR-13", "TR-13-dead", "TR-25"),
		changed("same-endpoint-swaps", "a win on the endpoint in use replaces the live connection", func(s *Subject) { s.Roam.KeepsSame = false }, "TR-13", "TR-13-dead"),
		changed("unproved", "the live connection is kept without a sign of life", func(s *Subject) { s.Roam.Proves = false }, "TR-13-dead"),
		changed("ladder-never-grows", "an attempt every second, for ever", func(s *Subject) {
			s.Roam.Rungs = slices.Repeat([]time.Duration{time.Second}, 20)
		}, "TR-26"),
		changed("ladder-without-beat", "every 16 s, for ever", func(s *Subject) {
			s.Roam.Rungs = append(slices.Clone(s.Roam.Rungs), slices.Repeat([]time.Duration{16 * time.Second}, 20)...)
		}, "TR-26"),
		changed("ladder-never-resets", "a stable connection changes nothing", func(s *Subject) { s.Roam.Stable = math.MaxInt64 }, "TR-26"),
		changed("ladder-resets-at-once", "any connection resets the ladder", func(s *Subject) { s.Roam.Stable = 0 }, "TR-26"),
	}
}
