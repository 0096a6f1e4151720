package roam_test

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-5a7f77c4/deadair/selection/race"
	"github.com/seed-5a7f77c4/deadair/selection/rank"
	"github.com/seed-5a7f77c4/deadair/selection/roam"
	"github.com/seed-5a7f77c4/deadair/selection/route"
)

var (
	start    = time.Date(2026, 5, 4, 9, 0, 0, 0, time.UTC)
	cellular = route.Path{Satisfied: true, Cellular: true}
	wifi     = route.Path{Satisfied: true, Cellular: true, WiFi: true}
)

func TestDecide(t *testing.T) {
	ago := func(d time.Duration) *time.Duration { return &d }
	const none, change, probe = roam.None, roam.PathChange, roam.UpgradeProbe
	for _, tc := range []struct {
		name  string
		in    roam.Input
		want  roam.Decision
		again time.Duration
	}{
		{"not live", roam.Input{Satisfied: true, Changed: true}, none, 0},
		{"not satisfied", roam.Input{Live: true, Changed: true}, none, 0},
		{"changed, never roamed, age and class ignored", roam.Input{Live: true, Satisfied: true, Changed: true}, change, 0},
		{"changed, at the floor", roam.Input{Live: true, Satisfied: true, Changed: true, SinceRoam: ago(3 * time.Second)}, change, 0},
		{"changed, below the floor", roam.Input{Live: true, Satisfied: true, Changed: true, SinceRoam: ago(time.Second)}, none, 2 * time.Second},
		{"current unknown", roam.Input{Live: true, Satisfied: true, Best: route.LAN, Age: time.Hour}, none, 0},
		{"best unknown", roam.Input{Live: true, Satisfied: true, Current: route.Relay, Age: time.Hour}, none, 0},
		{"best the same", roam.Input{Live: true, Satisfied: true, Current: route.Relay, Best: route.Relay, Age: time.Hour}, none, 0},
		{"best worse", roam.Input{Live: true, Satisfied: true, Current: route.LAN, Best: route.Relay, Age: time.Hour}, none, 0},
		{"age missing", roam.Input{Live: true, Satisfied: true, Current: route.Relay, Best: route.LAN}, none, 0},
		{"too young", roam.Input{Live: true, Satisfied: true, Current: route.Relay, Best: route.LAN, Age: 10*time.Second - 1}, none, 0},
		{"roamed lately", roam.Input{Live: true, Satisfied: true, Current: route.Relay, Best: route.LAN, Age: time.Hour, SinceRoam: ago(300*time.Second - 1)}, none, 0},
		{"upgrade", roam.Input{Live: true, Satisfied: true, Current: route.Relay, Best: route.LAN, Age: 10 * time.Second, SinceRoam: ago(300 * time.Second)}, probe, 0},
		{"upgrade, never roamed", roam.Input{Live: true, Satisfied: true, Current: route.Relay, Best: route.Tailnet, Age: 10 * time.Second}, probe, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, again := roam.Decide(tc.in, roam.DefaultPolicy())
			assert.Equal(t, tc.want, got)
			assert.Equal(t, tc.again, again)
		})
	}
}

func TestBestIsObserved(t *testing.T) {
	inTailnet := cellular
	inTailnet.TailnetAddr = netip.MustParseAddr("100.64.0.2")
	for _, tc := range []struct {
		o    roam.Observed
		want route.Class
	}{
		{roam.Observed{Path: wifi, Discovered: true}, route.LAN},
		{roam.Observed{Path: wifi, RelayEligible: true}, route.Relay},
		{roam.Observed{Path: cellular, Discovered: true, RelayEligible: true}, route.Relay},
		{roam.Observed{Path: cellular, TailnetRoute: true, RelayEligible: true}, route.Relay},
		{roam.Observed{Path: inTailnet, RelayEligible: true}, route.Relay},
		{roam.Observed{Path: inTailnet, TailnetRoute: true, RelayEligible: true}, route.Tailnet},
		{roam.Observed{Path: cellular}, route.Unknown},
	} {
		assert.Equal(t, tc.want, roam.Best(tc.o), "%+v", tc.o)
	}
}

// run lets the monitor decide until the time is over.
func run(m *roam.Monitor, from, to time.Time) (decisions []roam.Decision, at []time.Duration) {
	for {
		wake, ok := m.Wake()
		if !ok || wake.After(to) {
			return decisions, at
		}
		if d := m.Tick(wake); d != roam.None {
			decisions, at = append(decisions, d), append(at, wake.Sub(from))
		}
	}
}

func TestMonitorDebouncesAndRearms(t *testing.T) {
	m := roam.NewMonitor(roam.DefaultPolicy())
	m.Path(start, cellular)
	m.Up(start, route.Relay)
	d, _ := run(m, start, start.Add(time.Minute))
	assert.Empty(t, d, "the first snapshot sets the base")
	t0 := start.Add(time.Minute)
	for i := range 5 {
		m.Path(t0.Add(time.Duration(i)*100*time.Millisecond), []route.Path{wifi, cellular}[i%2])
	}
	d, at := run(m, t0, t0.Add(time.Second))
	assert.Equal(t, []roam.Decision{roam.PathChange}, d)
	assert.Equal(t, []time.Duration{650 * time.Millisecond}, at)
	m.Path(t0.Add(time.Second), cellular)
	_, at = run(m, t0, t0.Add(time.Minute))
	assert.Equal(t, []time.Duration{3650 * time.Millisecond}, at, "at the end of the floor")
	flap := cellular
	flap.Expensive = true
	m.Path(t0.Add(time.Minute), flap)
	d, _ = run(m, t0, t0.Add(2*time.Minute))
	assert.Empty(t, d)
}

// The figures, as they were measured.
func TestFigures(t *testing.T) {
	p := roam.DefaultPolicy()
	assert.Equal(t, []time.Duration{3 * time.Second, 250 * time.Millisecond, 10 * time.Second, 300 * time.Second, 2 * time.Second},
		[]time.Duration{p.Floor, p.Debounce, p.MinAge, p.Interval, p.Proof})
	assert.Equal(t, 10*time.Second, p.Stable)
}

// A decision falls when it is due, not before, and a connection that comes up makes one due only when there has been a
// change.
func TestMonitorIsDueWhenThereIsNews(t *testing.T) {
	m := roam.NewMonitor(roam.DefaultPolicy())
	_, due := m.Wake()
	assert.False(t, due)
	m.Up(start, route.Relay)
	_, due = m.Wake()
	assert.False(t, due)
	m.Path(start, cellular)
	run(m, start, start.Add(time.Second))

	m.Path(start.Add(time.Minute), wifi)
	m.Up(start.Add(time.Minute+time.Millisecond), route.Tailnet)
	wake, _ := m.Wake()
	assert.Equal(t, start.Add(time.Minute+roam.Debounce), wake, "the burst is not over")
	assert.Equal(t, roam.None, m.Tick(wake.Add(-1)))
	again, _ := m.Wake()
	assert.Equal(t, wake, again)
	assert.Equal(t, roam.PathChange, m.Tick(wake))
	assert.Equal(t, roam.None, m.Tick(wake.Add(time.Hour)))

	m.Down()
	_, live := m.Live()
	assert.False(t, live)
	m.Path(start.Add(3*time.Hour), cellular)
	d, _ := run(m, start, start.Add(4*time.Hour))
	assert.Empty(t, d, "reconnecting is not roaming")
	m.Up(start.Add(4*time.Hour), route.Relay)
	wake, due = m.Wake()
	assert.True(t, due)
	assert.Equal(t, start.Add(4*time.Hour), wake, "what changed meanwhile is decided at once")
}

func TestAChangeTakenBackIsStillAChange(t *testing.T) {
	m := roam.NewMonitor(roam.DefaultPolicy())
	m.Path(start, cellular)
	m.Up(start, route.Relay)
	run(m, start, start.Add(time.Second))
	m.Path(start.Add(time.Second), route.Path{})
	m.Path(start.Add(1050*time.Millisecond), cellular)
	d, _ := run(m, start, start.Add(time.Minute))
	assert.Equal(t, []roam.Decision{roam.PathChange}, d)
}

// Over random walks of 24 hours: a path change only after interfaces changed, a probe only for a class observed to be
// better, and never two roams within the floor.
func TestNoRoamFromAStandingFact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := roam.NewMonitor(roam.DefaultPolicy())
		now, path := start, cellular
		o := roam.Observed{TailnetRoute: true, RelayEligible: true}
		m.Path(now, path)
		m.Observe(now, o)
		m.Up(now, route.Relay)
		var last time.Time
		changed := false
		for now.Sub(start) < 24*time.Hour {
			now = now.Add(time.Duration(rapid.IntRange(1, 7_200_000).Draw(t, "ms")) * time.Millisecond)
			next := path
			switch rapid.IntRange(0, 5).Draw(t, "event") {
			case 0, 1:
				next.Expensive = !next.Expensive
			case 2:
				next.Constrained = !next.Constrained
			case 3:
				next.WiFi = !next.WiFi
			case 4:
				o.Discovered = !o.Discovered
			}
			changed = changed || !next.SameInterfaces(path)
			path = next
			m.Path(now, path)
			m.Observe(now, o)
			for {
				wake, ok := m.Wake()
				if !ok {
					break
				}
				now = wake
				switch m.Tick(now) {
				case roam.PathChange:
					if !changed {
						t.Fatal("a path change without one")
					}
					changed = false
				case roam.UpgradeProbe:
					if !(path.WiFi && o.Discovered) {
						t.Fatalf("a probe although nothing better is seen: %+v %+v", path, o)
					}
				default:
					continue
				}
				if !last.IsZero() && now.Sub(last) < roam.Floor {
					t.Fatal("two roams within the floor")
				}
				last = now
			}
		}
	})
}

func TestLadder(t *testing.T) {
	slow := []time.Duration{time.Hour, 0}
	defer func() {
		assert.Less(t, slow[0], 31*time.Second, "the slow beat is spread")
		assert.Greater(t, slow[1], 39*time.Second)
	}()
	for seed := range uint64(50) {
		l := roam.NewLadder(roam.DefaultPolicy(), seed)
		for _, base := range []float64{1, 2, 4, 8, 16, 16, 16} {
			assert.InDelta(t, base, l.Next().Seconds(), base*0.2)
		}
		for range 3 {
			assert.InDelta(t, 35, l.Next().Seconds(), 5)
		}
		slow[0], slow[1] = min(slow[0], l.Next()), max(slow[1], l.Next())
		l.Lost(10*time.Second - 1)
		assert.Greater(t, l.Next(), 29*time.Second)
		l.Lost(10 * time.Second)
		assert.Less(t, l.Next(), 2*time.Second)
	}
}

// link is a connection of a session under test.
type link struct {
	name    string
	closed  chan struct{}
	dead    bool
	answers time.Duration // for how long it lets one wait for a sign of life
}

func (l *link) Close() error {
	select {
	case <-l.closed:
	default:
		close(l.closed)
	}
	return nil
}

// rig is a session whose races win after 100 ms what next names, or fail when it is empty.
type rig struct {
	mu       sync.Mutex // of next and races
	next     string
	races    []roam.Request
	links    []*link
	live     *link
	recorded int
	broke    bool // a live link was closed before another was adopted
	session  *roam.Session[*link]
}

// pass lets time go by, until everybody waits.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// win names who wins from now on.
func (g *rig) win(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.next = name
}

// ran lists the races so far.
func (g *rig) ran() []roam.Request {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.races)
}

func begin(t *testing.T, p roam.Policy) *rig {
	g := &rig{next: "relay"}
	g.session = roam.NewSession(roam.Config[*link]{
		Race: func(ctx context.Context, r roam.Request) (race.Outcome[*link], error) {
			g.mu.Lock()
			g.races = append(g.races, r)
			g.mu.Unlock()
			time.Sleep(100 * time.Millisecond)
			g.mu.Lock()
			next := g.next
			g.mu.Unlock()
			if next == "" {
				return race.Outcome[*link]{}, errors.New("nobody answers")
			}
			if g.live != nil && !g.live.dead {
				select {
				case <-g.live.closed:
					g.broke = true
				default:
				}
			}
			l := &link{name: next, closed: make(chan struct{})}
			g.links = append(g.links, l)
			class := map[string]route.Class{"lan": route.LAN, "relay": route.Relay}[next]
			return race.Outcome[*link]{Conn: l, Slot: race.Slot{Ranked: rank.Ranked{Key: route.Key(next), Class: class}}}, nil
		},
		Alive: func(ctx context.Context, l *link) error {
			if l.dead {
				<-ctx.Done()
				return ctx.Err()
			}
			select {
			case <-time.After(l.answers):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		},
		Adopt:  func(o race.Outcome[*link]) { g.live = o.Conn },
		Record: func(roam.Request, race.Outcome[*link], error) { g.recorded++ },
		Done:   func(l *link) <-chan struct{} { return l.closed },
		Policy: p, Seed: 1,
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); g.session.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-done
		for _, l := range g.links {
			<-l.closed
		}
	})
	g.session.Path(cellular)
	pass(time.Second)
	return g
}

func TestSessionRoams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := begin(t, roam.DefaultPolicy())
		require.Equal(t, "relay", g.live.name)
		g.win("lan")
		g.session.Path(wifi)
		pass(time.Second)
		assert.Equal(t, "lan", g.live.name)
		assert.Equal(t, roam.Roam, g.ran()[1].Cause)
		assert.False(t, g.broke)
		<-g.links[0].closed
	})
}

func TestSessionSurvivesAFailedRoam(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := begin(t, roam.DefaultPolicy())
		g.win("")
		g.session.Path(wifi)
		pass(time.Minute)
		assert.Equal(t, "relay", g.live.name)
		assert.Len(t, g.ran(), 2)
	})
}

func TestSameEndpointKeepsTheLiveSocketIfItProvesAlive(t *testing.T) {
	for _, dead := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			g := begin(t, roam.DefaultPolicy())
			first := g.live
			first.dead = dead
			g.session.Path(wifi)
			pass(5 * time.Second)
			assert.Equal(t, dead, g.live != first)
			assert.Equal(t, map[bool]int{false: 1, true: 2}[dead], g.recorded)
		})
	}
}

func TestSessionProbesBetterClassesOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := begin(t, roam.DefaultPolicy())
		g.session.Path(wifi)
		pass(10 * time.Second)
		seen := roam.Observed{Discovered: true, RelayEligible: true}
		g.session.Observe(seen)
		pass(time.Second)
		assert.Len(t, g.ran(), 2, "roamed lately")
		pass(300 * time.Second)
		g.win("lan")
		g.session.Observe(seen)
		pass(time.Second)
		require.Len(t, g.ran(), 3)
		assert.Equal(t, roam.Probe, g.ran()[2].Cause)
		assert.True(t, g.ran()[2].Only(route.LAN))
		assert.False(t, g.ran()[2].Only(route.Relay))
		assert.Equal(t, "lan", g.live.name)
	})
}

func TestSessionReconnectsOnTheLadder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := begin(t, roam.DefaultPolicy())
		g.win("")
		g.live.Close()
		pass(30 * time.Second)
		assert.InDelta(t, 5, len(g.ran()), 1)
		g.win("relay")
		pass(40 * time.Second)
		assert.Equal(t, 3, len(g.links)+1, "one connection before, one after")
	})
}

// What was stable has been stable, though it was a roam that ended it.
func TestARoamFromAStableConnectionResetsTheLadder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := begin(t, roam.DefaultPolicy())
		g.win("")
		g.live.Close()
		pass(2 * time.Minute) // up the ladder
		g.win("relay")
		pass(time.Minute)
		require.Equal(t, "relay", g.live.name)
		g.win("lan")
		g.session.Path(wifi)
		pass(time.Second)
		require.Equal(t, "lan", g.live.name)
		races := len(g.ran())
		g.live.Close() // after less than what counts as stable
		pass(1400 * time.Millisecond)
		assert.Len(t, g.ran(), races+1)
	})
}

// A live connection that proves itself just in time is kept, one that is just too late is not.
func TestProofHasItsTime(t *testing.T) {
	for late, kept := range map[time.Duration]bool{-time.Millisecond: true, time.Millisecond: false} {
		synctest.Test(t, func(t *testing.T) {
			g := begin(t, roam.DefaultPolicy())
			first := g.live
			first.answers = roam.Proof + late
			g.session.Path(wifi)
			pass(5 * time.Second)
			assert.Equal(t, kept, g.live == first)
		})
	}
}

// Without the rule, a connection on the endpoint in use stays although it is dead.
func TestWithoutProof(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := roam.DefaultPolicy()
		p.Proves = false
		g := begin(t, p)
		first := g.live
		first.dead = true
		g.session.Path(wifi)
		pass(400 * time.Millisecond)
		require.Len(t, g.links, 2)
		<-g.links[1].closed
		pass(5 * time.Second)
		assert.Same(t, first, g.live)
	})
}

// A session that ends while the live connection is asked for a sign of life closes both connections.
func TestSessionEndsInAProof(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := begin(t, roam.DefaultPolicy())
		g.live.dead = true
		g.session.Path(wifi)
		pass(time.Second)
		require.Len(t, g.links, 2)
		for _, l := range g.links {
			select {
			case <-l.closed:
				t.Fatal("closed before the proof is over")
			default:
			}
		}
	})
}
