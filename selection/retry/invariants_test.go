package retry_test

import (
	"io"
	"log"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-5a7f77c4/deadair/selection/breaker"
	"github.com/seed-5a7f77c4/deadair/selection/retry"
)

var quiet = log.New(io.Discard, "", 0)

var (
	outcomes = rapid.SampledFrom([]string{"ok", "S", "P", "T", "404", "fault", "abort", "broke"})
)

// TestTurnInvariants runs random outcomes through one turn.
func TestTurnInvariants(t *testing.T) {
	policy := retry.DefaultPolicy()
	policy.Classifier = retry.NewClassifier(func(_ int, text string) bool { return text != "" })
	rapid.Check(t, func(t *rapid.T) {
		candidates := rapid.IntRange(1, 10).Draw(t, "candidates")
		max := rapid.IntRange(-2, 14).Draw(t, "max")
		turn := retry.NewTurn(&policy, candidates, rapid.Bool().Draw(t, "vendor"), max)
		var (
			last         = 0
			endpoint     = map[int]int{} // failures counted
			provider     int
			vendor       int
			timedOut     = map[int]bool{}
			calls        int
			done         bool
			previousMove bool
		)
		for !done {
			place := turn.Begin()
			calls++
			if place < last || place >= candidates {
				t.Fatalf("place %d after %d of %d", place, last, candidates)
			}
			if moved := place != last; moved != (previousMove && last < candidates-1) {
				t.Fatalf("attempt %d at place %d after %d", calls, place, last)
			}
			last = place
			answer := answers[outcomes.Draw(t, "outcome")]
			kind := policy.Classifier.Classify(&answer)
			d := turn.Report(kind)
			previousMove = kind == retry.SystemError || kind == retry.OwnTimeout
			if previousMove {
				if d.Endpoint == breaker.Failure {
					endpoint[place]++
				}
				timedOut[place] = timedOut[place] || kind == retry.OwnTimeout
			} else if d.Endpoint == breaker.Failure {
				t.Fatalf("%v counts at the endpoint", kind)
			}
			if d.Index != place && !(previousMove && d.Action == retry.Again) {
				t.Fatalf("%v moved the plan from %d to %d", kind, place, d.Index)
			}
			if d.Provider == breaker.Failure {
				provider++
				if kind == retry.NotFound || kind == retry.SystemError || kind == retry.ClientAbort || kind == retry.ClientFault {
					t.Fatalf("%v counts at the provider", kind)
				}
			}
			if d.Vendor == breaker.Failure {
				vendor++
				if len(timedOut) != candidates || d.Action != retry.NextProvider || d.Provider == breaker.Failure {
					t.Fatalf("vendor out: %v of %d, %+v", timedOut, candidates, d)
				}
			}
			retried := kind == retry.SystemError || kind == retry.ProviderError || kind == retry.OwnTimeout || kind == retry.NotFound
			done = d.Action != retry.Again
			if (d.Action == retry.Return) == retried {
				t.Fatalf("%v: %v", kind, d.Action)
			}
			if (d.Wait != 0) != (d.Action == retry.Again) || d.Wait < 0 {
				t.Fatalf("%v: wait %v", d.Action, d.Wait)
			}
		}
		if calls > retry.ClampAttempts(max) || provider > 1 || vendor > 1 {
			t.Fatalf("%d calls of %d, provider +%d, vendor +%d", calls, max, provider, vendor)
		}
		for place, n := range endpoint {
			if n > 1 {
				t.Fatalf("endpoint %d counted %d times in one request", place, n)
			}
		}
	})
}

// TestPoolInvariants runs random requests, overlapping ones too, through one pool.
func TestPoolInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		policy := retry.DefaultPolicy()
		policy.Attempts = rapid.IntRange(1, 4).Draw(t, "attempts")
		names := []string{"A", "B", "C"}[:rapid.IntRange(1, 3).Draw(t, "providers")]
		var providers []retry.Provider
		for _, name := range names {
			providers = append(providers, provider(name, rapid.IntRange(0, 3).Draw(t, "endpoints"), 0))
		}
		pool := newPool(t, policy, providers...)
		now := start
		type request struct {
			plan    *retry.Plan
			calls   int
			visited map[string]bool
			current retry.Attempt
		}
		var flying []*request
		drop := func(i int) {
			flying[i].plan.Close()
			flying = append(flying[:i], flying[i+1:]...)
		}
		advance := func(t *rapid.T, i int, outcome string) {
			r := flying[i]
			answer := answers[outcome]
			if answer.Content {
				r.plan.Content(now)
			}
			d := r.plan.Report(&answer, now)
			if d.Action == retry.Return {
				drop(i)
				return
			}
			next, ok := r.plan.Next(now)
			if !ok {
				drop(i)
				return
			}
			switch {
			case d.Action == retry.Again && (next.Provider != r.current.Provider || next.Number != r.current.Number+1):
				t.Fatalf("again: %+v after %+v", next, r.current)
			case d.Action == retry.NextProvider && (r.visited[next.Provider] || next.Number != 1):
				t.Fatalf("next provider: %+v, visited %v", next, r.visited)
			}
			r.current, r.visited[next.Provider] = next, true
			if r.calls++; r.calls > len(names)*policy.Attempts {
				t.Fatalf("%d calls for %d providers with %d attempts", r.calls, len(names), policy.Attempts)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"time": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.SampledFrom([]int{1, 30, 60, 299, 300, 1800}).Draw(t, "s")) * time.Second)
			},
			"begin": func(t *rapid.T) {
				r := &request{plan: pool.Plan(retry.Request{Conversation: rapid.SampledFrom([]string{"", "c"}).Draw(t, "conversation")}, now), visited: map[string]bool{}}
				a, ok := r.plan.Next(now)
				if !ok {
					return
				}
				r.current, r.calls, r.visited[a.Provider] = a, 1, true
				flying = append(flying, r)
			},
			"answer": func(t *rapid.T) {
				if len(flying) == 0 {
					t.Skip("nothing under way")
				}
				advance(t, rapid.IntRange(0, len(flying)-1).Draw(t, "which"), outcomes.Draw(t, "outcome"))
			},
			"leave": func(t *rapid.T) {
				if len(flying) == 0 {
					t.Skip("nothing under way")
				}
				drop(rapid.IntRange(0, len(flying)-1).Draw(t, "which"))
			},
			"probe": func(t *rapid.T) {
				name := rapid.SampledFrom(names).Draw(t, "provider")
				for _, p := range providers {
					if p.Name == name && len(p.Endpoints) > 0 {
						_ = pool.RecordProbe(p.Endpoints[0].ID, retry.Probe{OK: rapid.Bool().Draw(t, "ok")}, now)
					}
				}
			},
		})
		// No request is under way and time has passed: everybody is asked again.
		for len(flying) > 0 {
			drop(0)
		}
		now = now.Add(2 * time.Hour)
		plan := pool.Plan(retry.Request{}, now)
		defer plan.Close()
		for _, p := range providers {
			for range policy.Attempts {
				a, ok := plan.Next(now)
				if !ok || a.Provider != p.Name {
					t.Fatalf("%+v %v, want an attempt at %s", a, ok, p.Name)
				}
				answer := answers["S"]
				plan.Report(&answer, now)
			}
		}
	})
}

// BenchmarkClassifyAndDecide is one step of a request: the kind of an error and
// what follows from it.
func BenchmarkClassifyAndDecide(b *testing.B) {
	policy := retry.DefaultPolicy()
	policy.Classifier = retry.NewClassifier(func(_ int, text string) bool { return text == "too long" })
	for _, name := range []string{"S", "P", "T", "ok"} {
		answer := answers[name]
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			turn := retry.NewTurn(&policy, 3, true, 3)
			for b.Loop() {
				if turn.Exhausted() {
					turn = retry.NewTurn(&policy, 3, true, 3)
				}
				turn.Begin()
				turn.Report(policy.Classifier.Classify(&answer))
			}
		})
	}
}

// TestClassifyAndDecideAllocateNothing keeps the benchmark's promise.
func TestClassifyAndDecideAllocateNothing(t *testing.T) {
	policy := retry.DefaultPolicy()
	turn := retry.NewTurn(&policy, 3, true, 3)
	for name, answer := range answers {
		if n := testing.AllocsPerRun(100, func() {
			turn = retry.NewTurn(&policy, 3, true, 3)
			turn.Begin()
			turn.Report(policy.Classifier.Classify(&answer))
		}); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
