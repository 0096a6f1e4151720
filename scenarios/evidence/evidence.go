// Package evidence leaves behind what one can look at: the trace as text and as
// JSON lines, as a capture for Wireshark and as a page with the sequence
// diagram.
//
//	outcome := scenarios.Run(t, story, client)
//	if err := evidence.Write(t.ArtifactDir(), outcome); err != nil { … }
//
// A test that runs on a bare network gets the same when it fails, with
//
//	netsim.Run(t, body, evidence.OnFailure())
package evidence

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/seed-5a7f77c4/deadair/clock"
	"github.com/seed-5a7f77c4/deadair/netsim"
	"github.com/seed-5a7f77c4/deadair/netsim/page"
	"github.com/seed-5a7f77c4/deadair/netsim/pcap"
	"github.com/seed-5a7f77c4/deadair/scenarios"
)

// Write puts trace.txt, trace.jsonl, trace.pcapng and trace.html into a folder
// that exists. An outcome without a trace, because the network could not be
// made, is an error.
func Write(dir string, o scenarios.Outcome) error {
	if o.Trace == nil {
		return fmt.Errorf("evidence: Write of %s: the outcome has no trace", o.ID)
	}
	p := page.Page{
		Title: o.ID + " " + o.Title, Seed: o.Seed, Failures: o.Failures,
		Replay: fmt.Sprintf("%s=%#x ginkgo --focus '%s' ./suites/...", clock.SeedVariable, o.Seed, o.ID),
	}
	for _, name := range slices.Sorted(maps.Keys(o.Figures)) {
		p.Figures = append(p.Figures, page.Figure{Name: name, Value: fmt.Sprint(o.Figures[name])})
	}
	return firstOf(
		file(dir, "trace.txt", func(w io.Writer) error { _, err := o.Trace.WriteTo(w); return err }),
		file(dir, "trace.jsonl", o.Trace.WriteJSON),
		capture(dir, o.Trace),
		file(dir, "trace.html", func(w io.Writer) error { return p.Write(w, o.Trace) }),
	)
}

// OnFailure is an option for [netsim.Run]: a test that fails leaves the capture
// and the page beside the trace that it leaves anyway.
func OnFailure() netsim.Option {
	return netsim.Artifacts(func(dir string, n *netsim.Network) error {
		p := page.Page{Title: "a failed test", Seed: n.Seed()}
		return firstOf(
			capture(dir, n.Trace()),
			file(dir, "trace.html", func(w io.Writer) error { return p.Write(w, n.Trace()) }),
		)
	})
}

func capture(dir string, t *netsim.Trace) error {
	return file(dir, "trace.pcapng", func(w io.Writer) error { return pcap.Write(w, t) })
}

// file writes one file and says which one it was that failed.
func file(dir, name string, write func(io.Writer) error) error {
	path := filepath.Join(dir, name)
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("evidence: %w", err)
	}
	if err := write(f); err != nil {
		f.Close()
		return fmt.Errorf("evidence: writing %s: %w", path, err)
	}
	return f.Close()
}

// firstOf is the first error.
func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
