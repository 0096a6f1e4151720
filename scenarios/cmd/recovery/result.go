package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

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

// table is the headline of one story as Markdown: the shares that had recovered,
// under the names given. An agent that was not run is left out.
func table(title string, all []result, names []string, shares func(result) []float64) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| %s | trials | %s | median | 95 %% |\n|---|---|%s---|---|\n", title, strings.Join(names, " | "), strings.Repeat("---|", len(names)))
	for _, r := range all {
		if r.trials == 0 {
			continue
		}
		fmt.Fprintf(&b, "| %s | %d |", r.name, r.trials)
		for _, share := range shares(r) {
			fmt.Fprintf(&b, " %.1f %% |", 100*share)
		}
		fmt.Fprintf(&b, " %s | %s |\n", seconds(r.quantile(r.after, 0.5)), seconds(r.quantile(r.after, 0.95)))
	}
	return b.String()
}

func replyTable(all []result) string {
	return table("a reply in the background", all, []string{"within 70 s", "within 135 s", "within 300 s", "within 600 s"}, func(r result) []float64 {
		return []float64{r.share(r.after, 70), r.share(r.after, 135), r.share(r.after, 300), r.share(r.after, 600)}
	})
}

func joinTable(all []result) string {
	return table("the user taps Retry", all, []string{"by Retry 2", "by Retry 3", "by Retry 4", "by Retry 6", "by Retry 14"}, func(r result) []float64 {
		return []float64{r.share(r.retry, 2), r.share(r.retry, 3), r.share(r.retry, 4), r.share(r.retry, 6), r.share(r.retry, 14)}
	})
}

// replaced is a page with a table put in the place of what is between the marks
// <!-- name --> and <!-- end -->, each on a line of its own.
func replaced(page, name, table string) (string, error) {
	const end = "<!-- end -->\n"
	begin := "<!-- " + name + " -->\n"
	head, rest, ok := strings.Cut(page, begin)
	_, tail, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return "", fmt.Errorf("there is no place for the table between the lines %q and %q", begin, end)
	}
	return head + begin + table + end + tail, nil
}

func seconds(v float64) string {
	if math.IsNaN(v) {
		return "–"
	}
	return fmt.Sprintf("%.1f s", v)
}
