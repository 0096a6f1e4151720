package rank_test

import (
	"fmt"
	"time"

	"github.com/seed-5a7f77c4/deadair/selection/memory"
	"github.com/seed-5a7f77c4/deadair/selection/rank"
	"github.com/seed-5a7f77c4/deadair/selection/route"
)

// On cellular, where the relay worked last: it comes first, and what can work only on a local link last.
func Example() {
	now := time.Date(2026, 5, 4, 9, 0, 0, 0, time.UTC)
	path := route.Path{Satisfied: true, Cellular: true}
	mem := memory.New(memory.DefaultPolicy())
	mem.Record(now.Add(-time.Hour), path.Fingerprint(), nil, &memory.Success{Key: "wss://relay.example/tunnel/m1"})

	for _, r := range rank.Order([]route.Candidate{
		{Address: "desk.local"},
		{Address: "100.64.0.7"},
		{Address: "wss://relay.example/tunnel/m1", Owner: "ann"},
	}, rank.Facts{
		Path:        &path,
		Failing:     func(k route.Key) bool { return mem.Failing(now, k) },
		LastSuccess: func(k route.Key) time.Time { return mem.Endpoint(k).LastSuccessAt },
		Remembered:  mem.Remembered(path.Fingerprint()),
		LastGood:    mem.LastGood(),
	}, rank.DefaultPolicy()) {
		fmt.Printf("%v (%s)\n", r.Candidate, r.Why())
	}
	// Output:
	// relay wss://relay.example/tunnel/m1 (remembered)
	// tailnet 100.64.0.7:8787 ()
	// lan desk.local:8787 (no local link)
}
