package roam

import (
	"time"

	"github.com/seed-5a7f77c4/deadair/selection/route"
)

// The times of roaming.
const (
	Floor    = 3 * time.Second        // between a roam and a path change
	Debounce = 250 * time.Millisecond // from the last of a burst of path updates
	MinAge   = 10 * time.Second       // of a connection that is probed for a better class
	Interval = 300 * time.Second      // between a roam and an upgrade probe
	Proof    = 2 * time.Second        // for a live connection to prove that it is alive
)

// Decision is what to do about a live connection.
type Decision uint8

// The decisions.
const (
	// None leaves the connection alone.
	None Decision = iota
	// PathChange races every route now.
	PathChange
	// UpgradeProbe races the routes of strictly better classes.
	UpgradeProbe
)

func (d Decision) String() string { return [...]string{"none", "path change", "upgrade probe"}[d] }

// Input is what a decision looks at.
type Input struct {
	// Live says that there is a connection that works as far as anyone knows.
	Live bool
	// Satisfied says that the phone has a network, Changed that its interfaces have changed since the last race.
	Satisfied, Changed bool
	// Current is the class in use, Best the best class that is observed.
	Current, Best route.Class
	// Age of the connection; 0 when not known.
	Age time.Duration
	// SinceRoam is the time since the last roam of any kind; nil when there was none.
	SinceRoam *time.Duration
}

// Policy holds the rules of roaming: take DefaultPolicy and change what differs. A time of 0 is no wait.
type Policy struct {
	// Floor, Debounce, MinAge, Interval and Proof default to the constants of the same names.
	Floor, Debounce, MinAge, Interval, Proof time.Duration
	// Applies reports whether there is anything to decide. Default: live and satisfied.
	Applies func(Input) bool
	// Better reports whether a class is worth a probe. Default: strictly better, both known.
	Better func(best, current route.Class) bool
	// Best gives the best class that is observed. Default: Best.
	Best func(Observed) route.Class
	// Changes reports whether two paths differ in their interfaces. Default: not route.Path.SameInterfaces.
	Changes func(before, after route.Path) bool
	// Rearms says that a path change held back by the floor is decided again at its end. Default true.
	Rearms bool
	// Breaks says that a roam closes the live connection before it races. Default false.
	Breaks bool
	// KeepsSame says that a win on the endpoint in use keeps the live connection. Default true.
	KeepsSame bool
	// Proves says that after a change of interfaces the live connection must prove alive to be kept. Default true.
	Proves bool
	// Supersedes says that a race which a newer one has replaced is void, whoever wins it. Default true.
	Supersedes bool
	// Rungs are the waits of the reconnect ladder, Stable the age from which a connection resets it. Default: Rungs, Stable.
	Rungs  []time.Duration
	Stable time.Duration
}

// DefaultPolicy gives the rules as they should be.
func DefaultPolicy() Policy {
	return Policy{
		Floor: Floor, Debounce: Debounce, MinAge: MinAge, Interval: Interval, Proof: Proof,
		Applies: func(in Input) bool { return in.Live && in.Satisfied },
		Better:  func(best, current route.Class) bool { return best.Better(current) },
		Best:    Best,
		Changes: func(before, after route.Path) bool { return !before.SameInterfaces(after) },
		Rearms:  true, KeepsSame: true, Proves: true, Supersedes: true,
		Rungs: Rungs, Stable: Stable,
	}
}

// Decide is the decision table, top down. The second result is the time after which to decide again, 0 for none.
func Decide(in Input, p Policy) (Decision, time.Duration) {
	since := func(d time.Duration) bool { return in.SinceRoam == nil || *in.SinceRoam >= d }
	switch {
	case !p.Applies(in):
		return None, 0
	case in.Changed && since(p.Floor):
		return PathChange, 0
	case in.Changed && p.Rearms:
		return None, p.Floor - *in.SinceRoam
	case in.Changed:
		return None, 0
	case !p.Better(in.Best, in.Current), in.Age < p.MinAge, !since(p.Interval):
		return None, 0
	}
	return UpgradeProbe, 0
}

// Observed is what there is to see of the routes now; saved facts alone are no observation.
type Observed struct {
	Path route.Path
	// Discovered says that discovery sees the machine on this network now.
	Discovered bool
	// TailnetRoute says that the profile has a tailnet route, RelayEligible that a relay may be used.
	TailnetRoute, RelayEligible bool
}

// Best is the best class observed: LAN if a local link is up and discovery sees the machine; else Tailnet if the phone
// is in the tailnet and the profile has a route there; else Relay if eligible; else Unknown.
func Best(o Observed) route.Class {
	switch {
	case o.Path.LocalLink() && o.Discovered:
		return route.LAN
	case o.Path.TailnetAddr.IsValid() && o.TailnetRoute:
		return route.Tailnet
	case o.RelayEligible:
		return route.Relay
	}
	return route.Unknown
}
