package transportrace

import (
	"slices"
	"time"

	"github.com/seed-5a7f77c4/deadair/netsim"
	"github.com/seed-5a7f77c4/deadair/selection/race"
	"github.com/seed-5a7f77c4/deadair/selection/roam"
	"github.com/seed-5a7f77c4/deadair/selection/route"
)

// now is the time since the start of the story. What the network puts into one instant happens a nanosecond after the
// other; here it is one instant.
func (w *World) now() time.Duration { return w.Elapsed().Round(time.Microsecond) }

// records is what an app leaves behind.
type records struct {
	races    []Raced
	conns    []*Connected
	attempts []Attempted
}

// Raced is a race. Ended is 0 while it runs. Times are since the start of the story, those of the lanes since Began.
type Raced struct {
	Began, Ended time.Duration
	Cause        roam.Cause
	Path         route.Path
	Plan         race.Plan
	// Ran is the plan that was run last, Lanes what became of its slots.
	Ran   race.Plan
	Lanes []race.Lane
	Err   error
}

// Connected is an authenticated connection. Adopted is the time at which it became the live one, Ended its end; both are
// 0 for never. Lost says that the network ended it, and not the app.
type Connected struct {
	At, Adopted, Ended time.Duration
	Class              route.Class
	Key                route.Key
	Lost               bool
}

// Attempted is one candidate's attempt. Ended is 0 while it runs.
type Attempted struct {
	Candidate    route.Candidate
	Began, Ended time.Duration
}

func (p *Phone) began(r roam.Request, plan race.Plan) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	raced := Raced{Began: p.w.now(), Cause: r.Cause, Plan: plan}
	if r.Path != nil {
		raced.Path = *r.Path
	}
	p.records.races = append(p.records.races, raced)
	return len(p.records.races) - 1
}

func (p *Phone) ended(n int, won Outcome, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := &p.records.races[n]
	r.Ended, r.Ran, r.Lanes, r.Err = p.w.now(), won.Plan, won.Lanes, err
}

func (p *Phone) attempting(c route.Candidate) (over func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.records.attempts)
	p.records.attempts = append(p.records.attempts, Attempted{Candidate: c, Began: p.w.now()})
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.records.attempts[n].Ended = p.w.now()
	}
}

// made notes an authenticated connection.
func (p *Phone) made(candidate route.Candidate) *Connected {
	p.mu.Lock()
	defer p.mu.Unlock()
	made := &Connected{At: p.w.now(), Class: candidate.Class(), Key: candidate.Key()}
	p.records.conns = append(p.records.conns, made)
	return made
}

// over notes the end of a connection.
func (p *Phone) over(c *Connected, lost bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.Ended, c.Lost = p.w.now(), lost
}

// adopt makes a connection the live one.
func (p *Phone) adopt(won Outcome) {
	p.mu.Lock()
	defer p.mu.Unlock()
	won.Conn.record.Adopted = p.w.now()
	close(won.Conn.live)
}

// Races lists the races so far.
func (p *Phone) Races() []Raced {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.records.races)
}

// Roams lists the races so far that were no attempts to connect.
func (p *Phone) Roams() []Raced {
	return slices.DeleteFunc(p.Races(), func(r Raced) bool { return r.Cause == roam.Connect })
}

// Made lists the authenticated connections so far, those that were never adopted included.
func (p *Phone) Made() []Connected {
	p.mu.Lock()
	defer p.mu.Unlock()
	made := make([]Connected, len(p.records.conns))
	for i, c := range p.records.conns {
		made[i] = *c
	}
	return made
}

// Connections lists the connections that were adopted, in that order.
func (p *Phone) Connections() []Connected {
	adopted := slices.DeleteFunc(p.Made(), func(c Connected) bool { return c.Adopted == 0 })
	slices.SortStableFunc(adopted, func(a, b Connected) int { return int(a.Adopted - b.Adopted) })
	return adopted
}

// Attempts lists the attempts so far.
func (p *Phone) Attempts() []Attempted {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.records.attempts)
}

// Dial is a socket that the phone tried to open, as the network saw it.
type Dial struct {
	At time.Duration
	// To is "lan", "tailnet", "relay" or "account", or else the address.
	To   string
	Port uint16
}

// Dialled lists the sockets that the phone tried to open since then, by the packets that it sent, in that order.
func (w *World) Dialled(since time.Duration) []Dial {
	names := map[string]string{LAN: "lan", Tailnet: "tailnet", w.relayHost.Addr().String(): "relay"}
	var dials []Dial
	for _, e := range w.Net.Trace().Find(func(e netsim.Event) bool {
		return e.From == "phone" && e.Kind == netsim.SYN && !e.Again && e.Sent.Round(time.Microsecond) >= since
	}) {
		d := Dial{At: e.Sent.Round(time.Microsecond), To: e.Dst.Addr().String(), Port: e.Dst.Port()}
		if name, ok := names[d.To]; ok {
			d.To = name
		} else if e.To == "account.example" {
			d.To = "account"
		}
		dials = append(dials, d)
	}
	slices.SortStableFunc(dials, func(a, b Dial) int { return int(a.At - b.At) })
	return dials
}

// To gives those dials that went there.
func To(dials []Dial, names ...string) []Dial {
	return slices.DeleteFunc(slices.Clone(dials), func(d Dial) bool { return !slices.Contains(names, d.To) })
}

// order lists where the dials went, each place once, the account service left out.
func order(dials []Dial) (places []string) {
	for _, d := range dials {
		if d.To != "account" && !slices.Contains(places, d.To) {
			places = append(places, d.To)
		}
	}
	return places
}
