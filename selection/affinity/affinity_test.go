package affinity_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/seed-5a7f77c4/deadair/selection/affinity"
)

var start = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func TestBindingLastsFromTheLastSuccess(t *testing.T) {
	table := affinity.New(300*time.Second, 10)
	bound := func(seconds float64, want string) {
		t.Helper()
		got, ok := table.Lookup("c", start.Add(time.Duration(seconds*float64(time.Second))))
		assert.Equal(t, want, got, "at %v", seconds)
		assert.Equal(t, want != "", ok)
	}
	bound(0, "")
	table.Bind("c", "A", start)
	bound(200, "A") // looking does not lengthen it
	bound(299.999, "A")
	bound(300, "")
	table.Bind("c", "A", start.Add(400*time.Second))
	table.Bind("c", "A", start.Add(600*time.Second))
	bound(899, "A")
	table.Bind("c", "B", start.Add(899*time.Second))
	bound(1198, "B")
	bound(1199, "")
	table.Bind("", "A", start)
	assert.Equal(t, 0, table.Len(), "the empty conversation is none")
}

func TestTheLeastRecentlyRenewedMakesRoom(t *testing.T) {
	table := affinity.New(time.Hour, 2)
	table.Bind("a", "A", start)
	table.Bind("b", "B", start)
	table.Bind("a", "A", start)
	table.Bind("c", "C", start)
	_, ok := table.Lookup("b", start)
	assert.False(t, ok)
	for _, key := range []string{"a", "c"} {
		_, ok := table.Lookup(key, start)
		assert.True(t, ok, key)
	}
	assert.Panics(t, func() { affinity.New(0, 1) })
	assert.Panics(t, func() { affinity.New(time.Second, 0) })
}

// The table agrees with a plain map of expiry times, and never grows beyond its
// capacity.
func TestAgainstAMap(t *testing.T) {
	type binding struct {
		provider string
		expires  time.Time
	}
	rapid.Check(t, func(t *rapid.T) {
		ttl := time.Duration(rapid.IntRange(1, 50).Draw(t, "ttl"))
		table := affinity.New(ttl, 8) // more than there are keys
		model := map[string]binding{}
		now := start
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "pause")))
			key := fmt.Sprint(rapid.IntRange(0, 5).Draw(t, "key"))
			if rapid.Bool().Draw(t, "bind") {
				provider := fmt.Sprint("P", rapid.IntRange(0, 2).Draw(t, "provider"))
				table.Bind(key, provider, now)
				model[key] = binding{provider, now.Add(ttl)}
			}
			got, ok := table.Lookup(key, now)
			want, bound := model[key]
			bound = bound && now.Before(want.expires)
			if ok != bound || bound && got != want.provider {
				t.Fatalf("%q at %v: %q %v, want %q %v", key, now, got, ok, want.provider, bound)
			}
			if table.Len() > 8 {
				t.Fatalf("%d entries", table.Len())
			}
		}
	})
}
