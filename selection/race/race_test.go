package race_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-5a7f77c4/deadair/selection/race"
	"github.com/seed-5a7f77c4/deadair/selection/rank"
	"github.com/seed-5a7f77c4/deadair/selection/route"
)

const (
	lan   = "192.168.1.10"
	lan2  = "10.0.0.1"
	tail  = "100.64.0.7"
	relay = "wss://relay.example/tunnel/m1"
	ms    = time.Millisecond
)

var (
	start = time.Date(2026, 5, 4, 9, 0, 0, 0, time.UTC)
	boom  = errors.New("boom")
)

// plan makes a plan of routes without a port sweep.
func plan(addresses ...string) race.Plan {
	var cs []route.Candidate
	for _, a := range addresses {
		cs = append(cs, route.Candidate{Address: a, Port: 9000, Owner: "ann"})
	}
	return race.Build(race.Input{Candidates: cs, Account: "ann"}, race.DefaultPolicy())
}

func TestFirstWave(t *testing.T) {
	for _, tc := range []struct {
		in, want []string
		delays   []time.Duration
	}{
		{[]string{relay}, []string{relay}, []time.Duration{0}},
		{[]string{lan, relay}, []string{lan, relay}, []time.Duration{0, 300 * ms}},
		{[]string{lan, tail, relay}, []string{lan, tail, relay}, []time.Duration{0, 250 * ms, 500 * ms}},
		{[]string{lan, lan2, tail, relay}, []string{lan, tail, relay, lan2}, []time.Duration{0, 250 * ms, 500 * ms, 0}},
		{[]string{lan, lan2, relay}, []string{lan, relay, lan2}, []time.Duration{0, 300 * ms, 500 * ms}},
		{[]string{lan, lan2}, []string{lan, lan2}, []time.Duration{0, 250 * ms}},
	} {
		p := plan(tc.in...)
		var got []string
		var delays []time.Duration
		for _, s := range p.Slots {
			got, delays = append(got, s.Address), append(delays, s.Delay)
		}
		assert.Equal(t, tc.want, got)
		assert.Equal(t, tc.delays, delays)
	}
}

func TestPlanExplainsItself(t *testing.T) {
	p := race.Build(race.Input{Candidates: []route.Candidate{{Address: lan, Port: 9000, Live: true}, {Address: relay, Owner: "bob"}}}, race.DefaultPolicy())
	assert.Contains(t, p.String(), "+0s")
	assert.Contains(t, p.String(), "lan 192.168.1.10:9000  (rank 1; discovered)")
	assert.Contains(t, p.String(), "refused relay "+relay)
	assert.ErrorIs(t, p.Missing, route.ErrSignIn)
	assert.Equal(t, []route.Class{route.LAN}, p.Classes())
	assert.Equal(t, "nothing to try\n", race.Plan{}.String())
}

func TestEveryRouteBeforeAnyAlternatePort(t *testing.T) {
	p := race.Build(race.Input{Candidates: []route.Candidate{{Address: lan}, {Address: lan2}, {Address: tail}}}, race.DefaultPolicy())
	for i, s := range p.Slots {
		assert.Equal(t, i >= 3, s.Alternate, "slot %d: %v", i, s)
	}
	assert.Len(t, p.Slots, 27)
}

func dials(actions []race.Action) (slots []int) {
	for _, a := range actions {
		if a.Op == race.Dial {
			slots = append(slots, a.Slot)
		}
	}
	return slots
}

func TestFailurePullsForward(t *testing.T) {
	m := race.NewMachine(plan(lan, lan2, tail, relay, "10.0.0.2"), race.DefaultPolicy())
	at := func(d time.Duration) time.Time { return start.Add(d) }
	assert.Equal(t, []int{0}, dials(m.Start(start)))
	assert.Equal(t, []int{1}, dials(m.Fail(at(10*ms), 0, boom)), "the next staggered one, at once")
	assert.Empty(t, dials(m.Tick(at(499*ms))), "slot 2 keeps its time")
	assert.Equal(t, []int{2, 3}, dials(m.Tick(at(500*ms))), "a free place goes to the next in rank")
	assert.Equal(t, []int{4}, dials(m.Fail(at(600*ms), 1, boom)))
	for _, slot := range []int{2, 3} {
		m.Fail(at(700*ms), slot, boom)
	}
	last := errors.New("last")
	m.Fail(at(800*ms), 4, last)
	result, over := m.Result()
	require.True(t, over)
	assert.Equal(t, last, result.Err)
	assert.Len(t, result.Failed, 5)
}

func TestBudget(t *testing.T) {
	m := race.NewMachine(plan(lan, tail, relay), race.DefaultPolicy())
	at := func(d time.Duration) time.Time { return start.Add(d) }
	m.Start(start)
	m.Tick(at(500 * ms))
	m.Opened(at(600*ms), 1)
	assert.Contains(t, m.Tick(at(5*time.Second)), race.Action{Op: race.Cancel, Slot: 0}, "the first did not open in 5 s")
	m.Tick(at(5500 * ms))
	wake, _ := m.Wake()
	assert.Equal(t, at(10*time.Second), wake)
	m.Tick(wake)
	result, over := m.Result()
	require.True(t, over)
	assert.Equal(t, []route.Key{lan, relay, tail}, result.Failed, "opened and silent counts, last")
	assert.ErrorIs(t, result.Err, race.ErrSilent)
}

func TestBudgetSparesWhoDidNotOpen(t *testing.T) {
	p := race.DefaultPolicy()
	p.OpenWindow = time.Minute
	m := race.NewMachine(plan(lan, tail), p)
	m.Start(start)
	m.Tick(start.Add(race.Budget))
	result, _ := m.Result()
	assert.Empty(t, result.Failed)
	assert.ErrorIs(t, result.Err, race.ErrBudget)
}

func TestOneWinner(t *testing.T) {
	m := race.NewMachine(plan(lan, tail, relay), race.DefaultPolicy())
	m.Start(start)
	m.Tick(start.Add(500 * ms))
	assert.Equal(t, []race.Action{{Op: race.Take, Slot: 2}, {Op: race.Cancel, Slot: 0}, {Op: race.Cancel, Slot: 1}}, m.Succeed(start.Add(time.Second), 2))
	assert.Equal(t, []race.Action{{Op: race.Discard, Slot: 0}}, m.Succeed(start.Add(time.Second), 0))
	result, _ := m.Result()
	assert.Equal(t, race.Result{Winner: 2}, result, "losers are not recorded")
}

func TestTheMissingRelayIsTheReason(t *testing.T) {
	in := race.Input{Candidates: []route.Candidate{{Address: lan, Port: 9000}, {Address: relay, Owner: "ann"}}}
	m := race.NewMachine(race.Build(in, race.DefaultPolicy()), race.DefaultPolicy())
	m.Start(start)
	m.Fail(start, 0, boom)
	result, _ := m.Result()
	assert.ErrorIs(t, result.Err, route.ErrSignIn)
	assert.ErrorIs(t, result.Err, boom)
	empty := race.NewMachine(race.Plan{}, race.DefaultPolicy())
	empty.Start(start)
	result, over := empty.Result()
	assert.True(t, over)
	assert.ErrorIs(t, result.Err, race.ErrNoCandidates)
}

// Whatever is said of a candidate that is not under way any longer changes nothing.
func TestLateNewsChangesNothing(t *testing.T) {
	m := race.NewMachine(plan(lan, tail, relay), race.DefaultPolicy())
	at := func(d time.Duration) time.Time { return start.Add(d) }
	m.Start(start)
	m.Opened(at(ms), 1)
	assert.Equal(t, race.Waiting, m.Lanes()[1].State, "it has not been dialled")
	assert.Empty(t, m.Fail(at(ms), 1, boom), "nor has it failed")
	m.Opened(at(2*ms), 0)
	assert.Equal(t, race.Lane{State: race.Greeting, Opened: 2 * ms}, m.Lanes()[0])
	assert.Equal(t, []int{1}, dials(m.Fail(at(3*ms), 0, boom)), "one that has opened can fail")
	failed := race.Lane{State: race.Failed, Opened: 2 * ms, Ended: 3 * ms, Err: boom}
	assert.Equal(t, failed, m.Lanes()[0])
	assert.Empty(t, m.Fail(at(4*ms), 0, errors.New("again")))
	m.Opened(at(4*ms), 0)
	assert.Equal(t, []race.Action{{Op: race.Discard, Slot: 0}}, m.Succeed(at(4*ms), 0))
	assert.Equal(t, failed, m.Lanes()[0])
	assert.Equal(t, []race.Action{{Op: race.Cancel, Slot: 1}}, m.Tick(at(3*ms + race.OpenWindow))[:1])
	assert.Equal(t, race.Lane{State: race.Failed, Started: 3 * ms, Ended: 3*ms + race.OpenWindow, Err: race.ErrOpen}, m.Lanes()[1])
	m.Succeed(at(6*time.Second), 2)
	assert.Empty(t, m.Tick(at(7*time.Second)))
	_, waits := m.Wake()
	assert.False(t, waits)
	result, over := m.Result()
	assert.True(t, over)
	assert.Equal(t, race.Result{Winner: 2, Failed: []route.Key{lan, tail}}, result)
}

// A policy of one's own may start the first wave in another order than that of its slots.
func TestDelaysNeedNotGrow(t *testing.T) {
	p := race.DefaultPolicy()
	p.Delay = func(slot int, _ route.Class) time.Duration {
		return []time.Duration{300 * ms, 100 * ms, 200 * ms}[slot]
	}
	var cs []route.Candidate
	for _, a := range []string{lan, tail, relay, lan2} {
		cs = append(cs, route.Candidate{Address: a, Port: 9000, Owner: "ann"})
	}
	m := race.NewMachine(race.Build(race.Input{Candidates: cs, Account: "ann"}, p), p)
	assert.Empty(t, dials(m.Start(start)))
	for _, next := range []int{1, 2, 0} {
		wake, ok := m.Wake()
		require.True(t, ok)
		assert.Equal(t, []int{next}, dials(m.Tick(wake)))
	}
	assert.Equal(t, []int{3}, dials(m.Fail(start.Add(time.Second), 1, boom)))
}

// Without the pull, the next of the first wave keeps its time.
func TestWithoutThePull(t *testing.T) {
	p := race.DefaultPolicy()
	p.PullsForward = false
	m := race.NewMachine(plan(lan, tail, lan2, "10.0.0.2"), p)
	m.Start(start)
	assert.Empty(t, dials(m.Fail(start.Add(10*ms), 0, boom)))
	assert.Equal(t, []int{1}, dials(m.Tick(start.Add(250*ms))))
}

// Whatever happens: never more than three at once, everyone in the plan is dialled once at most and in order of need,
// one winner, and no blameless error is blamed.
func TestMachineInvariants(t *testing.T) {
	pool := []string{lan, lan2, tail, relay, "10.0.0.2", "127.0.0.1", "desk.local", "a.ts.net"}
	rapid.Check(t, func(t *rapid.T) {
		p := plan(rapid.SliceOfNDistinct(rapid.SampledFrom(pool), 0, len(pool), rapid.ID[string]).Draw(t, "routes")...)
		m := race.NewMachine(p, race.DefaultPolicy())
		now := start
		running, dialled, taken := map[int]bool{}, map[int]bool{}, 0
		do := func(actions []race.Action) {
			for _, a := range actions {
				switch a.Op {
				case race.Dial:
					if dialled[a.Slot] {
						t.Fatalf("slot %d dialled twice", a.Slot)
					}
					running[a.Slot], dialled[a.Slot] = true, true
				case race.Cancel:
					delete(running, a.Slot)
				case race.Take:
					taken++
				}
			}
			if len(running) > race.Concurrent {
				t.Fatalf("%d at once", len(running))
			}
		}
		do(m.Start(now))
		for {
			result, over := m.Result()
			if over {
				if (result.Winner >= 0) != (taken == 1) || taken > 1 || (result.Winner < 0) == (result.Err == nil) {
					t.Fatalf("%+v after %d wins", result, taken)
				}
				if result.Winner < 0 && now.Sub(start) < race.Budget && len(dialled) != len(p.Slots) {
					t.Fatalf("gave up with %d of %d tried", len(dialled), len(p.Slots))
				}
				return
			}
			var up []int
			for i := range p.Slots {
				if running[i] {
					up = append(up, i)
				}
			}
			step := rapid.IntRange(0, 9).Draw(t, "event")
			wake, _ := m.Wake()
			if wake.Before(now) {
				t.Fatalf("wants to wake %v ago", now.Sub(wake))
			}
			if len(up) == 0 || step < 4 {
				now = wake
				do(m.Tick(now))
				continue
			}
			now = now.Add(min(wake.Sub(now), time.Duration(rapid.IntRange(0, 400).Draw(t, "ms"))*ms))
			slot := rapid.SampledFrom(up).Draw(t, "slot")
			switch step {
			case 4, 5:
				m.Opened(now, slot)
			case 6:
				delete(running, slot)
				do(m.Succeed(now, slot))
			case 7:
				delete(running, slot)
				do(m.Fail(now, slot, route.ErrBusy))
				if r, _ := m.Result(); slices.Contains(r.Failed, p.Slots[slot].Key) {
					t.Fatalf("%v is blamed", p.Slots[slot].Key)
				}
			default:
				delete(running, slot)
				do(m.Fail(now, slot, boom))
			}
		}
	})
}

// Vetting holds whatever the memories say, and no admitted candidate is lost.
func TestPlanHoldsWhatVettingLetThrough(t *testing.T) {
	pool := []string{lan, tail, relay, "wss://other.example/m1", "203.0.113.9", "desk", "desk.local"}
	rapid.Check(t, func(t *rapid.T) {
		in := race.Input{Account: rapid.SampledFrom([]string{"", "ann", "bob"}).Draw(t, "account")}
		for _, a := range rapid.SliceOfNDistinct(rapid.SampledFrom(pool), 0, len(pool), rapid.ID[string]).Draw(t, "routes") {
			in.Candidates = append(in.Candidates, route.Candidate{Address: a, Owner: rapid.SampledFrom([]string{"", "ann"}).Draw(t, "owner")})
		}
		in.Facts.Remembered = route.Key(rapid.SampledFrom(pool).Draw(t, "remembered"))
		in.Facts.LastGood = route.Key(rapid.SampledFrom(pool).Draw(t, "last good"))
		p := race.Build(in, race.DefaultPolicy())
		first := 0
		for _, s := range p.Slots {
			if err := route.Vet(s.Candidate, in.Account); err != nil {
				t.Fatal(err)
			}
			if !s.Alternate {
				first++
			}
		}
		if first+len(p.Refused) != len(in.Candidates) {
			t.Fatalf("%d candidates, %d planned, %d refused", len(in.Candidates), first, len(p.Refused))
		}
	})
}

// conn counts itself while it is open.
type conn struct {
	open *atomic.Int32
	name string
}

func (c conn) Close() error { c.open.Add(-1); return nil }

// dialer answers each address after a time, with a connection or an error.
type dialer struct {
	open  atomic.Int32
	after map[string]time.Duration
	fail  map[string]error
	deaf  bool // does not watch ctx
}

func (d *dialer) attempt(ctx context.Context, c route.Candidate, opened func()) (conn, error) {
	opened()
	done := ctx.Done()
	if d.deaf {
		done = nil
	}
	select {
	case <-time.After(d.after[c.Address]):
	case <-done:
		return conn{}, ctx.Err()
	}
	if err := d.fail[c.Address]; err != nil {
		return conn{}, err
	}
	d.open.Add(1)
	return conn{&d.open, c.Address}, nil
}

func TestRacerKeepsTheFirstHello(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dialer{after: map[string]time.Duration{lan: time.Second, tail: 100 * ms, relay: 50 * ms}}
		r := race.New(d.attempt, race.DefaultPolicy())
		began := time.Now()
		won, err := r.Race(t.Context(), plan(lan, tail, relay))
		require.NoError(t, err)
		assert.Equal(t, tail, won.Conn.name)
		assert.Equal(t, 350*ms, time.Since(began))
		assert.Equal(t, []race.State{race.Lost, race.Won, race.Waiting}, []race.State{won.Lanes[0].State, won.Lanes[1].State, won.Lanes[2].State})
		require.NoError(t, r.Close())
		assert.EqualValues(t, 1, d.open.Load())
		out, err := r.Race(t.Context(), plan(lan))
		assert.ErrorIs(t, err, net.ErrClosed)
		assert.Equal(t, race.Result{Winner: -1, Err: net.ErrClosed}, out.Result)
	})
}

func TestRacerClosesLateWinners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dialer{deaf: true, after: map[string]time.Duration{lan: time.Second, tail: 700 * ms}}
		r := race.New(d.attempt, race.DefaultPolicy())
		won, err := r.Race(t.Context(), plan(lan, tail))
		require.NoError(t, err)
		require.NoError(t, r.Close())
		assert.EqualValues(t, 1, d.open.Load(), "the late one is closed")
		won.Conn.Close()
	})
}

func TestANewRaceSupersedesTheOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dialer{deaf: true, after: map[string]time.Duration{lan: time.Second}}
		r := race.New(d.attempt, race.DefaultPolicy())
		first := make(chan error)
		go func() {
			_, err := r.Race(t.Context(), plan(lan))
			first <- err
		}()
		time.Sleep(500 * ms)
		go func() { assert.ErrorIs(t, <-first, route.ErrSuperseded) }()
		won, err := r.Race(t.Context(), plan(tail))
		require.NoError(t, err)
		require.NoError(t, r.Close())
		assert.Equal(t, tail, won.Conn.name)
		assert.EqualValues(t, 1, d.open.Load(), "the stale winner is closed")
	})
}

func TestRaceEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dialer{after: map[string]time.Duration{lan: time.Hour}}
		r := race.New(d.attempt, race.DefaultPolicy())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		out, err := r.Race(ctx, plan(lan))
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, race.Result{Winner: -1, Err: context.DeadlineExceeded}, out.Result)
		assert.Equal(t, race.Greeting, out.Lanes[0].State)
		require.NoError(t, r.Close())
	})
}

func TestRoundsRunOneAfterTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := race.DefaultPolicy()
		p.Rounds = func(p race.Plan) []race.Plan { return []race.Plan{plan(lan), plan(relay), plan(tail)} }
		d := &dialer{fail: map[string]error{lan: boom}, after: map[string]time.Duration{relay: time.Second}}
		r := race.New(d.attempt, p)
		out, err := r.Race(t.Context(), plan(lan, relay))
		require.NoError(t, err)
		assert.Equal(t, []route.Key{lan}, out.Failed)
		assert.Equal(t, relay, out.Conn.name)
		assert.Equal(t, time.Second, time.Since(out.Began))

		ctx, cancel := context.WithTimeout(t.Context(), 500*ms)
		defer cancel()
		out, err = r.Race(ctx, plan(lan, relay))
		assert.ErrorIs(t, err, context.DeadlineExceeded, "there is no third race after the caller has left")
		assert.Equal(t, []route.Key{lan}, out.Failed)
		require.NoError(t, r.Close())
		assert.EqualValues(t, 1, d.open.Load())
	})
}

// A class that the race leaves out is not missing because of an account.
func TestARelayThatIsNotWantedIsNotMissing(t *testing.T) {
	in := race.Input{Candidates: []route.Candidate{{Address: lan, Port: 9000}, {Address: relay, Owner: "ann"}}}
	assert.ErrorIs(t, race.Build(in, race.DefaultPolicy()).Missing, route.ErrSignIn)
	in.Only = func(c route.Class) bool { return c == route.LAN }
	p := race.Build(in, race.DefaultPolicy())
	assert.NoError(t, p.Missing)
	assert.Len(t, p.Slots, 1)
	assert.Len(t, p.Refused, 1)
}

// A Policy of which nothing is set has the default functions and figures.
func TestPolicyDefaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := race.Input{Candidates: []route.Candidate{{Address: lan}, {Address: relay, Owner: "ann"}}, Account: "ann", Facts: rank.Facts{LastGood: relay}}
		p := race.Build(in, race.Policy{})
		assert.Equal(t, race.Build(in, race.DefaultPolicy()), p)
		assert.Equal(t, p, race.Schedule(rank.Sweep(rank.Order(in.Candidates, in.Facts, rank.Policy{})), race.Policy{}))
		d := &dialer{after: map[string]time.Duration{lan: time.Hour, relay: time.Hour}}
		r := race.New(d.attempt, race.Policy{})
		out, err := r.Race(t.Context(), p)
		assert.ErrorIs(t, err, race.ErrSilent)
		assert.Equal(t, []route.Key{relay, lan}, out.Failed)
		assert.Equal(t, race.Budget, time.Since(out.Began))
		require.NoError(t, r.Close())
		m := race.NewMachine(plan(lan), race.Policy{})
		assert.Equal(t, []int{0}, dials(m.Start(start)))
	})
}

// A policy that leaves no race to run has no winner.
func TestNoRounds(t *testing.T) {
	p := race.DefaultPolicy()
	p.Rounds = func(race.Plan) []race.Plan { return nil }
	r := race.New((&dialer{}).attempt, p)
	out, err := r.Race(t.Context(), plan(lan))
	assert.ErrorIs(t, err, race.ErrNoCandidates)
	assert.Equal(t, -1, out.Winner)
	require.NoError(t, r.Close())
}
