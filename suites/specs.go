package suites

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/onsi/ginkgo/v2"

	"github.com/seed-5a7f77c4/deadair/clock"
	"github.com/seed-5a7f77c4/deadair/netsim"
	"github.com/seed-5a7f77c4/deadair/scenarios"
)

// tailShown is how many lines of the trace a failed spec shows.
const tailShown = 30

// It is ginkgo.It with a body that runs in a bubble, with a network of its own. Among args may be netsim.Options beside what
// ginkgo.It takes (labels and other decorators).
func It(text string, body func(t *testing.T, n *netsim.Network), args ...any) bool {
	var options []netsim.Option
	var decorators []any
	for _, arg := range args {
		if o, ok := arg.(netsim.Option); ok {
			options = append(options, o)
		} else {
			decorators = append(decorators, arg)
		}
	}
	return ginkgo.It(text, append(decorators, ginkgo.Offset(1), func() {
		var network atomic.Pointer[netsim.Network] // a bubble that stands still is left behind with its body in it
		err := netsim.Bubble(suiteT, func(t *testing.T, n *netsim.Network) {
			network.Store(n)
			body(t, n)
		}, options...)
		failed := ginkgo.CurrentSpecReport().Failed()
		if n := network.Load(); n != nil && (err != nil || failed) {
			attach(n.Trace().Summary(tailShown), n.Seed())
		}
		// A failed expectation has ended the body; that has been reported at its own line.
		if err != nil && !(failed && errors.Is(err, clock.ErrGoexit)) {
			ginkgo.Fail(err.Error())
		}
	})...)
}

// attach puts the end of the trace and the way to replay it into the spec's report.
func attach(tail string, seed uint64) {
	ginkgo.AddReportEntry("the end of the trace", tail, ginkgo.ReportEntryVisibilityFailureOrVerbose)
	ginkgo.AddReportEntry("replay", fmt.Sprintf("%s with -ginkgo.focus to pick the spec", clock.Replay(suiteT.Name(), seed)),
		ginkgo.ReportEntryVisibilityFailureOrVerbose)
}

// Specs makes a spec of each scenario: its text is the ID and the title, its labels are the scenario's. It panics if the
// set is not valid, as Ginkgo does for mistakes in the tree of specs.
func Specs[S any](set []scenarios.Scenario[S], subject func() S, decorators ...any) {
	each(set, "", decorators, func(sc scenarios.Scenario[S]) {
		o := scenarios.Run(suiteT, sc, subject())
		if err := o.Err(); err != nil {
			attach(o.Tail(tailShown), o.Seed)
			ginkgo.Fail(err.Error())
		}
	})
}

// OldSpecs makes a spec of each scenario that passes if the old subject, the unfixed behaviour, fails the story. They have
// the label "old" beside the scenario's.
func OldSpecs[S any](set []scenarios.Scenario[S], old func() S, decorators ...any) {
	each(set, ", old behaviour: must fail", append(decorators, ginkgo.Label("old")), func(sc scenarios.Scenario[S]) {
		if o := scenarios.Run(suiteT, sc, old()); o.Passed() {
			attach(o.Tail(tailShown), o.Seed)
			ginkgo.Fail(fmt.Sprintf("%s passes with the old behaviour: it does not show what was fixed", sc.ID))
		}
	})
}

func each[S any](set []scenarios.Scenario[S], suffix string, decorators []any, play func(scenarios.Scenario[S])) {
	if err := scenarios.ValidateSet(set); err != nil {
		panic(err)
	}
	for _, sc := range set {
		args := append([]any{ginkgo.Label(sc.Labels...)}, decorators...)
		ginkgo.It(sc.ID+" "+sc.Title+suffix, append(args, func() { play(sc) })...)
	}
}
