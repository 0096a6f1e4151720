package netsim

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-5a7f77c4/deadair/clock"
	"github.com/seed-5a7f77c4/deadair/netsim/dnsserver"
)

// Run calls f with a new network inside a bubble, in which plain package time is
// virtual for all code: minutes pass in microseconds. When f returns the
// network is closed, inside the bubble. An f that has not returned after a week
// of virtual time ([DefaultBudget]) fails; Clock(clock.Budget(…)) sets another
// time. A failed test shows the end of the trace, the seed and the command that
// replays it, and leaves the trace in the test's artifact folder (go test
// -artifacts).
func Run(t *testing.T, f func(t *testing.T, n *Network), opts ...Option) {
	t.Helper()
	o := configure(opts)
	defer o.pin()()
	dnsserver.Prime()
	clock.Run(t, func(t *testing.T) {
		n := New(opts...)
		t.Cleanup(func() {
			if err := n.Close(); err != nil && t.Failed() {
				t.Log(err) // it may be the reason
			} else if err != nil {
				t.Error(err)
			}
			if t.Failed() {
				n.showFailure(t)
			}
		})
		f(t, n)
	}, o.clock...)
}

// Bubble is Run for callers that take what went wrong as an error: see
// [clock.Bubble]. It shows nothing and writes no files.
func Bubble(t *testing.T, f func(t *testing.T, n *Network), opts ...Option) error {
	t.Helper()
	o := configure(opts)
	defer o.pin()()
	dnsserver.Prime()
	var missed atomic.Value // of error; a bubble whose time stands still is left behind and may yet end
	err := clock.Bubble(t, func(t *testing.T) {
		n := New(opts...)
		t.Cleanup(func() {
			if err := n.Close(); err != nil {
				missed.Store(err)
			}
		})
		f(t, n)
	}, o.clock...)
	if m, ok := missed.Load().(error); ok {
		return errors.Join(err, m)
	}
	return err
}

// DefaultBudget is the virtual time that a run may take unless it says otherwise.
// Without an end a client that waits for ever over a connection whose keep-alive
// probes are answered would never stop: time moves on.
const DefaultBudget = 7 * 24 * time.Hour

func configure(opts []Option) options {
	o := defaultOptions()
	o.clock = append(o.clock, clock.Budget(DefaultBudget))
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

var pinned sync.Mutex

// pin keeps a strict run on one processor and gives what undoes it.
func (o *options) pin() func() {
	if !o.strict {
		return func() {}
	}
	pinned.Lock()
	before := runtime.GOMAXPROCS(1)
	return func() {
		runtime.GOMAXPROCS(before)
		pinned.Unlock()
	}
}

const tailShown = 30

func (n *Network) showFailure(t *testing.T) {
	t.Logf("the end of the trace (%d events, hash %s; go test -artifacts keeps all of it):\n%s",
		n.trace.Len(), n.trace.Hash(), n.trace.Summary(tailShown))
	dir := t.ArtifactDir()
	if err := n.writeArtifacts(dir); err != nil {
		t.Logf("netsim: writing artifacts to %s: %v", dir, err)
	}
}

func (n *Network) writeArtifacts(dir string) error {
	text, err := os.Create(filepath.Join(dir, "trace.txt"))
	if err != nil {
		return err
	}
	defer text.Close()
	if _, err := n.trace.WriteTo(text); err != nil {
		return err
	}
	lines, err := os.Create(filepath.Join(dir, "trace.jsonl"))
	if err != nil {
		return err
	}
	defer lines.Close()
	if err := n.trace.WriteJSON(lines); err != nil {
		return err
	}
	for _, write := range n.opts.artifacts {
		if err := write(dir, n); err != nil {
			return err
		}
	}
	return nil
}

// CheckReplay runs f again and again, each time with a new network in a bubble
// of its own, and fails the test at the first event at which two traces part.
func CheckReplay(t *testing.T, times int, f func(t *testing.T, n *Network), opts ...Option) {
	t.Helper()
	if times < 2 {
		t.Fatalf("netsim: CheckReplay(%d): two runs at least", times)
	}
	var first []Event
	var hash string
	for i := range times {
		var n *Network
		Run(t, func(t *testing.T, m *Network) {
			n = m
			f(t, m)
		}, opts...)
		if i == 0 {
			first, hash = n.trace.Events(), n.trace.Hash()
			continue
		}
		if n.trace.Hash() != hash {
			t.Fatalf("run %d of %d parts from run 1 %s", i+1, times, Parting(first, n.trace.Events()))
		}
	}
}

// Parting says at which event two traces part, with what led there.
func Parting(a, b []Event) string {
	i := 0
	for i < len(a) && i < len(b) && a[i].String() == b[i].String() {
		i++
	}
	if i == len(a) && i == len(b) {
		return "beyond what the traces keep"
	}
	line := func(es []Event) string {
		if i < len(es) {
			return es[i].String()
		}
		return "             (no more events)"
	}
	s := fmt.Sprintf("at event %d:\n", i+1)
	for _, e := range a[max(0, i-3):i] {
		s += "  both " + e.String() + "\n"
	}
	return s + "  one  " + line(a) + "\n  two  " + line(b)
}
