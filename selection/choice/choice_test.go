package choice_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-5a7f77c4/deadair/selection/choice"
)

var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time {
	return epoch.Add(time.Duration(seconds * float64(time.Second)))
}

func event(k choice.Kind, c choice.Choice[string]) choice.Event[string] {
	return choice.Event[string]{Kind: k, Choice: c}
}

// Every kind of event, on a choice without a streak and on one with a streak.
func TestEachEventDoesWhatItsRuleSays(t *testing.T) {
	for _, tc := range []struct {
		kind           choice.Kind
		fresh, failing choice.Change
	}{
		{choice.ConnectFailed, choice.Dropped, choice.Dropped},
		{choice.ConnectErrorShared, choice.Dropped, choice.Dropped},
		{choice.WaitTimedOut, choice.Kept, choice.Kept},
		{choice.SessionFailed, choice.Dropped, choice.Dropped},
		{choice.HostError, choice.Kept, choice.Kept},
		{choice.ForwardFailed, choice.StreakBegun, choice.StreakOut},
		{choice.RelayReached, choice.Kept, choice.StreakCleared},
		{choice.RelayRefused, choice.Kept, choice.StreakCleared},
		{choice.FrameRefused, choice.Kept, choice.StreakCleared},
		{choice.AnswerUnusable, choice.Kept, choice.StreakCleared},
		{choice.ForwardTimedOut, choice.Kept, choice.Kept},
		{choice.SessionUnknown, choice.Kept, choice.Kept},
		{choice.ConnectionEnded, choice.Dropped, choice.Dropped},
	} {
		t.Run(tc.kind.String(), func(t *testing.T) {
			for name, want := range map[string]choice.Change{"fresh": tc.fresh, "failing": tc.failing} {
				tab := choice.NewTable[string, string](choice.Default())
				c, taken := tab.Choose("r", "p1")
				require.True(t, taken)
				if name == "failing" {
					require.Equal(t, choice.StreakBegun, tab.Apply("r", event(choice.ForwardFailed, c), at(0)))
				}
				require.Equal(t, want, tab.Apply("r", event(tc.kind, c), at(32)), name)
				_, there := tab.Lookup("r")
				require.Equal(t, !want.Forgotten(), there)
			}
		})
	}
}

func TestStreakIsMeasuredFromItsFirstFailure(t *testing.T) {
	for _, tc := range []struct {
		name     string
		failures []float64 // seconds
		want     []choice.Change
	}{
		{"29.9 s is not enough, 30 s is", []float64{0, 29.9, 30}, []choice.Change{choice.StreakBegun, choice.StreakGoesOn, choice.StreakOut}},
		{"30 s after the first, not after the last", []float64{0, 20, 29, 31}, []choice.Change{choice.StreakBegun, choice.StreakGoesOn, choice.StreakGoesOn, choice.StreakOut}},
		{"hours later", []float64{0, 7200}, []choice.Change{choice.StreakBegun, choice.StreakOut}},
		{"a burst", []float64{0, 0, 0.5, 1, 2}, []choice.Change{choice.StreakBegun, choice.StreakGoesOn, choice.StreakGoesOn, choice.StreakGoesOn, choice.StreakGoesOn}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tab := choice.NewTable[string, string](choice.Default())
			c, _ := tab.Choose("r", "p1")
			for i, s := range tc.failures {
				require.Equal(t, tc.want[i], tab.Apply("r", event(choice.ForwardFailed, c), at(s)), "at %v s", s)
				if e, ok := tab.Lookup("r"); ok {
					require.Equal(t, at(tc.failures[0]), e.Streak.Start, "the start never moves")
					require.Equal(t, at(s), e.Streak.Last)
				}
			}
		})
	}
}

func TestSuccessEndsTheStreak(t *testing.T) {
	tab := choice.NewTable[string, string](choice.Default())
	c, _ := tab.Choose("r", "p1")
	tab.Apply("r", event(choice.ForwardFailed, c), at(0))
	require.Equal(t, choice.StreakCleared, tab.Apply("r", event(choice.RelayReached, c), at(10)))
	require.Equal(t, choice.StreakBegun, tab.Apply("r", event(choice.ForwardFailed, c), at(40)), "forty seconds after the first, and the first of a new streak")
}

func TestExpiringStreakStartsAnew(t *testing.T) {
	p := choice.Default()
	p.Counter = choice.Expiring(time.Minute, p.Counter)
	tab := choice.NewTable[string, string](p)
	c, _ := tab.Choose("r", "p1")
	tab.Apply("r", event(choice.ForwardFailed, c), at(0))
	require.Equal(t, choice.StreakGoesOn, tab.Apply("r", event(choice.ForwardFailed, c), at(7200)), "one failure now and one hours ago are no streak")
	e, _ := tab.Lookup("r")
	require.Equal(t, at(7200), e.Streak.Start)
	require.Equal(t, choice.StreakOut, tab.Apply("r", event(choice.ForwardFailed, c), at(7260)), "exactly as old as the expiry: it goes on")
}

// A late event of an older choice touches nothing, not even when the proxy was
// picked again.
func TestGenerationsGuard(t *testing.T) {
	for k := range choice.Kind(choice.Kinds) {
		tab := choice.NewTable[string, string](choice.Default())
		old, _ := tab.Choose("r", "p1")
		tab.Apply("r", event(choice.SessionFailed, old), at(0))
		again, taken := tab.Choose("r", "p1")
		require.True(t, taken)
		require.NotEqual(t, old.Generation, again.Generation)
		tab.Apply("r", event(choice.ForwardFailed, again), at(1))
		before, _ := tab.Lookup("r")
		require.Equal(t, choice.Kept, tab.Apply("r", event(k, old), at(60)), "%v", k)
		after, _ := tab.Lookup("r")
		require.Equal(t, before, after, "%v", k)
	}
}

func TestRulesCanBeSwitchedOffOneByOne(t *testing.T) {
	for k := range choice.Kind(choice.Kinds) {
		tab := choice.NewTable[string, string](choice.Default().Without(k))
		c, _ := tab.Choose("r", "p1")
		require.Equal(t, choice.Kept, tab.Apply("r", event(k, c), at(0)), "%v", k)
		other := choice.ConnectFailed
		if k == other {
			other = choice.ConnectionEnded
		}
		require.Equal(t, choice.Dropped, tab.Apply("r", event(other, c), at(0)), "the others stay: %v", k)
	}
	byName := choice.NewTable[string, string](choice.Default().Guarded(choice.SameProxy, choice.ConnectFailed))
	old, _ := byName.Choose("r", "p1")
	byName.Apply("r", event(choice.SessionFailed, old), at(0))
	byName.Choose("r", "p1")
	require.Equal(t, choice.Dropped, byName.Apply("r", event(choice.ConnectFailed, old), at(0)), "a guard by name takes the new choice for the old one")
	byName.Choose("r", "p2")
	require.Equal(t, choice.Kept, byName.Apply("r", event(choice.ConnectFailed, old), at(0)))
	counts := choice.NewTable[string, string](choice.Default().With(choice.ForwardTimedOut, choice.Count))
	c, _ := counts.Choose("r", "p1")
	require.Equal(t, choice.StreakBegun, counts.Apply("r", event(choice.ForwardTimedOut, c), at(0)))
}

func TestTableKeepsWhatIsThere(t *testing.T) {
	tab := choice.NewTable[string, string](choice.Default())
	first, _ := tab.Choose("r", "p1")
	second, taken := tab.Choose("r", "p2")
	require.False(t, taken)
	require.Equal(t, first, second, "the first inserter wins")
	_, forgotten := tab.LastForgotten("r")
	require.False(t, forgotten)
	tab.Apply("r", event(choice.ConnectFailed, first), at(0))
	p, forgotten := tab.LastForgotten("r")
	require.True(t, forgotten)
	require.Equal(t, "p1", p)
	require.Equal(t, choice.Kept, tab.Apply("r", event(choice.RelayReached, first), at(0)), "no entry, no change")
	third, _ := tab.Choose("r", "p2")
	_, forgotten = tab.LastForgotten("r")
	require.False(t, forgotten)
	_, replaced := tab.Replace("r", first, "p3")
	require.False(t, replaced, "only the choice in force can be replaced")
	fourth, replaced := tab.Replace("r", third, "p3")
	require.True(t, replaced)
	require.Equal(t, "p3", fourth.Proxy)
	require.False(t, tab.Forget("other"))
	require.True(t, tab.Forget("r"))
	require.False(t, tab.Forget("r"), "gone already")
	p, forgotten = tab.LastForgotten("r")
	require.True(t, forgotten)
	require.Equal(t, "p3", p)
	again, _ := tab.Choose("r", "p3")
	require.Greater(t, again.Generation, fourth.Generation, "picked again it is another choice")
	require.Equal(t, choice.Kept, tab.Apply("r", event(choice.ConnectFailed, fourth), at(0)))
	tab.Reset()
	require.Zero(t, tab.Len())
	fifth, _ := tab.Choose("r", "p1")
	require.Greater(t, fifth.Generation, again.Generation, "generations go on after a reset")
}

func TestNames(t *testing.T) {
	require.Equal(t, "forward failed", choice.ForwardFailed.String())
	require.Equal(t, "choice.Kind(200)", choice.Kind(200).String())
	require.Equal(t, "connection ended", choice.ConnectionEnded.String())
	require.Equal(t, "choice.Kind(13)", choice.Kind(choice.Kinds).String())
	require.Equal(t, "forgotten after a streak", choice.StreakOut.String())
}

// Random events of present and past choices never break what the rules promise.
func TestTableInvariants(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		tab := choice.NewTable[string, string](choice.Default())
		var made []choice.Choice[string]
		alive := map[uint64]bool{}
		now := epoch
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(20*time.Second)).Draw(rt, "pause")))
			if len(made) == 0 || rapid.Bool().Draw(rt, "choose") {
				c, taken := tab.Choose("r", fmt.Sprintf("p%d", rapid.IntRange(1, 3).Draw(rt, "proxy")))
				if taken {
					for g := range alive {
						if g >= c.Generation {
							rt.Fatalf("generation %d came after %d", c.Generation, g)
						}
					}
					made = append(made, c)
					alive = map[uint64]bool{c.Generation: true}
				} else if !alive[c.Generation] {
					rt.Fatalf("%v came back by itself", c)
				}
				continue
			}
			c := rapid.SampledFrom(made).Draw(rt, "of")
			kind := choice.Kind(rapid.IntRange(0, choice.Kinds-1).Draw(rt, "kind"))
			before, was := tab.Lookup("r")
			change := tab.Apply("r", event(kind, c), now)
			after, is := tab.Lookup("r")
			switch {
			case !was || before.Choice != c:
				if was != is || before != after || change != choice.Kept {
					rt.Fatalf("%v of %v changed %v to %v", kind, c, before, after)
				}
			case change.Forgotten():
				if is {
					rt.Fatalf("%v was forgotten and is there", c)
				}
				delete(alive, c.Generation)
			case before.Streak.Running() && after.Streak.Running() && before.Streak.Start != after.Streak.Start:
				rt.Fatalf("the start of the streak moved from %v to %v", before.Streak.Start, after.Streak.Start)
			case change == choice.StreakGoesOn && now.Sub(after.Streak.Start) >= choice.FailureInterval:
				rt.Fatalf("kept after %v", now.Sub(after.Streak.Start))
			}
		}
	})
}

func BenchmarkStep(b *testing.B) {
	p := choice.Default()
	c := choice.Choice[string]{Proxy: "p1", Generation: 1}
	e := choice.Entry[string]{Choice: c}
	ev := event(choice.ForwardFailed, c)
	now := epoch
	b.ReportAllocs()
	for b.Loop() {
		e, _ = choice.Step(&p, e, ev, now)
		e.Streak = choice.Streak{}
	}
}
