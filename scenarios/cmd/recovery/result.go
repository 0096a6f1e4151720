package main

import (
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/seed-5a7f77c4/deadair/scenarios"
	"github.com/seed-5a7f77c4/deadair/scenarios/privaterouting"
)

// result is what came of one agent in one story.
type result struct {
	name   string
	trials int
	after  []float64 // seconds of those that recovered, sorted
	retry  []float64 // the Retry at which they did, sorted; joins only
}

// share is the part of the trials that had recovered with a value of at most v.
func (r result) share(values []float64, v float64) float64 {
	n, _ := slices.BinarySearchFunc(values, v, func(e, target float64) int {
		if e <= target {
			return -1
		}
		return 1
	})
	return float64(n) / float64(max(r.trials, 1))
}

// results puts the samples in the order of the agents.
func results(samples []scenarios.Sample) (replies, joins []result) {
	byID := map[string][]scenarios.Sample{}
	for _, s := range samples {
		byID[s.Scenario] = append(byID[s.Scenario], s)
	}
	one := func(id, name string) result {
		r := result{name: name, trials: len(byID[id])}
		for _, s := range byID[id] {
			if v, ok := number(s.Figures[privaterouting.RecoveredAfter]); ok {
				r.after = append(r.after, v)
			}
			if v, ok := number(s.Figures[privaterouting.RecoveredRetry]); ok {
				r.retry = append(r.retry, v)
			}
		}
		slices.Sort(r.after)
		slices.Sort(r.retry)
		return r
	}
	for _, l := range privaterouting.Lines() {
		replies = append(replies, one(privaterouting.Reply(l.Name, true).ID, l.Name))
		joins = append(joins, one(privaterouting.Join(l.Name, true).ID, l.Name))
	}
	return replies, joins
}

// number is a figure's value: one read from JSON is a float64 whatever it was.
func number(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case int:
		return float64(v), true
	}
	return 0, false
}

// quantile is the value by which the share q of all trials had recovered; NaN if
// so many never did.
func (r result) quantile(values []float64, q float64) float64 {
	i := int(math.Ceil(q*float64(r.trials))) - 1
	if i < 0 || i >= len(values) {
		return math.NaN()
	}
	return values[i]
}

// table writes the headline as Markdown.
func table(w io.Writer, replies, joins []result) {
	fmt.Fprintf(w, "A reply in the background, P1 broken / P2 good, watched for %.0f s:\n\n", privaterouting.Watched.Seconds())
	fmt.Fprintln(w, "| agent | trials | within 70 s | within 135 s | within 300 s | within 600 s | median | 95 % |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|---|")
	for _, r := range replies {
		fmt.Fprintf(w, "| %s | %d |", r.name, r.trials)
		for _, t := range []float64{70, 135, 300, 600} {
			fmt.Fprintf(w, " %.1f %% |", 100*r.share(r.after, t))
		}
		fmt.Fprintf(w, " %s | %s |\n", seconds(r.quantile(r.after, 0.5)), seconds(r.quantile(r.after, 0.95)))
	}
	fmt.Fprintf(w, "\nThe user taps Retry after each error, %d times at most, one second later:\n\n", privaterouting.Patience)
	fmt.Fprintln(w, "| agent | trials | by Retry 2 | by Retry 3 | by Retry 4 | by Retry 6 | by Retry 14 | median | 95 % |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|---|---|")
	for _, r := range joins {
		fmt.Fprintf(w, "| %s | %d |", r.name, r.trials)
		for _, n := range []float64{2, 3, 4, 6, 14} {
			fmt.Fprintf(w, " %.1f %% |", 100*r.share(r.retry, n))
		}
		fmt.Fprintf(w, " %s | %s |\n", seconds(r.quantile(r.after, 0.5)), seconds(r.quantile(r.after, 0.95)))
	}
}

func seconds(v float64) string {
	if math.IsNaN(v) {
		return "–"
	}
	return fmt.Sprintf("%.1f s", v)
}
