package transportrace

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/seed-5a7f77c4/deadair/selection/route"
)

// keepAlive is the time between two signs of life, well below what makes a tunnel an orphan.
const keepAlive = 4 * time.Minute

// Conn is an authenticated connection.
type Conn struct {
	phone  *Phone
	ws     *websocket.Conn
	v2     bool
	record *Connected
	live   chan struct{} // closed when it is adopted
	done   chan struct{}
	once   sync.Once
}

// Close ends the connection without waiting for the other end's goodbye.
func (c *Conn) Close() error { return c.end(false) }

func (c *Conn) end(lost bool) (err error) {
	c.once.Do(func() {
		c.phone.over(c.record, lost)
		err = c.phone.subject.Close(c.ws)
		close(c.done)
	})
	return err
}

// keep reads the connection from its adoption to its end, and gives signs of life: an idle tunnel without them would be taken for an
// orphan.
func (p *Phone) keep(ws *websocket.Conn, candidate route.Candidate, v2 bool) *Conn {
	c := &Conn{phone: p, ws: ws, v2: v2, record: p.made(candidate), live: make(chan struct{}), done: make(chan struct{})}
	go func() {
		select { // what comes before is not read yet: another connection serves
		case <-c.live:
		case <-c.done:
			return
		}
		for {
			m, err := receive(context.Background(), ws)
			if err != nil {
				c.end(true)
				return
			}
			p.counted(m.N)
		}
	}()
	go func() {
		beat := time.NewTicker(keepAlive)
		defer beat.Stop()
		for {
			select {
			case <-c.done:
				return
			case <-beat.C:
				ctx, cancel := context.WithTimeout(context.Background(), keepAlive/2)
				err := ws.Ping(ctx)
				cancel()
				if err != nil {
					c.end(true)
					return
				}
			}
		}
	}()
	return c
}

// flow is how the machine's stream fares.
type flow struct {
	count, lost int
	gap         time.Duration // longest time without a new number
	last        time.Time
	silences    []Silence
}

// Silence is a time without a number of the stream, of two ticks or more.
type Silence struct{ From, To time.Duration }

// counted takes a number of the stream; while two connections are open, both bring it.
func (p *Phone) counted(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := &p.flow
	if n <= f.count {
		return
	}
	now := time.Now()
	if f.count > 0 {
		gap := now.Sub(f.last)
		if gap >= 2*tick {
			f.silences = append(f.silences, Silence{p.w.now() - gap, p.w.now()})
		}
		f.gap = max(f.gap, gap)
		f.lost += n - f.count - 1
	}
	f.count, f.last = n, now
}

// received is the last number of the stream.
func (p *Phone) received() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.flow.count
}

// Flow says how the stream fares: the last number, numbers lost, longest time without a new one, the present included.
func (p *Phone) Flow() (last, lost int, gap time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.flow
	if f.count > 0 {
		f.gap = max(f.gap, time.Since(f.last))
	}
	return f.count, f.lost, f.gap
}

func (p *Phone) silences() []Silence {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.flow.silences)
}
