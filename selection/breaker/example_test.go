package breaker_test

import (
	"fmt"
	"time"

	"github.com/seed-5a7f77c4/deadair/selection/breaker"
)

func Example() {
	now := time.Date(2000, 1, 1, 12, 0, 0, 0, time.UTC)
	b := breaker.New(breaker.Settings{Failures: 2, OpenFor: 30 * time.Second, Successes: 1})
	for range 2 {
		permit, _ := b.Acquire(now)
		b.Done(&permit, breaker.Failure, now)
	}
	_, ok := b.Acquire(now)
	fmt.Println(b.State(now), ok)

	now = now.Add(30 * time.Second)
	trial, ok := b.Acquire(now)
	fmt.Println(b.State(now), ok)
	b.Done(&trial, breaker.Success, now)
	fmt.Println(b.State(now))
	// Output:
	// open false
	// half-open true
	// closed
}
