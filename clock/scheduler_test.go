package clock

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// notes collects the names of events as they run.
type notes struct {
	mu   sync.Mutex
	list []string
}

func (n *notes) event(name string, kind uint8) *Event {
	return &Event{Key: Key{Name: name, Kind: kind}, Handler: HandlerFunc(func(time.Duration) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.list = append(n.list, fmt.Sprintf("%s/%d", name, kind))
	})}
}

func (n *notes) all() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.list)
}

func TestSchedulerRunsInTheOrderOfTimeThenKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewScheduler()
		defer s.Close()
		var got notes
		s.Schedule(got.event("b", 1), time.Second)
		s.Schedule(got.event("c", 0), time.Millisecond)
		s.Schedule(got.event("b", 0), time.Second)
		s.Schedule(got.event("a", 9), time.Second)
		s.Schedule(got.event("past", 0), -time.Second)
		time.Sleep(2 * time.Second)
		require.Equal(t, []string{"past/0", "c/0", "a/9", "b/0", "b/1"}, got.all())
		require.EqualValues(t, 5, s.Ran())
	})
}

// TestSchedulerReachesNoEnd: the latest time there is does not wrap around to one that has passed.
func TestSchedulerReachesNoEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewScheduler()
		defer s.Close()
		var got notes
		for _, at := range []time.Duration{never, never - 1} {
			e := got.event("far", 0)
			s.Schedule(e, at)
			require.Equal(t, at, e.At())
		}
		s.Schedule(got.event("near", 0), time.Second)
		time.Sleep(time.Hour)
		require.Equal(t, []string{"near/0"}, got.all())
	})
}

// TestSchedulerHandlerDoesNotReturn: its panic goes through as it is, and leaves no lock behind; that it ended its
// goroutine is a panic, since that goroutine may be the scheduler's own.
func TestSchedulerHandlerDoesNotReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewScheduler()
		defer s.Close()
		for want, f := range map[string]func(time.Duration){
			"boom": func(time.Duration) { panic("boom") },
			`clock: Scheduler: the handler of event "e" called runtime.Goexit, as FailNow and require do`: func(time.Duration) { runtime.Goexit() },
		} {
			s.ScheduleLazily(&Event{Key: Key{Name: "e"}, Handler: HandlerFunc(f)}, s.Now(), time.Hour)
			time.Sleep(time.Second)
			got := make(chan any)
			go func() { // of its own, since Goexit goes on once its panic is recovered
				defer func() { got <- recover() }()
				s.CatchUp()
			}()
			require.Equal(t, want, <-got)
			require.Zero(t, s.Len())
		}
	})
}

func TestSchedulerGivesEachEventAnInstantOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewScheduler()
		defer s.Close()
		var at []time.Duration
		for i := range 4 {
			s.Schedule(&Event{Key: Key{Name: fmt.Sprint(i)}, Handler: HandlerFunc(func(now time.Duration) {
				at = append(at, now)
			})}, time.Second)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Equal(t, []time.Duration{time.Second + 1, time.Second + 2, time.Second + 3, time.Second + 4}, at)
	})
}

// Goroutines that wake in one instant schedule in whatever order the runtime
// picks; what they schedule still happens in one order.
func TestSchedulerOrderDoesNotDependOnWhoCameFirst(t *testing.T) {
	run := func() []string {
		var got notes
		synctest.Test(t, func(t *testing.T) {
			s := NewScheduler()
			defer s.Close()
			var wg sync.WaitGroup
			for i := range 50 {
				wg.Go(func() {
					time.Sleep(time.Second)
					s.Schedule(got.event(fmt.Sprintf("%02d", i), 0), s.Now())
				})
			}
			wg.Wait()
			time.Sleep(time.Second)
		})
		return got.all()
	}
	first := run()
	require.Len(t, first, 50)
	require.True(t, slices.IsSorted(first))
	for range 20 {
		require.Equal(t, first, run())
	}
}

// What a program's own timer makes it do in an instant comes before what the
// network does in that instant, whichever timer the runtime ran first.
func TestSchedulerLetsTheProgramGoFirst(t *testing.T) {
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			s := NewScheduler()
			defer s.Close()
			var mu sync.Mutex
			var got []string
			add := func(what string) {
				mu.Lock()
				defer mu.Unlock()
				got = append(got, what)
			}
			s.Schedule(&Event{Key: Key{Name: "network"}, Handler: HandlerFunc(func(time.Duration) { add("network") })}, time.Second)
			for range 5 {
				go func() { time.Sleep(time.Second + 1); add("program") }()
			}
			time.Sleep(time.Second)
			synctest.Wait() // the round instant is the test's
			time.Sleep(time.Second)
			mu.Lock()
			defer mu.Unlock()
			require.Equal(t, []string{"program", "program", "program", "program", "program", "network"}, got)
		})
	}
}

func TestSchedulerMovesCancelsAndReusesAnEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewScheduler()
		defer s.Close()
		var got notes
		e := got.event("e", 0)
		require.False(t, s.Cancel(e), "not queued yet")
		s.Schedule(e, time.Second)
		s.Schedule(e, 3*time.Second)
		require.Equal(t, 1, s.Len(), "moved, not doubled")
		time.Sleep(2 * time.Second)
		require.Empty(t, got.all())
		time.Sleep(2 * time.Second)
		require.Len(t, got.all(), 1)
		s.Schedule(e, 5*time.Second)
		require.True(t, s.Queued(e))
		require.True(t, s.Cancel(e))
		require.False(t, s.Queued(e))
		time.Sleep(2 * time.Second)
		require.Len(t, got.all(), 1)
		s.Schedule(e, s.Now())
		time.Sleep(time.Microsecond)
		require.Len(t, got.all(), 2)
	})
}

func TestSchedulerClosedTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewScheduler()
		var got notes
		e := got.event("e", 0)
		s.Schedule(e, time.Second)
		s.Close()
		s.Close()
		require.False(t, s.Queued(e))
		require.False(t, s.Schedule(e, 2*time.Second))
		time.Sleep(3 * time.Second)
		require.Empty(t, got.all())
	})
}

func TestSchedulerRefusesAnEventThatCannotBeOrdered(t *testing.T) {
	s := NewScheduler()
	defer s.Close()
	require.PanicsWithValue(t, `clock: Scheduler.Schedule: an event needs a handler and a key with a name, have key "x"`,
		func() { s.Schedule(&Event{Key: Key{Name: "x"}}, 0) })
	require.Panics(t, func() { s.Schedule(&Event{Handler: HandlerFunc(func(time.Duration) {})}, 0) })
}

func TestSchedulerRunsInRealTimeOutsideABubble(t *testing.T) {
	s := NewScheduler()
	defer s.Close()
	done := make(chan time.Duration, 2)
	for i, d := range []time.Duration{20 * time.Millisecond, 5 * time.Millisecond} {
		s.Schedule(&Event{Key: Key{Name: fmt.Sprint(i)}, Handler: HandlerFunc(func(now time.Duration) {
			done <- now
		})}, d)
	}
	require.GreaterOrEqual(t, <-done, 5*time.Millisecond)
	require.GreaterOrEqual(t, <-done, 20*time.Millisecond)
}

// Whatever is scheduled, moved and cancelled, what runs runs sorted, once.
func TestSchedulerHeapProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := &Scheduler{armed: never, last: -1, running: true} // the queue alone: nothing fires
		s.epoch = time.Now()
		events := make([]*Event, rapid.IntRange(1, 40).Draw(rt, "events"))
		for i := range events {
			events[i] = &Event{Key: Key{Name: fmt.Sprint(i % 7), Kind: uint8(i % 3)}, Handler: HandlerFunc(func(time.Duration) {})}
		}
		for range rapid.IntRange(1, 200).Draw(rt, "steps") {
			e := events[rapid.IntRange(0, len(events)-1).Draw(rt, "event")]
			if rapid.IntRange(0, 3).Draw(rt, "op") == 0 {
				s.Cancel(e)
			} else {
				s.Schedule(e, time.Duration(rapid.IntRange(0, 5).Draw(rt, "at")))
			}
		}
		var last *Event
		for len(s.queue) > 0 {
			e := s.queue[0].Event
			s.queue.remove(e)
			if last != nil && !(slot{last.at, last}).before(slot{e.at, e}) {
				rt.Fatalf("%v at %v ran after %v at %v", e.Key, e.at, last.Key, last.at)
			}
			last = e
		}
		for _, e := range events {
			if e.index != 0 {
				rt.Fatalf("%v is neither queued nor out", e.Key)
			}
		}
	})
}

// A million events: the bar is two seconds.
func BenchmarkScheduler(b *testing.B) {
	for _, waiting := range []int{1, 1000, 100_000} {
		b.Run(fmt.Sprintf("waiting=%d", waiting), func(b *testing.B) {
			s := &Scheduler{armed: never, last: -1, running: true, epoch: time.Now()}
			rnd := rand.New(rand.NewPCG(1, 2))
			events := make([]Event, waiting)
			h := HandlerFunc(func(time.Duration) {})
			for i := range events {
				events[i] = Event{Key: Key{Name: "path"}, Handler: h}
				s.Schedule(&events[i], time.Duration(rnd.Uint32()))
			}
			b.ReportAllocs()
			for b.Loop() {
				e := s.queue[0].Event
				s.queue.remove(e)
				s.Schedule(e, e.at+time.Duration(rnd.Uint32()))
			}
		})
	}
}

// The same in a bubble, each event with an instant of its own. The timer runs
// outside, where time is real.
func BenchmarkSchedulerInABubble(b *testing.B) {
	b.ReportAllocs()
	synctest.Test(new(testing.T), func(*testing.T) {
		s := NewScheduler()
		defer s.Close()
		e := &Event{Key: Key{Name: "e"}}
		done := make(chan struct{})
		n := b.N
		e.Handler = HandlerFunc(func(now time.Duration) {
			if n--; n == 0 {
				close(done)
				return
			}
			s.Schedule(e, now+time.Millisecond)
		})
		s.Schedule(e, 0)
		<-done
	})
}

// What an event with slack does, it does in its place and at its own time,
// however late it runs and whoever makes it run before.
func TestSchedulerWithSlackRunsAsIfAtOnce(t *testing.T) {
	const slack = 10 * time.Millisecond
	run := func(spy bool) (log []string, ran uint64) {
		synctest.Test(t, func(t *testing.T) {
			s := NewScheduler()
			defer s.Close()
			var mu sync.Mutex
			note := func(what string, now time.Duration) {
				mu.Lock()
				defer mu.Unlock()
				log = append(log, fmt.Sprintf("%v %s", now, what))
			}
			for i := range 3 {
				name := fmt.Sprint(i)
				s.Schedule(&Event{Key: Key{Name: "plain" + name}, Handler: HandlerFunc(func(now time.Duration) { note("plain"+name, now) })}, 12*time.Millisecond)
				leaves := &Event{Key: Key{Name: "leaves" + name}}
				arrives := &Event{Key: Key{Name: "arrives" + name}, Handler: HandlerFunc(func(now time.Duration) { note("arrives"+name, now) })}
				leaves.Handler = HandlerFunc(func(now time.Duration) {
					note("leaves"+name, now)
					s.Schedule(arrives, now+slack)
				})
				go func() {
					time.Sleep(time.Duration(i+1) * time.Millisecond)
					s.ScheduleLazily(leaves, s.Now(), slack)
				}()
			}
			if spy {
				go func() {
					for range 100 {
						time.Sleep(300 * time.Microsecond)
						s.CatchUp()
					}
				}()
			}
			time.Sleep(time.Second)
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			ran = s.Ran()
		})
		return
	}
	alone, ran := run(false)
	require.EqualValues(t, 9, ran)
	require.Equal(t, []string{
		"1.000001ms leaves0", "2.000001ms leaves1", "3.000001ms leaves2", "11.000002ms arrives0",
		"12.000001ms plain0", "12.000002ms plain1", "12.000003ms plain2", "12.000004ms arrives1", "13.000002ms arrives2",
	}, alone)
	watched, _ := run(true)
	require.Equal(t, alone, watched, "who calls CatchUp sees what has happened and changes nothing")
}

func TestSchedulerCatchUpRunsWhatWasPutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewScheduler()
		defer s.Close()
		var got notes
		s.ScheduleLazily(got.event("late", 0), 0, time.Hour)
		s.Schedule(got.event("plain", 0), 2*time.Second)
		time.Sleep(time.Second)
		synctest.Wait()
		require.Empty(t, got.all(), "nobody could notice")
		s.CatchUp()
		require.Equal(t, []string{"late/0"}, got.all())
		s.ScheduleLazily(got.event("cancelled", 0), s.Now(), time.Hour)
		e := got.event("before plain", 0)
		s.ScheduleLazily(e, s.Now(), time.Hour)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Equal(t, []string{"late/0", "before plain/0", "cancelled/0", "plain/0"}, got.all(), "in their place before what comes after them")
		s.ScheduleLazily(e, s.Now(), time.Minute)
		require.True(t, s.Cancel(e))
		s.CatchUp()
		time.Sleep(time.Hour)
		require.Len(t, got.all(), 4)
	})
}

// A network that nobody closes does not keep its bubble alive by work alone.
func TestSchedulerGoesHomeWhenThereIsNothingToDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewScheduler()
		var got notes
		for i := range 5 {
			s.Schedule(got.event(fmt.Sprint(i), 0), time.Duration(i)*10*time.Second)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Len(t, got.all(), 5)
		// It is not closed: that the bubble ends shows that no goroutine is left.
	})
}
