package share

import (
	"errors"
	"testing"
	"time"
)

// The pure step: an attempt that fails, and a look whether its error still
// counts.
func BenchmarkSlot(b *testing.B) {
	now, err := time.Unix(0, 0), errors.New("refused")
	s := slot[string]{attempt: 1}
	b.ReportAllocs()
	for b.Loop() {
		s.fail(err, now.Add(3*time.Second))
		if s.expired(now) {
			b.Fatal("expired at once")
		}
	}
}
