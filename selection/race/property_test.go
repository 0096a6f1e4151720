package race_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-5a7f77c4/deadair/selection/memory"
	"github.com/seed-5a7f77c4/deadair/selection/race"
	"github.com/seed-5a7f77c4/deadair/selection/rank"
	"github.com/seed-5a7f77c4/deadair/selection/route"
)

// act is what one candidate does when it is dialled.
type act struct {
	opens, answers time.Duration // from the dial; a candidate whose answer is sooner than its opening never opens
	err            error
	deaf           bool // goes on after its ctx has ended, as a dial does that nobody can interrupt
}

// run is one race of a schedule: it starts at a time, and its caller may leave.
type run struct {
	at, leaves time.Duration // leaves 0: never
	acts       []act
}

// judge looks at every connection that a Racer's attempts make.
type judge struct {
	mu       sync.Mutex
	made     []*judged
	problems []string
}

type judged struct {
	j      *judge
	name   string
	closed int
}

func (c *judged) Close() error {
	c.j.mu.Lock()
	defer c.j.mu.Unlock()
	c.closed++
	return nil
}

func (j *judge) problem(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.problems = append(j.problems, fmt.Sprintf(format, args...))
}

// attempt plays the acts of one run; it counts those under way whose race still wants them.
func (j *judge) attempt(name string, acts []act, first *time.Time) race.Attempt[*judged] {
	running := 0
	return func(ctx context.Context, c route.Candidate, opened func()) (*judged, error) {
		j.mu.Lock()
		running++
		at := running
		j.mu.Unlock()
		if at > race.Concurrent {
			j.problem("%s: %d at once", name, at)
		}
		stop := context.AfterFunc(ctx, func() {
			j.mu.Lock()
			defer j.mu.Unlock()
			running--
		})
		defer func() {
			if stop() {
				j.mu.Lock()
				defer j.mu.Unlock()
				running--
			}
		}()
		a := acts[int(c.Port)-9000]
		wait := func(d time.Duration) error {
			done := ctx.Done()
			if a.deaf {
				done = nil
			}
			timer := time.NewTimer(d)
			defer timer.Stop()
			select {
			case <-timer.C:
				return nil
			case <-done:
				return ctx.Err()
			}
		}
		if a.opens <= a.answers {
			if err := wait(a.opens); err != nil {
				return nil, err
			}
			opened()
			a.answers -= a.opens
		}
		if err := wait(a.answers); err != nil {
			return nil, err
		}
		if a.err != nil {
			return nil, a.err
		}
		j.mu.Lock()
		defer j.mu.Unlock()
		if ctx.Err() == nil && first.IsZero() {
			*first = time.Now()
		}
		made := &judged{j: j, name: fmt.Sprint(name, " port ", c.Port)}
		j.made = append(j.made, made)
		return made, nil
	}
}

// play runs a schedule of races over one Racer, each superseding the one before, and gives what is wrong.
func play(runs []run, ends time.Duration) []string {
	j := &judge{}
	type key struct{}
	racer := race.New(func(ctx context.Context, c route.Candidate, opened func()) (*judged, error) {
		return ctx.Value(key{}).(race.Attempt[*judged])(ctx, c, opened)
	}, race.DefaultPolicy())
	began := time.Now()
	won := make([]*judged, len(runs))
	var wg sync.WaitGroup
	for i, r := range runs {
		wg.Go(func() {
			time.Sleep(r.at)
			var in race.Input
			for n := range r.acts {
				address := []string{fmt.Sprint("10.0.0.", n), fmt.Sprint("100.64.0.", n), fmt.Sprint("wss://r/", n)}[n%3]
				in.Candidates = append(in.Candidates, route.Candidate{Address: address, Port: 9000 + uint16(n), Owner: "ann"})
			}
			in.Account = "ann"
			var first time.Time
			name := fmt.Sprint("race ", i)
			ctx, cancel := context.WithCancel(context.WithValue(context.Background(), key{}, j.attempt(name, r.acts, &first)))
			defer cancel()
			if r.leaves > 0 {
				time.AfterFunc(r.leaves, cancel)
			}
			out, err := racer.Race(ctx, race.Build(in, race.DefaultPolicy()))
			switch took := time.Since(began) - r.at; {
			case took > race.Budget:
				j.problem("%s took %v", name, took)
			case (err == nil) != (out.Winner >= 0), (err == nil) != (out.Conn != nil), !errors.Is(out.Err, err):
				j.problem("%s: %v, winner %d, conn %v", name, err, out.Winner, out.Conn)
			case err == nil:
				won[i] = out.Conn
				if now := time.Now(); !now.Equal(first) {
					j.problem("%s: won %v after the first hello", name, now.Sub(first))
				}
				if out.Lanes[out.Winner].State != race.Won {
					j.problem("%s: the winner's lane is %v", name, out.Lanes[out.Winner].State)
				}
			case errors.Is(err, context.Canceled) && r.leaves == 0:
				j.problem("%s: nobody left, and yet %v", name, err)
			}
		})
	}
	time.Sleep(ends)
	racer.Close()
	wg.Wait()
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, c := range j.made {
		want := 1
		if slices.Contains(won, c) {
			want = 0
		}
		if c.closed != want {
			j.problems = append(j.problems, fmt.Sprintf("%s: closed %d times, want %d", c.name, c.closed, want))
		}
	}
	return j.problems
}

// Over a running Racer, with races that supersede each other, callers that leave, attempts that cannot be interrupted and
// a Close in the middle of it: never more than three at once, the first hello wins, a race has one winner or an error, and
// every other connection is closed exactly once, however late it comes.
func TestRacerClosesEveryLoserOnce(t *testing.T) {
	durations := rapid.Custom(func(t *rapid.T) time.Duration {
		return time.Duration(rapid.IntRange(0, 12_000).Draw(t, "ms"))*ms + time.Duration(rapid.IntRange(1, 999_999).Draw(t, "ns"))
	})
	acts := rapid.Custom(func(t *rapid.T) act {
		return act{
			opens: durations.Draw(t, "opens"), answers: durations.Draw(t, "answers"), deaf: rapid.Bool().Draw(t, "deaf"),
			err: rapid.SampledFrom([]error{nil, nil, boom, route.ErrBusy}).Draw(t, "err"),
		}
	})
	rapid.Check(t, func(rt *rapid.T) {
		runs := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) run {
			r := run{at: durations.Draw(t, "at"), acts: rapid.SliceOfN(acts, 0, 7).Draw(t, "acts")}
			if rapid.Bool().Draw(t, "leaves") {
				r.leaves = durations.Draw(t, "leaves after")
			}
			return r
		}), 1, 4).Draw(rt, "races")
		ends := durations.Draw(rt, "ends")
		var problems []string
		synctest.Test(t, func(*testing.T) { problems = play(runs, ends) })
		if len(problems) > 0 {
			rt.Fatalf("%v", problems)
		}
	})
}

// Whatever the memories hold, and whatever class is wanted: nobody is in the plan whom vetting refused, who was not among
// the candidates, or whose class was not asked for; and nobody is lost, since each route is planned once on its first port
// or is among the refused.
func TestPlanFromAnyMemory(t *testing.T) {
	pool := []string{lan, lan2, tail, relay, "wss://other.example/m1", "203.0.113.9", "desk", "desk.local", "a.ts.net", "public.example/.local"}
	key := rapid.Map(rapid.SampledFrom(pool), route.KeyOf)
	paths := []*route.Path{nil, {}, {Satisfied: true, Cellular: true}, {Satisfied: true, WiFi: true}, {Satisfied: true, Wired: true}}
	rapid.Check(t, func(t *rapid.T) {
		now, mem := start, memory.New(memory.DefaultPolicy())
		for range rapid.IntRange(0, 12).Draw(t, "races") {
			now = now.Add(time.Duration(rapid.IntRange(0, 100).Draw(t, "pause")) * time.Second)
			var won *memory.Success
			if rapid.Bool().Draw(t, "won") {
				won = &memory.Success{Key: key.Draw(t, "winner")}
			}
			mem.Record(now, rapid.SampledFrom([]route.Fingerprint{"", "cell", "wifi", "wired"}).Draw(t, "network"), rapid.SliceOfN(key, 0, 3).Draw(t, "failed"), won)
		}
		in := race.Input{Account: rapid.SampledFrom([]string{"", "ann", "bob"}).Draw(t, "account")}
		for _, a := range rapid.SliceOfN(rapid.SampledFrom(pool), 0, 14).Draw(t, "routes") {
			in.Candidates = append(in.Candidates, route.Candidate{
				Address: a, Live: rapid.Bool().Draw(t, "live"), Port: rapid.SampledFrom([]uint16{0, 8790, 9000}).Draw(t, "port"),
				Owner: rapid.SampledFrom([]string{"", "ann"}).Draw(t, "owner"),
			})
		}
		path := rapid.SampledFrom(paths).Draw(t, "path")
		in.Facts = rank.Facts{
			Path: path, LastGood: mem.LastGood(),
			Failing:     func(k route.Key) bool { return mem.Failing(now, k) },
			LastSuccess: func(k route.Key) time.Time { return mem.Endpoint(k).LastSuccessAt },
		}
		if path != nil {
			in.Facts.Remembered = mem.Remembered(path.Fingerprint())
		}
		worst := rapid.SampledFrom([]route.Class{route.LAN, route.Tailnet, route.Relay}).Draw(t, "worst class wanted")
		in.Only = func(c route.Class) bool { return c <= worst }
		plan := race.Build(in, race.DefaultPolicy())

		want := map[route.Key]bool{}
		for _, c := range in.Candidates {
			want[c.Key()] = true
		}
		seen := map[route.Key]bool{}
		for i, s := range plan.Slots {
			switch err := route.Vet(s.Candidate, in.Account); {
			case err != nil:
				t.Fatal(err)
			case !want[s.Key]:
				t.Fatalf("%v was no candidate", s)
			case s.Class > worst:
				t.Fatalf("%v was not asked for", s)
			case seen[s.Key] == !s.Alternate:
				t.Fatalf("slot %d: %v", i, plan)
			case s.Demoted() && s.Hoisted:
				t.Fatalf("%v is demoted and hoisted", s)
			}
			seen[s.Key] = true
		}
		for _, r := range plan.Refused {
			if seen[r.Candidate.Key()] || r.Err == nil {
				t.Fatalf("refused, and planned: %v", r)
			}
			seen[r.Candidate.Key()] = true
		}
		for k := range want {
			if !seen[k] && route.ClassOf(string(k)) <= worst {
				t.Fatalf("%q is lost:\n%v", k, plan)
			}
		}
	})
}

// client is what a hello makes of a connection.
type client struct {
	net.Conn
	closed int
}

func (c *client) Close() error {
	c.closed++
	return c.Conn.Close()
}

// The connection that a dial function made is closed when its hello fails, when its time is over, and when the hello
// succeeds too late; a hello need not watch its ctx.
func TestOpenThenHelloClosesWhatItOpened(t *testing.T) {
	for _, tc := range []struct {
		name  string
		dial  error
		hello func(ctx context.Context, c net.Conn) (net.Conn, error)
		want  error
		open  bool
	}{
		{"no connection", boom, nil, boom, false},
		{"the hello fails", nil, func(context.Context, net.Conn) (net.Conn, error) { return nil, boom }, boom, false},
		{"the hello waits for ever", nil, func(_ context.Context, c net.Conn) (net.Conn, error) {
			_, err := c.Read(make([]byte, 1))
			return c, err
		}, context.DeadlineExceeded, false},
		{"the hello succeeds too late", nil, func(ctx context.Context, c net.Conn) (net.Conn, error) {
			<-ctx.Done()
			return c, nil
		}, context.DeadlineExceeded, false},
		{"all is well", nil, func(_ context.Context, c net.Conn) (net.Conn, error) { return c, nil }, nil, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				near, far := net.Pipe()
				defer far.Close()
				opened, target := 0, ""
				var made *client
				attempt := race.OpenThenHello(func(_ context.Context, network, address string) (net.Conn, error) {
					target = network + " " + address
					if tc.dial != nil {
						return nil, tc.dial
					}
					return near, nil
				}, func(ctx context.Context, c net.Conn) (*client, error) {
					c, err := tc.hello(ctx, c)
					if err != nil {
						return nil, err
					}
					made = &client{Conn: c}
					return made, nil
				})
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				c, err := attempt(ctx, route.Candidate{Address: tail, Port: 9000}, func() { opened++ })
				if !errors.Is(err, tc.want) || (c != nil) != tc.open {
					t.Fatalf("%v %v", c, err)
				}
				if target != "tcp 100.64.0.7:9000" || (opened == 1) != (tc.dial == nil) {
					t.Fatalf("dialled %q, opened %d times", target, opened)
				}
				if made != nil && (made.closed == 0) != tc.open {
					t.Fatalf("what the hello made is closed %d times", made.closed)
				}
				cancel()
				synctest.Wait()
				far.SetReadDeadline(time.Now().Add(time.Second))
				if _, err := far.Read(make([]byte, 1)); (tc.dial == nil) && (err.Error() == "EOF") == tc.open {
					t.Fatalf("the other end reads %v", err)
				}
			})
		})
	}
}
