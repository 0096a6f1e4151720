package rank_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/seed-5a7f77c4/deadair/selection/rank"
	"github.com/seed-5a7f77c4/deadair/selection/route"
)

const (
	lan1  = "192.168.1.10"
	lan2  = "desk.local"
	loop  = "127.0.0.1"
	tail  = "100.64.0.7"
	tail2 = "desk.tail.ts.net"
	relay = "wss://relay.example/tunnel/m1"
)

var (
	start    = time.Date(2026, 5, 4, 9, 0, 0, 0, time.UTC)
	wifi     = &route.Path{Satisfied: true, WiFi: true}
	cellular = &route.Path{Satisfied: true, Cellular: true}
	wired    = &route.Path{Satisfied: true, Wired: true}
)

func candidates(addresses ...string) []route.Candidate {
	cs := make([]route.Candidate, len(addresses))
	for i, a := range addresses {
		cs[i] = route.Candidate{Address: a}
	}
	return cs
}

func addresses(order []rank.Ranked) []string {
	as := make([]string, len(order))
	for i, r := range order {
		as[i] = r.Address
	}
	return as
}

func among(keys ...route.Key) func(route.Key) bool {
	return func(k route.Key) bool { return slices.Contains(keys, k) }
}

func TestOrder(t *testing.T) {
	live := func(cs []route.Candidate, address string) []route.Candidate {
		for i := range cs {
			cs[i].Live = cs[i].Live || cs[i].Address == address
		}
		return cs
	}
	success := func(at map[route.Key]time.Time) func(route.Key) time.Time {
		return func(k route.Key) time.Time { return at[k] }
	}
	for _, tc := range []struct {
		name  string
		in    []route.Candidate
		facts rank.Facts
		want  []string
	}{
		{"class", candidates(relay, tail, lan1), rank.Facts{Path: wifi}, []string{lan1, tail, relay}},
		{"no snapshot counts as a local link", candidates(relay, tail, lan1), rank.Facts{}, []string{lan1, tail, relay}},
		{"wired is a local link", candidates(relay, lan1), rank.Facts{Path: wired}, []string{lan1, relay}},
		{"live beats class", live(candidates(lan1, tail, relay), tail), rank.Facts{Path: wifi}, []string{tail, lan1, relay}},
		{"original order", candidates(tail2, tail, lan2, lan1), rank.Facts{Path: wifi}, []string{lan2, lan1, tail2, tail}},
		{"recent success within the class", candidates(lan1, lan2, tail), rank.Facts{Path: wifi,
			LastSuccess: success(map[route.Key]time.Time{lan1: start, lan2: start.Add(1), tail: start.Add(2)})},
			[]string{lan2, lan1, tail}},
		{"off link goes back", candidates(lan1, lan2, loop, tail, relay), rank.Facts{Path: cellular}, []string{loop, tail, relay, lan1, lan2}},
		{"off link even if live", live(candidates(lan1, relay), lan1), rank.Facts{Path: cellular}, []string{relay, lan1}},
		{"failing goes back", candidates(lan1, tail, relay), rank.Facts{Path: wifi, Failing: among(lan1)}, []string{tail, relay, lan1}},
		{"all failing", candidates(relay, tail, lan1), rank.Facts{Path: wifi, Failing: among(lan1, tail, relay)}, []string{lan1, tail, relay}},
		{"the network's endpoint in front", candidates(lan1, tail, relay), rank.Facts{Path: cellular, Remembered: relay}, []string{relay, tail, lan1}},
		{"behind it the last good", candidates(lan1, tail, relay), rank.Facts{Path: wifi, Remembered: relay, LastGood: tail}, []string{relay, tail, lan1}},
		{"the last good alone", candidates(lan1, tail, relay), rank.Facts{Path: wifi, LastGood: tail}, []string{tail, lan1, relay}},
		{"both the same", candidates(lan1, tail, relay), rank.Facts{Path: wifi, Remembered: tail, LastGood: tail}, []string{tail, lan1, relay}},
		{"a demoted one is not hoisted", candidates(lan1, tail, relay), rank.Facts{Path: cellular, Remembered: lan1, LastGood: tail, Failing: among(tail)},
			[]string{relay, lan1, tail}},
		{"hoisting adds nothing", candidates(lan1), rank.Facts{Path: wifi, Remembered: relay, LastGood: tail}, []string{lan1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			assert.Equal(t, tc.want, addresses(rank.Order(tc.in, tc.facts, rank.DefaultPolicy())))
		})
	}
}

func TestHoistMarksWhoIsInFrontAlready(t *testing.T) {
	order := rank.Order(candidates(lan1, tail, relay), rank.Facts{Path: wifi, Remembered: lan1}, rank.DefaultPolicy())
	assert.Equal(t, []bool{true, false, false}, []bool{order[0].Hoisted, order[1].Hoisted, order[2].Hoisted})
	order = rank.Hoist(order, relay)
	assert.Equal(t, []string{relay, lan1, tail}, addresses(order))
	assert.True(t, order[0].Hoisted)
	assert.Equal(t, order, rank.Hoist(order, "unheard-of"))
	assert.Empty(t, rank.Hoist(nil, relay))
}

// A rule of one's own stands beside the defaults of all the others.
func TestPolicyDefaults(t *testing.T) {
	in, facts := candidates(lan1, lan2, tail, relay), rank.Facts{Path: cellular, Remembered: relay, LastGood: tail, Failing: among(relay)}
	plain := rank.Order(in, facts, rank.DefaultPolicy())
	assert.Equal(t, []string{tail, lan1, lan2, relay}, addresses(plain))
	assert.Equal(t, plain, rank.Order(in, facts, rank.Policy{}))
	assert.Equal(t, rank.Sweep(plain), rank.Policy{}.WithDefaults().Sweep(plain))
	for name, tc := range map[string]struct {
		policy rank.Policy
		want   []string
	}{
		"keeps":  {rank.Policy{Keeps: func(r rank.Ranked) bool { return !r.Failing }}, []string{tail, lan1, lan2}},
		"local":  {rank.Policy{LocalLinkOnly: func(a string) bool { return a == tail }}, []string{lan1, lan2, tail, relay}},
		"hoists": {rank.Policy{Hoists: func(rank.Facts) []route.Key { return nil }}, []string{tail, lan1, lan2, relay}},
		"hoist": {rank.Policy{Hoist: func(o []rank.Ranked, k route.Key) []rank.Ranked {
			o[0].Hoisted = true
			return o[:1]
		}}, []string{tail}},
	} {
		assert.Equal(t, tc.want, addresses(rank.Order(in, facts, tc.policy)), name)
	}
	swept := rank.Policy{Sweep: func(o []rank.Ranked) []rank.Ranked { return o[:1] }}.WithDefaults().Sweep(plain)
	assert.Len(t, swept, 1)
}

// The bare last-good ranks as a success at the epoch: before never, behind any stamp. Seen with hoisting off.
func TestBareLastGood(t *testing.T) {
	p := rank.DefaultPolicy()
	p.Hoist = func(order []rank.Ranked, _ route.Key) []rank.Ranked { return order }
	got := rank.Order(candidates("10.0.0.1", "10.0.0.2", "10.0.0.3"), rank.Facts{
		LastGood: "10.0.0.2",
		LastSuccess: func(k route.Key) time.Time {
			if k == "10.0.0.3" {
				return time.Unix(1, 0)
			}
			return time.Time{}
		},
	}, p)
	assert.Equal(t, []string{"10.0.0.3", "10.0.0.2", "10.0.0.1"}, addresses(got))
}

func TestSweep(t *testing.T) {
	order := rank.Order([]route.Candidate{{Address: relay}, {Address: lan1, Port: 8788}, {Address: tail, Port: 9000}, {Address: lan2}},
		rank.Facts{}, rank.DefaultPolicy())
	swept := rank.Sweep(order)
	var got []string
	for _, r := range swept[:9] {
		got = append(got, r.Target())
	}
	assert.Equal(t, []string{
		lan1 + ":8788", lan2 + ":8787", tail + ":9000", relay,
		lan1 + ":8787", lan2 + ":8788", lan1 + ":8789", lan2 + ":8789", lan1 + ":8790",
	}, got)
	assert.Len(t, swept, 4+8+8)
	assert.Equal(t, "alternate port", swept[4].Why())
}

func TestWhy(t *testing.T) {
	r := rank.Ranked{Hoisted: true, Failing: true, OffLink: true, Candidate: route.Candidate{Live: true}}
	assert.Equal(t, "remembered, failing, no local link, discovered", r.Why())
	assert.Empty(t, rank.Ranked{}.Why())
}

// Whatever the facts, the order is a permutation of the candidates, and no demoted one stands before one that is not.
func TestOrderIsAPermutation(t *testing.T) {
	pool := []string{lan1, lan2, loop, tail, tail2, relay, "fe80::1", "10.0.0.1", "wss://other.example/x"}
	rapid.Check(t, func(t *rapid.T) {
		in := candidates(rapid.SliceOfNDistinct(rapid.SampledFrom(pool), 0, len(pool), rapid.ID[string]).Draw(t, "candidates")...)
		for i := range in {
			in[i].Live = rapid.Bool().Draw(t, "live")
		}
		key := rapid.Custom(func(t *rapid.T) route.Key {
			return route.Key(rapid.SampledFrom(append(pool, "", "unheard-of")).Draw(t, "key"))
		})
		failing := rapid.SliceOf(key).Draw(t, "failing")
		order := rank.Order(in, rank.Facts{
			Path:       rapid.SampledFrom([]*route.Path{nil, wifi, cellular, wired, {}}).Draw(t, "path"),
			Failing:    among(failing...),
			Remembered: key.Draw(t, "remembered"),
			LastGood:   key.Draw(t, "last good"),
		}, rank.DefaultPolicy())
		got, want := addresses(order), addresses(rank.Order(in, rank.Facts{}, rank.DefaultPolicy()))
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) || len(got) != len(in) {
			t.Fatalf("%v became %v", in, got)
		}
		for i := 1; i < len(order); i++ {
			if order[i-1].Demoted() && !order[i].Demoted() {
				t.Fatalf("%v stands before %v", order[i-1], order[i])
			}
		}
	})
}

// BenchmarkOrder ranks n candidates; a thousand should take a millisecond at most.
func BenchmarkOrder(b *testing.B) {
	for _, n := range []int{10, 1000} {
		in := make([]route.Candidate, n)
		for i := range in {
			in[i] = route.Candidate{Address: fmt.Sprintf("10.%d.%d.1", i/256, i%256), Live: i%3 == 0}
		}
		facts := rank.Facts{
			Path: wifi, Remembered: "10.0.7.1", LastGood: "10.0.3.1",
			Failing:     func(k route.Key) bool { return len(k)%2 == 0 },
			LastSuccess: func(k route.Key) time.Time { return start.Add(time.Duration(k[len(k)-3])) },
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				rank.Order(in, facts, rank.DefaultPolicy())
			}
		})
	}
}
