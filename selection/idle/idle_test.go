package idle_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/seed-5a7f77c4/deadair/selection/idle"
)

var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func at(s float64) time.Time { return epoch.Add(time.Duration(s * float64(time.Second))) }

func TestDropRule(t *testing.T) {
	type event struct {
		at   float64
		what string // "in" received, "out" timed out
	}
	tests := []struct {
		name   string
		events []event
		looks  []float64
		want   []idle.Verdict
	}{
		{"silent with three time-outs ends at 1200, not at 600", []event{{1, "out"}, {2, "out"}, {3, "out"}},
			[]float64{599.9, 600, 601, 1199.9, 1200}, []idle.Verdict{idle.Wait, idle.Ping, idle.Wait, idle.Wait, idle.End}},
		{"two time-outs do not end it", []event{{1, "out"}, {2, "out"}},
			[]float64{600, 1200, 1800}, []idle.Verdict{idle.Ping, idle.Ping, idle.Ping}},
		{"a block resets the silence", []event{{1, "out"}, {2, "out"}, {3, "out"}, {500, "in"}},
			[]float64{600, 1099, 1100, 1700}, []idle.Verdict{idle.Wait, idle.Wait, idle.Ping, idle.Ping}},
		{"a block resets the count", []event{{1, "out"}, {2, "out"}, {3, "out"}, {4, "in"}, {5, "out"}, {6, "out"}},
			[]float64{604, 1204, 1804}, []idle.Verdict{idle.Ping, idle.Ping, idle.Ping}},
		{"exactly 900 is long enough", []event{{1, "out"}, {2, "out"}, {3, "out"}}, []float64{900}, []idle.Verdict{idle.End}},
		{"just below 900 is not", []event{{1, "out"}, {2, "out"}, {3, "out"}}, []float64{899.9}, []idle.Verdict{idle.Ping}},
		{"a look that comes late is not made up for", nil, []float64{1300, 1700, 1800}, []idle.Verdict{idle.Ping, idle.Wait, idle.Ping}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := idle.Start(epoch)
			for _, e := range test.events {
				if e.what == "in" {
					s.Received(at(e.at))
				} else {
					s.TimedOut()
				}
			}
			for i, look := range test.looks {
				assert.Equal(t, test.want[i], s.Check(idle.Default, at(look)), "at %v", look)
			}
		})
	}
}

func TestNoEndWithoutBothHalves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, last, outs, now := idle.Start(epoch), epoch, 0, epoch
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.Int64Range(1, 700).Draw(t, "seconds")) * time.Second)
			switch rapid.IntRange(0, 2).Draw(t, "event") {
			case 0:
				s.Received(now)
				last, outs = now, 0
			case 1:
				s.TimedOut()
				outs++
			default:
				got := s.Check(idle.Default, now)
				if (got == idle.End) && (outs < 3 || now.Sub(last) < 900*time.Second) {
					t.Fatalf("ended after %d time-outs and %v", outs, now.Sub(last))
				}
				if !s.Due(idle.Default).After(now) {
					t.Fatalf("looked at at %v and due again at %v", now, s.Due(idle.Default))
				}
			}
		}
	})
}
