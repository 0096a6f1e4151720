package race_test

import (
	"fmt"
	"testing"

	"github.com/seed-5a7f77c4/deadair/selection/race"
	"github.com/seed-5a7f77c4/deadair/selection/route"
)

// known gives n candidates of all classes.
func known(n int) []route.Candidate {
	cs := make([]route.Candidate, n)
	for i := range cs {
		cs[i] = route.Candidate{Address: []string{fmt.Sprintf("10.%d.%d.1", i/256, i%256), fmt.Sprintf("100.64.%d.%d", i/256, i%256), fmt.Sprint("wss://relay.example/", i)}[i%3], Port: 9000, Owner: "ann"}
	}
	return cs
}

// BenchmarkBuild is a plan from candidates to slots: vetting, ranking, first wave.
func BenchmarkBuild(b *testing.B) {
	for _, n := range []int{3, 30, 1000} {
		in := race.Input{Candidates: known(n), Account: "ann"}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				race.Build(in, race.DefaultPolicy())
			}
		})
	}
}

// BenchmarkMachine is a whole race of three candidates, of which the second wins.
func BenchmarkMachine(b *testing.B) {
	p := race.Build(race.Input{Candidates: known(3), Account: "ann"}, race.DefaultPolicy())
	b.ReportAllocs()
	for b.Loop() {
		m := race.NewMachine(p, race.DefaultPolicy())
		m.Start(start)
		m.Tick(start.Add(250 * ms))
		m.Opened(start.Add(260*ms), 1)
		m.Succeed(start.Add(270*ms), 1)
	}
}
