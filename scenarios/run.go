package scenarios

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-5a7f77c4/deadair/clock"
	"github.com/seed-5a7f77c4/deadair/netsim"
)

// An Outcome is what came of one run of a scenario.
type Outcome struct {
	ID       string
	Title    string
	Seed     uint64
	Failures []string       // nothing failed if there are none
	Virtual  time.Duration  // how long the story took
	Real     time.Duration  // how long one had to wait for it
	Hash     string         // the trace's
	Trace    *netsim.Trace  // nil if the network could not be made
	Figures  map[string]any // what the story kept with Play.Figure
}

// Passed reports whether nothing failed.
func (o Outcome) Passed() bool { return len(o.Failures) == 0 }

// Err is the failures as one error, nil if there are none.
func (o Outcome) Err() error {
	if o.Passed() {
		return nil
	}
	return fmt.Errorf("%s, seed %#x: %s", o.ID, o.Seed, strings.Join(o.Failures, "\n"))
}

// Require fails the test unless the outcome is a success, and shows the end of
// the trace.
func (o Outcome) Require(t testing.TB) {
	t.Helper()
	if err := o.Err(); err != nil {
		t.Fatalf("%v\nto replay: %s\n%s", err, clock.Replay(t.Name(), o.Seed), o.Tail(tailShown))
	}
}

// tailShown is how many lines of a trace a failure shows.
const tailShown = 30

// Tail is the end of the trace as text, see [netsim.Trace.Summary].
func (o Outcome) Tail(lines int) string {
	if o.Trace == nil {
		return ""
	}
	return o.Trace.Summary(lines)
}

// An Option sets something for one run.
type Option func(*runConfig)

type runConfig struct {
	seed    uint64
	seeded  bool
	network []netsim.Option
}

// Seed is what all of the run's randomness comes from. Default: the
// environment's DEADAIR_SEED, or 1.
func Seed(seed uint64) Option {
	return func(c *runConfig) { c.seed, c.seeded = seed, true }
}

// Network adds options to the network's, after the scenario's own.
func Network(opts ...netsim.Option) Option {
	return func(c *runConfig) { c.network = append(c.network, opts...) }
}

// Run plays a scenario with a subject, in a bubble of its own. Whatever goes
// wrong is in the outcome; t is needed because a bubble needs a test, and is
// left alone. Many goroutines may call Run at once.
func Run[S any](t *testing.T, sc Scenario[S], subject S, opts ...Option) Outcome {
	t.Helper()
	o := Outcome{ID: sc.ID, Title: sc.Title, Figures: map[string]any{}}
	var c runConfig
	for _, opt := range opts {
		opt(&c)
	}
	if !c.seeded {
		seed, err := clock.DefaultSeed()
		if err != nil {
			o.Failures = []string{err.Error()}
			return o
		}
		c.seed = seed
	}
	o.Seed = c.seed
	if err := sc.Validate(); err != nil {
		o.Failures = []string{err.Error()}
		return o
	}
	if missing(subject) {
		o.Failures = []string{fmt.Sprintf("scenarios: Run of %s: there is no subject (%T is nil)", sc.ID, subject)}
		return o
	}
	budget := sc.Budget
	if budget == 0 {
		budget = DefaultBudget
	}
	network := append([]netsim.Option{}, sc.Network...)
	network = append(network, c.network...)
	network = append(network, netsim.Seed(c.seed), netsim.Clock(clock.Budget(budget)))
	p := &Play{Seed: c.seed, figures: map[string]any{}}
	began := time.Now()
	// Atomic, because a bubble whose time stands still is left behind with the story in it.
	var trace atomic.Pointer[netsim.Trace]
	var virtual atomic.Int64
	err := netsim.Bubble(t, func(t *testing.T, n *netsim.Network) {
		p.t, p.Net, p.start = t, n, time.Now()
		trace.Store(n.Trace())
		defer func() { virtual.Store(int64(p.Elapsed())) }()
		sc.Play(p, subject)
	}, network...)
	o.Trace, o.Virtual = trace.Load(), time.Duration(virtual.Load())
	o.Real = time.Since(began)
	p.mu.Lock()
	defer p.mu.Unlock()
	o.Failures = append(o.Failures, p.failures...)
	if err != nil && !(errors.Is(err, clock.ErrFailed) && len(p.failures) > 0) {
		o.Failures = append(o.Failures, err.Error())
	}
	maps.Copy(o.Figures, p.figures)
	if o.Trace != nil {
		o.Hash = o.Trace.Hash()
	}
	return o
}
