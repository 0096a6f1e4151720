package retry_test

import (
	"fmt"
	"syscall"
	"time"

	"github.com/seed-5a7f77c4/deadair/selection/retry"
)

// The first endpoint refuses, the second answers 503 and then 200.
func Example() {
	pool, err := retry.NewPool(retry.DefaultPolicy(), []retry.Provider{{
		Name:     "a",
		Attempts: 3,
		Endpoints: []retry.Endpoint{
			{ID: "a1", URL: "https://a1.example", Order: 1},
			{ID: "a2", URL: "https://a2.example", Order: 2},
		},
	}})
	if err != nil {
		panic(err)
	}
	now := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	plan := pool.Plan(retry.Request{}, now)
	defer plan.Close()
	for _, answer := range []retry.Answer{{Err: syscall.ECONNREFUSED}, {Status: 503}, {Status: 200}} {
		attempt, _ := plan.Next(now)
		d := plan.Report(&answer, now)
		fmt.Printf("%s: %v, %v, wait %v\n", attempt.URL, d.Kind, d.Action, d.Wait)
		now = now.Add(d.Wait)
	}
	fmt.Println(plan.Chain())
	// Output:
	// https://a1.example: system error, again, wait 100ms
	// https://a2.example: provider error, again, wait 100ms
	// https://a2.example: success, return, wait 0s
	// a/a1#1 system_error, a/a2#2 retry_failed, a/a2#3 retry_success
}
