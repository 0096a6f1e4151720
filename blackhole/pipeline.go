package blackhole

import "time"

// item is what asks to pass: bytes or the end of the stream. fresh marks the first step of a new piece.
type item struct {
	p     []byte
	end   bool
	fresh bool
}

// decision is what the pipeline says about an item.
type decision struct {
	verb  verb
	n     int       // pass, drop: bytes of the item that are settled
	out   []byte    // pass: what goes on in their place; the same memory if nothing shaped them
	until time.Time // hold: as in ruling
}

// stage is one fault on one connection.
type stage struct {
	fault   *Fault
	machine Machine
	tracks  [2]track
	active  bool // within a step: as found by its first pass
	lasting bool // it has been active since the last time it was hit
	done    bool // an action that has been performed
	hits    int64
	bytes   int64
}

func (s *stage) hit(n int) {
	if !s.lasting {
		s.lasting = true
		s.hits++
		s.fault.hits.Add(1)
	}
	s.bytes += int64(n)
	s.fault.bytes.Add(int64(n))
}

// look finds out whether the fault acts in direction d now.
func (s *stage) look(now time.Time, d Direction) bool {
	active := s.machine.Active(now)
	if !active {
		s.lasting = false
	}
	s.active = active && s.fault.On.has(d)
	return s.active
}

// act is the action of the fault, if it has one.
func (s *stage) act() action {
	if b, ok := s.fault.Do.how.(breakOff); ok {
		return action(b)
	}
	return actNone
}

// pipeline is the pure core: the faults of one connection, in order.
type pipeline struct{ stages []stage }

func newPipeline(faults []*Fault, now time.Time) pipeline {
	pl := pipeline{stages: make([]stage, len(faults))}
	for i, f := range faults {
		pl.stages[i] = stage{fault: f, machine: f.trigger().Arm(f.On, now)}
	}
	return pl
}

// step decides about the next bytes of an item, or its end. A pass or a drop settles them; after a hold the caller
// asks again with the same bytes, after an act it performs what due returns.
func (pl *pipeline) step(now time.Time, d Direction, it item) decision {
	p := it.p
	reached, verdict := len(pl.stages), pass
	for i := range pl.stages {
		s := &pl.stages[i]
		s.machine.Active(now) // lets a sequence move on, so that Begin reaches the trigger it waits for now
		s.machine.Begin(d, it.end)
		if !s.look(now, d) {
			if !it.end {
				p = p[:s.machine.Scan(d, p)]
			}
			continue
		}
		r := s.fault.Do.how.admit(&s.tracks[d.lane()], now, item{p: p, end: it.end, fresh: it.fresh})
		switch r.verb {
		case hold:
			s.hit(0)
			return decision{verb: hold, until: r.until}
		case act:
			return decision{verb: act}
		}
		if !it.end {
			if r.n > 0 {
				p = p[:min(len(p), r.n)]
			}
			p = p[:s.machine.Scan(d, p)]
		}
		if r.verb == drop {
			reached, verdict = i+1, drop
			break
		}
		p = s.fault.Do.how.shape(&s.tracks[d.lane()], d, p)
	}
	pl.commit(now, d, it, len(p), reached)
	return decision{verb: verdict, n: len(p), out: p}
}

// commit tells the first stages, down to the one that dropped it, that n bytes of the item passed.
func (pl *pipeline) commit(now time.Time, d Direction, it item, n, reached int) {
	p := it.p[:n]
	for i := range pl.stages[:reached] {
		s := &pl.stages[i]
		if !it.end {
			s.machine.Feed(d, p)
		}
		if s.active {
			s.hit(n)
			p = s.fault.Do.how.shape(&s.tracks[d.lane()], d, p)
			s.fault.Do.how.commit(&s.tracks[d.lane()], now, n)
		}
	}
}

// gate tells what becomes of bytes in direction d without settling any: pass, drop, or hold for as long as it takes.
func (pl *pipeline) gate(now time.Time, d Direction) verb {
	for i := range pl.stages {
		s := &pl.stages[i]
		if !s.look(now, d) {
			continue
		}
		switch s.fault.Do.how.(type) {
		case swallow:
			return drop
		case stall:
			s.hit(0)
			return hold
		}
	}
	return pass
}

// due returns the action that has become due, and its direction; each is returned once.
func (pl *pipeline) due(now time.Time) (action, Direction) {
	for i := range pl.stages {
		s := &pl.stages[i]
		if a := s.act(); a != actNone && !s.done && s.machine.Active(now) {
			s.done = true
			s.hit(0)
			return a, s.fault.On
		}
	}
	return actNone, 0
}

// free is the number of bytes that may pass in direction d with no fault touching or seeing them.
func (pl *pipeline) free(now time.Time, d Direction) int64 {
	n := int64(Unbounded)
	for i := range pl.stages {
		s := &pl.stages[i]
		if s.look(now, d) {
			return 0
		}
		n = min(n, s.machine.Free(d))
	}
	return n
}

// skip tells that n bytes, at most free, have passed.
func (pl *pipeline) skip(d Direction, n int64) {
	for i := range pl.stages {
		pl.stages[i].machine.Skip(d, n)
	}
}

// next is the earliest instant at which time alone may change something; zero if there is none.
func (pl *pipeline) next(now time.Time) time.Time {
	var next time.Time
	for i := range pl.stages {
		next = earlier(next, pl.stages[i].machine.Next(now))
	}
	return next
}

func (pl *pipeline) status(now time.Time) []Status {
	all := make([]Status, len(pl.stages))
	for i := range pl.stages {
		s := &pl.stages[i]
		all[i] = Status{Fault: s.fault, Active: s.machine.Active(now), Trigger: s.machine.String(), Hits: s.hits, Bytes: s.bytes}
	}
	return all
}
