package scenarios

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-5a7f77c4/deadair/clock"
	"github.com/seed-5a7f77c4/deadair/netsim"
)

// A Sample is the outcome of one seed of a sweep, as one line of JSON.
type Sample struct {
	Scenario string         `json:"scenario"`
	Seed     uint64         `json:"seed"`
	Failures []string       `json:"failures,omitempty"`
	Virtual  time.Duration  `json:"virtual_ns"`
	Hash     string         `json:"hash"`
	Figures  map[string]any `json:"figures,omitempty"` // numbers come back from JSON as float64
}

// SweepOptions say which seeds are run. The zero value of a field is its default.
type SweepOptions struct {
	First    uint64    // the first seed; default 1
	Count    int       // how many seeds there are in all shards together; at least 1
	Shard    Shard     // which of them are run; default: all
	Progress io.Writer // default: none
}

// SweepVariable is the environment variable that makes every sweep play one seed alone, and log its failures with the
// end of its trace.
const SweepVariable = "DEADAIR_SWEEP"

// Sweep runs a scenario once for each seed, on all processors, and gives the samples in the order of their seeds. A seed
// that fails is not an error of the sweep: its sample has the failures, and progress gets the command that replays it,
// which sets [SweepVariable].
func Sweep[S any](t *testing.T, sc Scenario[S], subject S, o SweepOptions) ([]Sample, error) {
	t.Helper()
	if err := sc.Validate(); err != nil {
		return nil, err
	}
	if missing(subject) {
		return nil, fmt.Errorf("scenarios: Sweep of %s: there is no subject", sc.ID)
	}
	if o.Count < 1 {
		return nil, fmt.Errorf("scenarios: Sweep of %s over %d seeds: at least 1", sc.ID, o.Count)
	}
	if o.First == 0 {
		o.First = 1
	}
	if err := o.Shard.validate(); err != nil {
		return nil, err
	}
	var seeds []uint64
	for i := range o.Count {
		if o.Shard.has(i) {
			seeds = append(seeds, o.First+uint64(i))
		}
	}
	alone := strings.TrimSpace(os.Getenv(SweepVariable))
	if alone != "" {
		seed, err := strconv.ParseUint(alone, 0, 64)
		if err != nil {
			return nil, fmt.Errorf("scenarios: Sweep of %s: %s=%q is not a seed: %w", sc.ID, SweepVariable, alone, err)
		}
		seeds = []uint64{seed}
	}
	samples := make([]Sample, len(seeds))
	parallel(len(seeds), sc.ID, o.Progress, func(i int) {
		out := Run(t, sc, subject, Seed(seeds[i]))
		samples[i] = Sample{Scenario: out.ID, Seed: out.Seed, Failures: out.Failures, Virtual: out.Virtual, Hash: out.Hash, Figures: out.Figures}
		if err := out.Err(); err != nil && alone != "" {
			t.Logf("%v\n%s", err, out.Tail(tailShown))
		}
	})
	if o.Progress != nil {
		for _, s := range samples {
			if len(s.Failures) > 0 {
				fmt.Fprintf(o.Progress, "%s fails with seed %#x; to replay: %s\n", sc.ID, s.Seed,
					strings.Replace(clock.Replay(t.Name(), s.Seed), clock.SeedVariable, SweepVariable, 1))
			}
		}
	}
	return samples, nil
}

// WriteSamples writes samples as JSON lines.
func WriteSamples(w io.Writer, samples []Sample) error {
	b := bufio.NewWriter(w)
	enc := json.NewEncoder(b)
	for _, s := range samples {
		if err := enc.Encode(s); err != nil {
			return fmt.Errorf("scenarios: sample of seed %#x: %w", s.Seed, err)
		}
	}
	return b.Flush()
}

// ReadSamples reads JSON lines.
func ReadSamples(r io.Reader) ([]Sample, error) {
	var samples []Sample
	dec := json.NewDecoder(r)
	for {
		var s Sample
		switch err := dec.Decode(&s); {
		case errors.Is(err, io.EOF):
			return samples, nil
		case err != nil:
			return nil, fmt.Errorf("scenarios: sample %d: %w", len(samples)+1, err)
		case s.Scenario == "":
			return nil, fmt.Errorf("scenarios: sample %d names no scenario", len(samples)+1)
		}
		samples = append(samples, s)
	}
}

// Merge puts the samples of shards together, ordered by scenario and seed. A seed that is there twice is an error.
func Merge(shards ...[]Sample) ([]Sample, error) {
	all := slices.Concat(shards...)
	slices.SortStableFunc(all, func(a, b Sample) int {
		if a.Scenario != b.Scenario {
			if a.Scenario < b.Scenario {
				return -1
			}
			return 1
		}
		switch {
		case a.Seed < b.Seed:
			return -1
		case a.Seed > b.Seed:
			return 1
		}
		return 0
	})
	for i := 1; i < len(all); i++ {
		if all[i].Scenario == all[i-1].Scenario && all[i].Seed == all[i-1].Seed {
			return nil, fmt.Errorf("scenarios: Merge: %s has the seed %#x twice", all[i].Scenario, all[i].Seed)
		}
	}
	return all, nil
}

// Repeat runs a scenario several times with one seed. It is an error if two traces differ: it shows the first event at
// which they part.
func Repeat[S any](t *testing.T, sc Scenario[S], subject S, times int, opts ...Option) error {
	t.Helper()
	if times < 2 {
		return fmt.Errorf("scenarios: Repeat of %s: %d times are not enough to compare", sc.ID, times)
	}
	first := Run(t, sc, subject, opts...)
	if first.Trace == nil {
		return first.Err()
	}
	for i := 1; i < times; i++ {
		next := Run(t, sc, subject, opts...)
		if next.Trace == nil {
			return next.Err()
		}
		if next.Hash != first.Hash {
			return fmt.Errorf("%s, seed %#x: run %d of %d parts from run 1 %s", sc.ID, first.Seed, i+1, times,
				netsim.Parting(first.Trace.Events(), next.Trace.Events()))
		}
	}
	return nil
}
