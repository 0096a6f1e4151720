package backoff_test

import (
	"testing"

	"github.com/seed-5a7f77c4/deadair/selection/backoff"
)

func BenchmarkNext(b *testing.B) {
	l := backoff.Background.Start()
	b.ReportAllocs()
	for b.Loop() {
		if l.Next() == 0 {
			b.Fatal("no delay")
		}
	}
}
