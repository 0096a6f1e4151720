// Deadair plays the main job: a proxy goes silent, and the app gets away from
// it. Each story is played twice in virtual time, by the agent as it is and by
// the agent as it was, over real TLS and a real SOCKS relay, and the end of one
// trace is shown.
//
//	go run ./scenarios/cmd/deadair
//	go run ./scenarios/cmd/deadair -seed 7 -out out   # leaves what one can look at
//
// It exits with 1 when something does not come out as documented.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-5a7f77c4/deadair/clock"
	"github.com/seed-5a7f77c4/deadair/scenarios"
	"github.com/seed-5a7f77c4/deadair/scenarios/evidence"
	"github.com/seed-5a7f77c4/deadair/scenarios/privaterouting"
)

// shown are the stories of the main job.
var shown = []string{"PR-1", "PR-1-silent", "PR-2", "PR-3", "PR-4", "PR-5", "PR-12", "PR-13"}

const traced = "PR-4"

func main() {
	seed := flag.Uint64("seed", 1, "what all randomness comes from")
	out := flag.String("out", "", "folder for the trace of "+traced+" as text, JSON lines, capture and page")
	lines := flag.Int("lines", 16, "how many lines of the trace to show")
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), "deadair plays the main job: a proxy goes silent, and the app gets away from it.\n\nFlags:\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "deadair: what is %q? There are only flags: see -help\n", flag.Arg(0))
		os.Exit(2)
	}
	clock.Main(func(t *testing.T) {
		d := &demo{out: os.Stdout, ink: terminal(os.Stdout), seed: *seed, lines: *lines, folder: *out}
		if !d.play(t) {
			t.Fail()
		}
	})
}

// terminal reports whether somebody is looking, in colour.
func terminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("NO_COLOR") == ""
}

type demo struct {
	out    io.Writer
	ink    bool
	seed   uint64
	lines  int
	folder string
}

// row is one story, played by the agent as it is and as it was.
type row struct {
	story         scenarios.Scenario[privaterouting.Subject]
	fixed, before scenarios.Outcome
	differs       bool // the agent as it was is documented to fail
}

func (r row) asDocumented() bool { return r.fixed.Passed() && r.before.Passed() != r.differs }

func (d *demo) play(t *testing.T) bool {
	old, ok := mutant("old")
	if !ok {
		fmt.Fprintln(d.out, "deadair: there is no mutant named old")
		return false
	}
	d.printf("%s\n\n", d.bold("A proxy goes silent, and the app gets away from it."))
	d.printf("The app reaches the relay R through a proxy: P1 or P2. A SOCKS relay on P1's way to R passes every\n" +
		"handshake and then swallows every byte. Nobody gets an error; P1 goes on promising sessions.\n\n")
	began := time.Now()
	var rows []row
	d.printf("%s\n", d.dim(fmt.Sprintf("%-11s %-52s  %-28s  %s", "story", "", "the agent as it is", "as it was")))
	for _, id := range shown {
		sc, ok := story(id)
		if !ok {
			d.printf("deadair: there is no story %s\n", id)
			return false
		}
		r := row{story: sc, differs: slices.Contains(old.Kills, sc.ID)}
		r.fixed = scenarios.Run(t, sc, privaterouting.Ours(), scenarios.Seed(d.seed))
		r.before = scenarios.Run(t, sc, old.Apply(privaterouting.Ours()), scenarios.Seed(d.seed))
		rows = append(rows, r)
		d.row(r)
	}
	var virtual time.Duration
	good := true
	for _, r := range rows {
		virtual += r.fixed.Virtual + r.before.Virtual
		good = good && r.asDocumented()
	}
	d.printf("\n%s of virtual time in %s of yours.\n", virtual.Round(time.Second), d.bold(time.Since(began).Round(time.Millisecond).String()))
	for _, r := range rows {
		if r.story.ID == traced && r.fixed.Trace != nil {
			d.printf("\n%s\n%s", d.bold("The end of "+traced+"'s trace, "+fmt.Sprintf("%d events, seed %d, hash %s", r.fixed.Trace.Len(), d.seed, r.fixed.Hash)), r.fixed.Tail(d.lines))
			good = d.leave(r.fixed) && good
		}
		if !r.asDocumented() {
			d.printf("\n%s is not as documented:\n  as it is: %v\n  as it was: %v\n", r.story.ID, r.fixed.Err(), r.before.Err())
		}
	}
	return good
}

// leave writes the files that one can look at, if they are wanted.
func (d *demo) leave(o scenarios.Outcome) bool {
	if d.folder == "" {
		return true
	}
	err := os.MkdirAll(d.folder, 0o755)
	if err == nil {
		err = evidence.Write(d.folder, o)
	}
	if err != nil {
		d.printf("\ndeadair: %v\n", err)
		return false
	}
	d.printf("\nTo look at: %s\n", filepath.Join(d.folder, "trace.html"))
	return true
}

func (d *demo) row(r row) {
	title := r.story.Title
	if runes := []rune(title); len(runes) > 52 {
		title = string(runes[:51]) + "…"
	}
	d.printf("%-11s %-52s  %s  %s\n", r.story.ID, title, d.cell(r.fixed, true, 28), d.cell(r.before, !r.differs, 0))
}

// cell says what came of a run: in green or red as is documented or not.
func (d *demo) cell(o scenarios.Outcome, pass bool, width int) string {
	mark := "✓"
	if !o.Passed() {
		mark = "✗ not in"
	}
	text := fmt.Sprintf("%s %.1f s in %.1f ms", mark, o.Virtual.Seconds(), float64(o.Real.Microseconds())/1000)
	pad := strings.Repeat(" ", max(0, width-len([]rune(text))))
	switch {
	case o.Passed() != pass:
		return d.paint("1;31", text+" (!)") + pad
	case o.Passed():
		return d.paint("32", text) + pad
	}
	return d.paint("33", text) + pad
}

func story(id string) (scenarios.Scenario[privaterouting.Subject], bool) {
	for _, sc := range privaterouting.Stories() {
		if sc.ID == id {
			return sc, true
		}
	}
	return scenarios.Scenario[privaterouting.Subject]{}, false
}

func mutant(name string) (scenarios.Mutant[privaterouting.Subject], bool) {
	for _, m := range privaterouting.Mutants() {
		if m.Name == name {
			return m, true
		}
	}
	return scenarios.Mutant[privaterouting.Subject]{}, false
}

func (d *demo) printf(format string, args ...any) { fmt.Fprintf(d.out, format, args...) }

func (d *demo) paint(code, s string) string {
	if !d.ink {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (d *demo) bold(s string) string { return d.paint("1", s) }
func (d *demo) dim(s string) string  { return d.paint("2", s) }
