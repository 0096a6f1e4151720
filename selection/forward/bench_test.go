package forward

import (
	"testing"
	"time"

	"github.com/seed-5a7f77c4/deadair/selection/choice"
)

// What a client decides after each answer: the class of the error, the limits of
// the next try, and how long to wait for it.
func BenchmarkDecide(b *testing.B) {
	policy := DefaultPolicy()
	config := Config{Mode: Unknown}
	retries := policy.Retry.Start(true)
	b.ReportAllocs()
	for b.Loop() {
		if !policy.Proxied(config, destination) {
			b.Fatal("not proxied")
		}
		kind, counts := forwardEvent(reported)
		if kind != choice.ForwardFailed || !counts {
			b.Fatal(kind)
		}
		if l := policy.Times.For(Urgency{Interactive: true, Retry: 3}, true); l.Forward() != 101250*time.Millisecond {
			b.Fatal(l)
		}
		if _, again := retries.Failed(reported, choice.StreakGoesOn); !again {
			b.Fatal("given up")
		}
	}
}
