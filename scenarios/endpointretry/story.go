package endpointretry

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-5a7f77c4/deadair/scenarios"
)

// Stories are ER-1 … ER-25.
func Stories() []scenarios.Scenario[Subject] {
	var all []scenarios.Scenario[Subject]
	for _, group := range [][]story{sequences(), steadfast(), streams(), multitude(), timelines()} {
		for _, st := range group {
			all = append(all, scenarios.Scenario[Subject]{
				ID:       st.id,
				Title:    st.title,
				Observed: st.observed,
				Labels:   append([]string{"endpoint-retry"}, st.labels...),
				Budget:   2 * time.Hour,
				Play:     st.play,
			})
		}
	}
	slices.SortFunc(all, func(a, b scenarios.Scenario[Subject]) int { return cmp.Compare(number(a.ID), number(b.ID)) })
	return all
}

// number is the 7 of ER-7.
func number(id string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(id, "ER-"))
	if err != nil {
		panic(fmt.Sprintf("endpointretry: no number in %q", id))
	}
	return n
}

// Mutants are our proxy with one rule off or wrong each. The one named "old" is the
// rule that the change replaced.
func Mutants() []scenarios.Mutant[Subject] {
	var all []scenarios.Mutant[Subject]
	for _, m := range mutants() {
		all = append(all, scenarios.Mutant[Subject]{
			Name:  m.name,
			Doc:   m.doc,
			Apply: func(s Subject) Subject { return s.with(m.change) },
			Kills: m.kills,
		})
	}
	return all
}

// story is one documented case: what the world goes through, and what must come of
// it.
type story struct {
	id, title, observed string
	labels              []string
	play                func(p *scenarios.Play, s Subject)
}

const (
	wait     = 100 * time.Millisecond // before another attempt at the same provider
	patience = 10 * time.Second       // the worlds' first-byte timer, where they have one
	tick     = time.Millisecond       // what a round of packets may take
)
