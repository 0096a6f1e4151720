package tcp

import (
	"container/heap"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"syscall"
	"time"
)

// An adversary is what lies between two ends. All shares are 0 to 1.
type adversary struct {
	seed                     uint64
	loss, duplicate          float64
	delay, jitter            time.Duration // jitter reorders
	dark                     []span        // nothing passes
	oneWay                   bool          // dark for what the second end sends only
	mss                      []int         // of segments, one after the other
	burst                    int           // segments in one piece
	sendBuffer, recvBuffer   int
	noDelay, together, eager bool // together: both open at once; eager: reads at once
	resize                   bool // programs change the sizes of their buffers
}

type span struct{ from, to time.Duration }

// A script is what the program at an end does.
type script struct {
	total     int // bytes to write
	chunk     int // at most, in one write or read
	pause     time.Duration
	quitsAt   time.Duration // closes then, whatever has happened
	aborts    bool          // with a reset
	linger    bool          // half-closes when all is written, and closes when both directions are through; otherwise it just closes
	keepAlive bool
}

// A world is two ends, their programs and the adversary between them.
type world struct {
	adversary
	rng    *rand.Rand
	pool   Pool
	now    time.Duration
	ends   [2]*party
	queue  deliveries
	order  int
	alive  int // segments that the world holds
	chunks map[*chunk]bool
	steps  int
}

type party struct {
	Endpoint
	w        *world
	other    *party
	script   script
	wrote    int
	got      int
	end      string // how the stream ended: EOF or an error
	shut     bool
	gone     bool // the program is through with it
	began    bool
	opened   bool
	tickAt   time.Duration
	writeErr error
	untold   syscall.Errno // an error that the program had not seen when it closed
	wrong    string
}

type delivery struct {
	at    time.Duration
	order int
	to    *party
	s     *Segment
}

type deliveries []delivery

func (q deliveries) Len() int { return len(q) }
func (q deliveries) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].order < q[j].order
}
func (q deliveries) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *deliveries) Push(x any)   { *q = append(*q, x.(delivery)) }
func (q *deliveries) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

func newWorld(a adversary, scripts [2]script) *world {
	w := &world{adversary: a, rng: rand.New(rand.NewPCG(a.seed, 7)), chunks: map[*chunk]bool{}}
	for i, s := range scripts {
		p := &party{w: w, script: s, tickAt: Never}
		p.Init(p, &w.pool, Config{SendBuffer: a.sendBuffer, RecvBuffer: a.recvBuffer, SYNRetries: 16, SYNACKRetries: 16, Retries: 15})
		p.NoDelay = a.noDelay
		if s.keepAlive {
			p.KeepIdle, p.KeepInterval, p.KeepCount = 15*time.Second, 15*time.Second, 9
		}
		w.ends[i] = p
	}
	w.ends[0].other, w.ends[1].other = w.ends[1], w.ends[0]
	return w
}

// SegmentSize changes while the world goes on, as that of a path may.
func (p *party) SegmentSize() (mss, burst int) {
	mss = p.w.mss[int(p.w.now/time.Second)%len(p.w.mss)]
	return mss, mss * p.w.burst
}

// Emit hands a segment to the adversary.
func (p *party) Emit(now time.Duration, s *Segment) {
	w := p.w
	for _, part := range s.parts {
		w.chunks[part.c] = true
	}
	copies := 1
	if w.rng.Float64() < w.duplicate {
		copies = 2
	}
	if w.rng.Float64() < w.loss || w.isDark(p) {
		copies--
	}
	for range copies {
		at := now + w.delay
		if w.jitter > 0 {
			at += time.Duration(w.rng.Int64N(int64(w.jitter)))
		}
		w.order++
		heap.Push(&w.queue, delivery{at, w.order, p.other, s.Clone()})
		w.alive++
	}
	s.Free()
}

func (w *world) isDark(from *party) bool {
	if w.oneWay && from == w.ends[0] {
		return false
	}
	return slices.ContainsFunc(w.dark, func(s span) bool { return w.now >= s.from && w.now < s.to })
}

// deliver gives a segment to the end that it is for, and to nobody where that is
// closed: its owner answers with a RST.
func (p *party) deliver(s *Segment) {
	p.w.alive--
	switch {
	case !p.began && s.Flags&(SYN|ACK|RST) == SYN:
		p.began = true
		p.Accept(p.w.now, s)
		s.Free()
	case p.State() == Closed:
		if s.Flags&RST == 0 {
			r := p.w.pool.NewSegment()
			r.Flags, r.Seq, r.Ack = RST|ACK, s.Ack, s.end()
			p.Emit(p.w.now, r)
		}
		s.Free()
	default:
		p.Input(p.w.now, s)
	}
}

// settle lets the program know.
func (p *party) settle() {
	ev := p.TakeEvents()
	if s := contradiction(&p.Endpoint); s != "" && p.wrong == "" {
		p.wrong = s
	}
	p.opened = p.opened || ev&(Opened|Died) != 0
	if ev != 0 && p.opened && !p.gone {
		p.turnAt(p.w.now)
	}
}

// turnAt gives the program a turn, soon after that.
func (p *party) turnAt(at time.Duration) {
	if !p.w.eager {
		at += time.Duration(p.w.rng.Int64N(int64(p.script.pause)))
	}
	p.tickAt = min(p.tickAt, at)
}

// tick is a turn of the program. It has another when it got on, or else when
// the end says that something has changed.
func (p *party) tick() {
	w := p.w
	p.tickAt = Never
	sc := &p.script
	before := p.wrote + p.got
	defer func() {
		if p.wrote+p.got > before && !p.gone {
			p.turnAt(w.now)
		}
	}()
	if w.now >= sc.quitsAt {
		p.quit(sc.aborts)
		return
	}
	if w.resize && w.rng.IntN(10) == 0 {
		p.SetBuffers(1+w.rng.IntN(5000), 1+w.rng.IntN(5000))
	}
	if left := sc.total - p.wrote; left > 0 && p.writeErr == nil {
		k, err, _ := p.Write([]byte(stream(int64(1+p.wrote), min(left, 1+w.rng.IntN(sc.chunk)))))
		p.wrote += k
		p.writeErr = err
	}
	if (p.wrote == sc.total || p.writeErr != nil) && !p.shut {
		p.shut = true
		if !sc.linger {
			p.quit(false)
			return
		}
		p.CloseWrite()
	}
	if p.end == "" {
		b := make([]byte, 1+w.rng.IntN(sc.chunk))
		k, err, done := p.Read(b)
		switch {
		case string(b[:k]) != stream(int64(1+p.got), k):
			p.wrong = fmt.Sprintf("read %q at byte %d", b[:k], p.got)
		case err == io.EOF:
			p.end = "EOF"
		case err != nil:
			p.end = err.Error()
		case done && k == 0:
			p.wrong = "a read of nothing"
		}
		p.got += k
	}
	if p.end != "" && p.shut && p.Flushed() {
		p.quit(false)
		return
	}
	p.UpdateWindow(w.now)
	p.Output(w.now)
}

// turn is when the program has its next turn.
func (p *party) turn() time.Duration {
	if p.opened && !p.gone {
		return min(p.tickAt, p.script.quitsAt)
	}
	return p.tickAt
}

func (p *party) quit(abort bool) {
	p.gone, p.tickAt = true, Never
	p.untold = p.Err()
	p.Close(p.w.now, abort)
	p.Output(p.w.now)
}

// run goes on until nothing is left to do, and says what was wrong.
func (w *world) run() error {
	w.ends[0].began = true
	w.ends[0].Connect(0)
	if w.together {
		w.ends[1].began = true
		w.ends[1].Connect(0)
	}
	for w.steps = 0; ; w.steps++ {
		for _, p := range w.ends {
			p.settle()
			if p.wrong != "" {
				return fmt.Errorf("at %v, %s: %s", w.now, p.StateName(), p.wrong)
			}
		}
		next := Never
		for _, p := range w.ends {
			next = min(next, p.Next(), p.turn())
		}
		if len(w.queue) > 0 {
			next = min(next, w.queue[0].at)
		}
		if next == Never {
			break
		}
		if w.steps > 300000 {
			return fmt.Errorf("at %v it still goes on: %s and %s", w.now, w.ends[0].StateName(), w.ends[1].StateName())
		}
		w.now = max(w.now, next)
		if len(w.queue) > 0 && w.queue[0].at <= w.now {
			d := heap.Pop(&w.queue).(delivery)
			d.to.deliver(d.s)
			continue
		}
		for _, p := range w.ends {
			if p.turn() <= w.now {
				p.tick()
			}
			if p.Next() <= w.now {
				p.Timer(w.now)
			}
		}
	}
	return w.remains()
}

// remains says what is left when nothing is left to do.
func (w *world) remains() error {
	for i, p := range w.ends {
		switch {
		case p.State() != Closed:
			return fmt.Errorf("end %d stays in %s", i, p.StateName())
		case p.opened && !p.gone:
			return fmt.Errorf("the program at end %d still waits", i)
		case p.got > p.other.wrote:
			return fmt.Errorf("end %d read %d of %d bytes", i, p.got, p.other.wrote)
		}
	}
	if w.alive != 0 {
		return fmt.Errorf("%d segments are nowhere", w.alive)
	}
	for c := range w.chunks {
		if c.refs != 0 {
			return fmt.Errorf("a chunk of %d bytes is held %d times", len(c.b), c.refs)
		}
	}
	return nil
}
