package endpointretry

import (
	"context"
	"slices"
	"time"

	"github.com/seed-5a7f77c4/deadair/selection/failover"
	"github.com/seed-5a7f77c4/deadair/selection/retry"
)

// mutant is a proxy with one rule off or wrong.
type mutant struct {
	name, doc string
	change    func(*failover.Config)
	kills     []string // the stories that must fail, and no others
}

func mutants() []mutant {
	row := func(k retry.Kind, change func(*retry.Row)) func(*failover.Config) {
		return func(c *failover.Config) { change(&c.Policy.Table[k]) }
	}
	return []mutant{
		{"old", "the rule before the change: endpoint = attempt number modulo the list, for every kind of error",
			func(c *failover.Config) {
				c.Policy.Place = func(_, attempt, n int) int { return (max(attempt, 1) - 1) % n }
			}, []string{"ER-2", "ER-6", "ER-8", "ER-9", "ER-10", "ER-11", "ER-12", "ER-15", "ER-16", "ER-18", "ER-20", "ER-22", "ER-24"}},
		{"modulo", "the index wraps around at the end of the list instead of staying there",
			func(c *failover.Config) { c.Policy.Place = func(index, _, n int) int { return index % n } }, []string{"ER-2", "ER-9", "ER-11", "ER-16", "ER-20"}},
		{"provider-error-advances", "a provider error moves on to the next endpoint",
			row(retry.ProviderError, func(r *retry.Row) { r.Advance = true }), []string{"ER-6", "ER-8", "ER-10", "ER-15", "ER-18", "ER-20", "ER-22", "ER-24"}},
		{"system-error-stays", "a system error repeats the same endpoint",
			row(retry.SystemError, func(r *retry.Row) { r.Advance = false }), []string{"ER-1", "ER-2", "ER-3", "ER-6", "ER-7", "ER-9", "ER-10", "ER-16", "ER-17", "ER-20", "ER-21", "ER-22", "ER-25"}},
		{"timeout-stays", "a time-out of the proxy's own repeats the same endpoint",
			row(retry.OwnTimeout, func(r *retry.Row) { r.Advance = false }), []string{"ER-11", "ER-20", "ER-22", "ER-25"}},
		{"advances-without-attempt", "the index moves although no attempt is left",
			func(c *failover.Config) { c.Policy.Moves = func(row retry.Row, _, _ int) bool { return row.Advance } }, []string{"ER-6"}},
		{"no-wait", "no pause before another attempt at the same provider",
			func(c *failover.Config) { c.Policy.Wait = 0 }, []string{"ER-1", "ER-2", "ER-3", "ER-5", "ER-6", "ER-7", "ER-8", "ER-9", "ER-10", "ER-11", "ER-12", "ER-13"}},
		{"deaf-wait", "the pause goes on although the client has left",
			func(c *failover.Config) {
				c.Pause = func(ctx context.Context, d time.Duration) error { time.Sleep(d); return ctx.Err() }
			}, []string{"ER-13"}},
		{"abort-last", "the client's context is looked at last",
			func(c *failover.Config) { c.Policy.Classifier = c.Policy.Classifier.Last("client-abort") }, []string{"ER-13"}},
		{"not-found-is-provider-error", "404 counts as a provider error",
			func(c *failover.Config) {
				c.Policy.Classifier = slices.DeleteFunc(slices.Clone(c.Policy.Classifier), func(r retry.Rule) bool { return r.Name == "not-found" })
			}, []string{"ER-12"}},
		{"provider-counts-attempts", "the provider's breaker counts every attempt",
			row(retry.ProviderError, func(r *retry.Row) { r.Provider = retry.EachAttempt }), []string{"ER-15", "ER-18", "ER-20", "ER-21"}},
		{"endpoint-counts-attempts", "the last endpoint's breaker counts every repetition",
			row(retry.SystemError, func(r *retry.Row) { r.Endpoint = retry.EachAttempt }), []string{"ER-16"}},
		{"endpoint-counts-once", "an endpoint's breaker counts only when the provider is exhausted",
			row(retry.SystemError, func(r *retry.Row) { r.Endpoint = retry.OnExhaustion }), []string{"ER-13", "ER-16", "ER-17", "ER-20", "ER-21", "ER-25"}},
		{"open-time-extended", "a failure while a breaker is open starts its time anew",
			func(c *failover.Config) { c.Policy.EndpointBreaker.Extend = true }, []string{"ER-17"}},
		{"half-open-unlimited", "a half-open breaker admits everybody",
			func(c *failover.Config) { c.Policy.EndpointBreaker.Trials = 1 << 30 }, []string{"ER-25"}},
		{"vendor-by-count", "the vendor's breaker opens after as many time-outs as there are endpoints",
			func(c *failover.Config) {
				c.Policy.VendorOut = func(t *retry.Turn) bool { return t.Timeouts() >= t.Candidates() }
			}, []string{"ER-11", "ER-20"}},
		{"system-error-counts-at-provider", "an unreachable endpoint counts against the provider although that is switched off",
			func(c *failover.Config) { c.Policy.CountSystemErrors() }, []string{"ER-14"}},
		{"broken-stream-uncounted", "a stream that breaks after content counts for nothing",
			row(retry.BrokenStream, func(r *retry.Row) { r.Provider = retry.Never }), []string{"ER-19", "ER-20"}},
		{"selector-always-asked", "no request passes through",
			func(c *failover.Config) { c.PassThrough = nil }, []string{"ER-4"}},
		{"client-fault-retried", "a request that is wrong itself is tried again and elsewhere",
			row(retry.ClientFault, func(r *retry.Row) { r.Retry = true }), []string{"ER-22"}},
		{"binding-outlives", "a conversation sticks for twice the time",
			func(c *failover.Config) { c.Policy.Affinity *= 2 }, []string{"ER-23"}},
		{"binds-on-failure", "a conversation is bound to the provider that has just failed it",
			row(retry.ProviderError, func(r *retry.Row) { r.Bind = true }), []string{"ER-23"}},
	}
}
