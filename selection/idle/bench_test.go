package idle_test

import (
	"testing"
	"time"

	"github.com/seed-5a7f77c4/deadair/selection/idle"
)

// A block received, a command timed out, a look.
func BenchmarkCheck(b *testing.B) {
	s := idle.Start(epoch)
	now := epoch
	b.ReportAllocs()
	for b.Loop() {
		s.Received(now)
		s.TimedOut()
		now = now.Add(idle.Default.Every)
		if s.Check(idle.Default, now) != idle.Ping {
			b.Fatal("not a ping")
		}
		now = now.Add(time.Second)
	}
}
