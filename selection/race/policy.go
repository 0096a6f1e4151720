package race

import (
	"time"

	"github.com/seed-5a7f77c4/deadair/selection/rank"
	"github.com/seed-5a7f77c4/deadair/selection/route"
)

// The times of a race, as measured on phones.
const (
	// Stagger is the time between two slots of the first wave.
	Stagger = 250 * time.Millisecond
	// RelayJoin is the least time by which a relay starts behind the first slot, so that a direct route that works
	// wins without a relay being woken.
	RelayJoin = 300 * time.Millisecond
	// Budget is the time of a whole race, up to the application's hello.
	Budget = 10 * time.Second
	// OpenWindow is the time in which a candidate's socket must open.
	OpenWindow = 5 * time.Second
	// Concurrent is the number of candidates under way at once.
	Concurrent = 3
)

// Policy holds the rules of a race: take DefaultPolicy and change what differs. A function that is nil and a figure that is
// not positive have their default; a switch is off when it is false.
type Policy struct {
	// Rank holds the rules of the order.
	Rank rank.Policy
	// Delay gives the start of a slot of the first wave, from the start of the race. Default: Delay.
	Delay func(slot int, class route.Class) time.Duration
	// Rounds parts a plan into races run one after the other. Default: one race.
	Rounds func(Plan) []Plan
	// Blames reports whether an error counts as a failure of the route. Default: route.Blames.
	Blames func(error) bool
	// PullsForward says that a failure starts the next of the first wave at once. Default true.
	PullsForward bool
	// Budget, OpenWindow and Concurrent default to the constants of the same names.
	Budget, OpenWindow time.Duration
	Concurrent         int
}

// DefaultPolicy gives the rules as they should be.
func DefaultPolicy() Policy {
	return Policy{
		Rank:         rank.DefaultPolicy(),
		Delay:        Delay,
		Rounds:       func(p Plan) []Plan { return []Plan{p} },
		Blames:       route.Blames,
		PullsForward: true,
		Budget:       Budget,
		OpenWindow:   OpenWindow,
		Concurrent:   Concurrent,
	}
}

// withDefaults puts the default in the place of what is not set.
func (p Policy) withDefaults() Policy {
	d := DefaultPolicy()
	p.Rank = p.Rank.WithDefaults()
	if p.Delay == nil {
		p.Delay = d.Delay
	}
	if p.Rounds == nil {
		p.Rounds = d.Rounds
	}
	if p.Blames == nil {
		p.Blames = d.Blames
	}
	if p.Budget <= 0 {
		p.Budget = d.Budget
	}
	if p.OpenWindow <= 0 {
		p.OpenWindow = d.OpenWindow
	}
	if p.Concurrent <= 0 {
		p.Concurrent = d.Concurrent
	}
	return p
}

// Delay is slot × Stagger; a relay behind the first slot waits for RelayJoin at least.
func Delay(slot int, class route.Class) time.Duration {
	d := time.Duration(slot) * Stagger
	if class == route.Relay && slot > 0 {
		d = max(d, RelayJoin)
	}
	return d
}
