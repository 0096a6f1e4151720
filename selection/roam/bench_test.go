package roam_test

import (
	"testing"
	"time"

	"github.com/seed-5a7f77c4/deadair/selection/roam"
	"github.com/seed-5a7f77c4/deadair/selection/route"
)

func BenchmarkDecide(b *testing.B) {
	p, ago := roam.DefaultPolicy(), time.Hour
	in := roam.Input{Live: true, Satisfied: true, Current: route.Relay, Best: route.LAN, Age: time.Minute, SinceRoam: &ago}
	b.ReportAllocs()
	for b.Loop() {
		roam.Decide(in, p)
	}
}

// BenchmarkMonitor is a path update and the decision that follows.
func BenchmarkMonitor(b *testing.B) {
	m := roam.NewMonitor(roam.DefaultPolicy())
	m.Up(start, route.Relay)
	now := start
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(time.Minute)
		m.Path(now, cellular)
		m.Tick(now.Add(roam.Debounce))
	}
}

// A decision allocates nothing, however often it falls.
func TestDecidingAllocatesNothing(t *testing.T) {
	p, ago := roam.DefaultPolicy(), time.Hour
	in := roam.Input{Live: true, Satisfied: true, Current: route.Relay, Best: route.LAN, Age: time.Minute, SinceRoam: &ago}
	if n := testing.AllocsPerRun(100, func() { roam.Decide(in, p) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
