// Package scenarios turns stories about a network into values that can be run,
// swept over seeds, and proved by mutants.
//
// A [Scenario] says who is there, what breaks when and what must come of it. Its
// subject is the client under test: one of ours, or the importer's own.
//
//	var leaves = scenarios.Scenario[Dialing]{
//		ID:    "MINE-1",
//		Title: "the proxy goes silent, the client leaves it",
//		Play: func(p *scenarios.Play, client Dialing) {
//			app, proxy := p.Net.Host("app"), p.Net.Host("proxy")
//			p.Net.Link(app, proxy).Cut()
//			require.NoError(p, client.Send(p.Context(), app.DialContext))
//			require.Less(p, p.Elapsed(), 90*time.Second)
//		},
//	}
//
//	outcome := scenarios.Run(t, leaves, mine)
//	outcome.Require(t)
//
// [Run] gives an [Outcome] and never fails the test by itself: that a scenario
// fails is what one wants to see of a mutant.
package scenarios

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/seed-5a7f77c4/deadair/netsim"
)

// A Scenario is a story about a network with a subject of type S in it.
type Scenario[S any] struct {
	ID       string   // such as "PR-4": names the specs, and what kills a mutant
	Title    string   // the story in a line
	Observed string   // where it was observed in the field, if it was
	Labels   []string // for selecting specs

	// Network are the network's options; its seed is the run's.
	Network []netsim.Option
	// Budget is the virtual time that the story may take. Default: 24 h.
	Budget time.Duration
	// Play builds the world, plays the script and checks what comes of it.
	Play func(p *Play, subject S)
}

// DefaultBudget is the virtual time that a story may take which says nothing.
const DefaultBudget = 24 * time.Hour

// Validate says what keeps the scenario from running.
func (sc Scenario[S]) Validate() error {
	switch {
	case sc.ID == "":
		return fmt.Errorf("scenarios: the scenario %q has no ID", sc.Title)
	case sc.Play == nil:
		return fmt.Errorf("scenarios: %s has no Play", sc.ID)
	case sc.Budget < 0:
		return fmt.Errorf("scenarios: %s has a negative budget, %v", sc.ID, sc.Budget)
	}
	return nil
}

// ValidateSet checks scenarios that are to be used together: each by itself, and
// that no two have one ID.
func ValidateSet[S any](set []Scenario[S]) error {
	var errs []error
	seen := map[string]bool{}
	for _, sc := range set {
		if err := sc.Validate(); err != nil {
			errs = append(errs, err)
		}
		if seen[sc.ID] {
			errs = append(errs, fmt.Errorf("scenarios: two scenarios have the ID %s", sc.ID))
		}
		seen[sc.ID] = true
	}
	return errors.Join(errs...)
}

// missing reports whether a subject is none: nil, whatever its type.
func missing(subject any) bool {
	if subject == nil {
		return true
	}
	switch v := reflect.ValueOf(subject); v.Kind() {
	case reflect.Func, reflect.Pointer, reflect.Map, reflect.Slice, reflect.Chan, reflect.Interface:
		return v.IsNil()
	}
	return false
}
