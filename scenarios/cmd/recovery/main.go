// Recovery measures how soon the app gets away from a proxy that has gone
// silent: the agent as it was, as it is, and with each variant, over many seeds.
// It writes a table and two plots, with what was observed in the field on them.
//
//	go run ./scenarios/cmd/recovery -page docs/private-routing.md # 10 000 seeds each, plots in docs/img
//	go run ./scenarios/cmd/recovery -seeds 200 -dir ''           # the table alone, in seconds
//	go run ./scenarios/cmd/recovery -only 'reply, fixed' -dir '' # PR-4 alone
//
// A sweep can be spread over machines. Each of them runs its shard and keeps the
// samples as JSON lines; the last one merges them:
//
//	TEST_TOTAL_SHARDS=2 TEST_SHARD_INDEX=0 recovery -samples 0.jsonl -dir ''
//	TEST_TOTAL_SHARDS=2 TEST_SHARD_INDEX=1 recovery -samples 1.jsonl -dir ''
//	recovery -merge -dir docs/img 0.jsonl 1.jsonl
//
// In a Kubernetes Indexed Job the index comes from JOB_COMPLETION_INDEX, and
// -jobs says how many there are. It exits with 1 when a trial fails.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-5a7f77c4/deadair/clock"
	"github.com/seed-5a7f77c4/deadair/scenarios"
	"github.com/seed-5a7f77c4/deadair/scenarios/privaterouting"
)

type config struct {
	seeds   int
	first   uint64
	jobs    int
	tls     bool
	merge   bool
	dir     string
	samples string
	page    string
	only    string
	files   []string
}

func main() {
	var c config
	flag.IntVar(&c.seeds, "seeds", 10_000, "how many seeds for each agent, in all shards together")
	flag.Uint64Var(&c.first, "first", 1, "the first seed")
	flag.IntVar(&c.jobs, "jobs", 0, "how many jobs there are, where JOB_COMPLETION_INDEX says which one this is")
	flag.BoolVar(&c.tls, "tls", false, "with TLS, as the stories have it; without it the times are the same to a few hundredths of a second")
	flag.BoolVar(&c.merge, "merge", false, "run nothing: merge the files of samples that are named")
	flag.StringVar(&c.dir, "dir", "docs/img", "folder for the plots; none if empty")
	flag.StringVar(&c.page, "page", "", "page whose tables are replaced, between the marks <!-- reply -->, <!-- join --> and <!-- end -->")
	flag.StringVar(&c.only, "only", "", "run only what has this text in its name, such as 'reply, fixed' for PR-4; needs -dir ''")
	flag.StringVar(&c.samples, "samples", "", "file for the samples as JSON lines")
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), "recovery measures how soon the app gets away from a silent proxy.\n\nFlags:\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	c.files = flag.Args()
	if err := c.check(); err != nil {
		fmt.Fprintf(os.Stderr, "recovery: %v\n", err)
		os.Exit(2)
	}
	clock.Main(func(t *testing.T) {
		if err := c.run(t, os.Stdout, os.Stderr); err != nil {
			fmt.Fprintf(os.Stderr, "recovery: %v\n", err)
			t.Fail()
		}
	})
}

func (c config) check() error {
	switch {
	case c.merge && len(c.files) == 0:
		return fmt.Errorf("-merge names no files of samples")
	case !c.merge && len(c.files) > 0:
		return fmt.Errorf("what is %q? Files are only for -merge", c.files[0])
	case c.only != "" && (c.dir != "" || c.page != ""):
		return fmt.Errorf("-only %q and -dir %q, -page %q: a part would take the place of the whole", c.only, c.dir, c.page)
	case c.seeds < 1:
		return fmt.Errorf("-seeds %d: at least 1", c.seeds)
	}
	return nil
}

func (c config) run(t *testing.T, out, progress io.Writer) error {
	began := time.Now()
	samples, err := c.collect(t, progress)
	if err != nil {
		return err
	}
	if c.samples != "" {
		if err := save(c.samples, samples); err != nil {
			return err
		}
	}
	failed := 0
	for _, s := range samples {
		if len(s.Failures) > 0 {
			failed++
			fmt.Fprintf(progress, "%s fails with seed %d: %s\n  to replay: go run ./scenarios/cmd/recovery -dir '' -seeds 1 -first %d -tls=%v\n",
				s.Scenario, s.Seed, s.Failures[0], s.Seed, c.tls)
		}
	}
	replies, joins := results(samples)
	fmt.Fprintf(out, "%s\n%s", replyTable(replies), joinTable(joins))
	fmt.Fprintf(progress, "%d trials in %v\n", len(samples), time.Since(began).Round(100*time.Millisecond))
	if c.dir != "" {
		seenReplies, seenJoins := privaterouting.Observed()
		for name, svg := range map[string]string{
			"recovery-reply.svg": replyPlot(replies, seenReplies),
			"recovery-join.svg":  joinPlot(joins, seenJoins),
		} {
			if err := os.WriteFile(filepath.Join(c.dir, name), []byte(svg), 0o644); err != nil {
				return err
			}
		}
	}
	if c.page != "" {
		if err := c.rewrite(replyTable(replies), joinTable(joins)); err != nil {
			return fmt.Errorf("-page %s: %w", c.page, err)
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d trials failed", failed, len(samples))
	}
	return nil
}

// rewrite puts the tables into the page.
func (c config) rewrite(reply, join string) error {
	page, err := os.ReadFile(c.page)
	if err != nil {
		return err
	}
	text, err := replaced(string(page), "reply", reply)
	if err != nil {
		return err
	}
	if text, err = replaced(text, "join", join); err != nil {
		return err
	}
	return os.WriteFile(c.page, []byte(text), 0o644)
}

// collect runs the sweeps, or reads what they left.
func (c config) collect(t *testing.T, progress io.Writer) ([]scenarios.Sample, error) {
	var parts [][]scenarios.Sample
	for _, name := range c.files {
		part, err := load(name)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	if c.merge {
		return scenarios.Merge(parts...)
	}
	shard, err := scenarios.ShardFromEnv(c.jobs)
	if err != nil {
		return nil, err
	}
	options := scenarios.SweepOptions{First: c.first, Count: c.seeds, Shard: shard}
	for _, l := range privaterouting.Lines() {
		for _, sc := range []scenarios.Scenario[privaterouting.Subject]{
			privaterouting.Reply(l.Name, !c.tls), privaterouting.Join(l.Name, !c.tls),
		} {
			if !strings.Contains(sc.ID, c.only) {
				continue
			}
			began := time.Now()
			part, err := scenarios.Sweep(t, sc, l.Subject, options)
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(progress, "%-30s %6d trials in %v\n", sc.ID, len(part), time.Since(began).Round(time.Millisecond))
			parts = append(parts, part)
		}
	}
	if len(parts) == 0 {
		return nil, fmt.Errorf("-only %q: nothing has that in its name", c.only)
	}
	return scenarios.Merge(parts...)
}

func save(name string, samples []scenarios.Sample) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	if err := scenarios.WriteSamples(f, samples); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

func load(name string) ([]scenarios.Sample, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	samples, err := scenarios.ReadSamples(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return samples, nil
}
