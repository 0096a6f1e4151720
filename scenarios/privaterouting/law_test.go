package privaterouting_test

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/scenarios"
	"github.com/seed-5a7f77c4/deadair/scenarios/privaterouting"
)

func storyNamed(t testing.TB, id string) scenarios.Scenario[privaterouting.Subject] {
	all := privaterouting.Stories()
	i := slices.IndexFunc(all, func(s scenarios.Scenario[privaterouting.Subject]) bool { return s.ID == id })
	require.GreaterOrEqual(t, i, 0, "there is no %s", id)
	return all[i]
}

// The recovery times of 200 seeds all have the form 62 + 64k + handshakes, and k
// is distributed as re-picks between two proxies are: P(k) = ½^(k+1).
func TestRecoveryFollowsTheLaw(t *testing.T) {
	const seeds = 200
	sc := storyNamed(t, "PR-4")
	counts := make([]int, 4) // k = 0, 1, 2, more
	for seed := range uint64(seeds) {
		o := scenarios.Run(t, sc, privaterouting.Ours(), scenarios.Seed(seed))
		o.Require(t) // the story itself holds the time against 62 + 64k
		k, took := o.Figures["repicks"].(int), o.Figures["connected"].(time.Duration)
		rest := took - 62*time.Second - time.Duration(k)*64*time.Second
		require.True(t, rest >= 0 && rest <= 5*time.Second, "seed %d: %v is not 62 + 64·%d + handshakes", seed, took, k)
		counts[min(k, 3)]++
	}
	law := []float64{1. / 2, 1. / 4, 1. / 8, 1. / 8}
	stat, p, err := scenarios.ChiSquare(counts, law)
	require.NoError(t, err)
	t.Logf("k = 0, 1, 2, more: %v of %d; χ² %.2f, p %.3f", counts, seeds, stat, p)
	require.Greater(t, p, 0.001, "the shares %v are not what the law says", counts)
	require.False(t, math.IsNaN(p))
}

// What a user sees who gives up after 6 Retries, or after 14: P1 has to be picked
// again at most once, or five times.
func TestCapsFollowTheLaw(t *testing.T) {
	const seeds = 200
	counts := [2][2]int{} // within 6, within 14: joined, not joined
	for seed := range uint64(seeds) {
		o := scenarios.Run(t, storyNamed(t, "PR-8"), privaterouting.Ours(), scenarios.Seed(seed))
		o.Require(t)
		for i, name := range []string{"joined within 6", "joined within 14"} {
			if o.Figures[name].(bool) {
				counts[i][0]++
			} else {
				counts[i][1]++
			}
		}
	}
	_, p, err := scenarios.ChiSquare(counts[0][:], []float64{3. / 4, 1. / 4})
	require.NoError(t, err)
	require.Greater(t, p, 0.001, "%v within 6", counts[0])
	require.GreaterOrEqual(t, counts[1][0], seeds*9/10, "%v within 14, where 63 of 64 are", counts[1])
	t.Logf("within 6: %v (p %.3f), within 14: %v", counts[0], p, counts[1])
}

// Two, five and eight of ten proxies broken: after k re-picks with the probability
// (1 − b/10)·(b/10)^k.
func TestFleetFollowsTheLaw(t *testing.T) {
	const seeds, classes = 200, 4
	for _, broken := range []int{2, 5, 8} {
		samples, err := scenarios.Sweep(t, privaterouting.Fleet(broken, true), privaterouting.Ours(), scenarios.SweepOptions{Count: seeds})
		require.NoError(t, err)
		counts := make([]int, classes)
		for _, s := range samples {
			require.Empty(t, s.Failures, "seed %d", s.Seed)
			counts[min(s.Figures[privaterouting.Repicks].(int), classes-1)]++
		}
		bad := float64(broken) / 10
		law := []float64{1 - bad, (1 - bad) * bad, (1 - bad) * bad * bad, bad * bad * bad}
		if broken == 2 { // three re-picks and more are too rare for a class of their own
			counts, law = []int{counts[0], counts[1], counts[2] + counts[3]}, []float64{law[0], law[1], law[2] + law[3]}
		}
		_, p, err := scenarios.ChiSquare(counts, law)
		require.NoError(t, err)
		require.Greater(t, p, 0.001, "%d broken: %v", broken, counts)
		t.Logf("%d of 10 broken, k = 0, 1, 2, more: %v (p %.3f)", broken, counts, p)
	}
}

// The same seed, the same trace, whatever the number of processors.
func TestDeterminism(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(before)
	for _, sc := range privaterouting.Stories() {
		t.Run(sc.ID, func(t *testing.T) {
			var hash string
			for _, procs := range []int{1, 2, 4} {
				runtime.GOMAXPROCS(procs)
				for range 3 {
					o := scenarios.Run(t, sc, privaterouting.Ours(), scenarios.Seed(3))
					if hash == "" {
						hash = o.Hash
					}
					require.Equal(t, hash, o.Hash, "on %d processors", procs)
				}
			}
		})
	}
}

// PR-4 a hundred times on each number of processors.
func TestDeterminismOfTheMainJob(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(before)
	sc := storyNamed(t, "PR-4")
	hashes := map[string]string{}
	for _, procs := range []int{1, 2, 4} {
		runtime.GOMAXPROCS(procs)
		for i := range 100 {
			o := scenarios.Run(t, sc, privaterouting.Ours(), scenarios.Seed(1))
			hashes[o.Hash] = fmt.Sprintf("run %d on %d processors", i, procs)
		}
	}
	require.Len(t, hashes, 1, "the traces differ")
}

// One trial of the main job: the bar is 10 ms of processor time with TLS.
func BenchmarkConnecting(b *testing.B) {
	for name, plain := range map[string]bool{"tls": false, "plain": true} {
		b.Run(name, func(b *testing.B) {
			sc := storyNamed(b, "PR-4")
			sc.Play = func(p *scenarios.Play, s privaterouting.Subject) { privaterouting.PlayConnecting(p, s, plain) }
			t := new(testing.T)
			b.ReportAllocs()
			for i := range b.N {
				if o := scenarios.Run(t, sc, privaterouting.Ours(), scenarios.Seed(uint64(i))); !o.Passed() {
					b.Fatal(o.Err())
				}
			}
		})
	}
}
