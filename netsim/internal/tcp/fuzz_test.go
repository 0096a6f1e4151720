package tcp

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// tape hands out the bytes of a fuzz input; zeros when they are used up.
type tape struct{ b []byte }

func (p *tape) byte() byte {
	if len(p.b) == 0 {
		return 0
	}
	c := p.b[0]
	p.b = p.b[1:]
	return c
}

// near is a number close to at, or one of any size.
func (p *tape) near(at int64) int64 {
	switch d := int8(p.byte()); d {
	case 127:
		var b [8]byte
		for i := range b {
			b[i] = p.byte()
		}
		return int64(binary.LittleEndian.Uint64(b[:]))
	case 126:
		return at + 1000*int64(int8(p.byte()))
	default:
		return at + int64(d)
	}
}

// segment is any segment, as a hostile or forgetful peer may send it.
func (p *tape) segment(r *rig) *Segment {
	s := r.pool.NewSegment()
	s.Flags = Flags(p.byte()) & (SYN | ACK | FIN | RST)
	s.Seq, s.Ack, s.Right = p.near(r.rcvNxt), p.near(r.una), p.near(r.right)
	s.Stamp, s.Echo = time.Duration(p.near(int64(r.now))), time.Duration(p.near(int64(r.now)))
	s.Probe = s.Flags == 0
	payload(r.pool.fill, s, int(p.byte())%200)
	for range p.byte() % 4 {
		s.sack = append(s.sack, Range{p.near(r.una), p.near(r.nxt)})
	}
	return s
}

// FuzzEndpoint: whatever the peer sends and the program calls, an end keeps its
// own rules, and is gone a while after the program has closed it.
func FuzzEndpoint(f *testing.F) {
	f.Add([]byte{1, 9, 3, 0, 1, 10, 0, 0, 4, 100})               // opens, is answered, writes
	f.Add([]byte{0, 9, 2, 0, 1, 10, 5, 0, 5, 6, 6, 6, 6, 6})     // accepts, data, half-close, time
	f.Add([]byte{1, 9, 1, 0, 0, 50, 0, 0, 9, 3, 0, 1, 50, 0, 0}) // both open at once
	f.Add([]byte{1, 9, 2, 0, 0, 50, 0, 0, 4, 9, 6, 6, 6})        // an acknowledgement of nothing
	f.Add([]byte{1, 9, 3, 0, 1, 9, 0, 0, 4, 200, 9, 2, 0, 0, 9, 0, 1, 1, 200, 6, 6})
	f.Fuzz(func(t *testing.T, input []byte) {
		p := &tape{input}
		r := newRig(t)
		if p.byte()&1 != 0 {
			r.Connect(0)
		} else {
			s := p.segment(r)
			r.Accept(0, s)
			s.Free()
		}
		chunks := map[*chunk]bool{}
		for len(p.b) > 0 && r.state != Closed {
			switch p.byte() % 10 {
			case 0:
				r.CloseRead()
			case 1:
				r.SetBuffers(1+int(p.byte()), 1+int(p.byte()))
			case 2:
				r.Read(make([]byte, p.byte()))
			case 3:
				r.mss = 1 + int(p.byte())
				r.burst = r.mss * (1 + int(p.byte()%4))
			case 4:
				r.Write(make([]byte, 4*int(p.byte())))
			case 5:
				r.CloseWrite()
			case 6:
				r.run(min(r.Next(), r.now+time.Hour))
			case 7:
				keepAlive(r)
				r.UserTimeout = time.Duration(p.byte()) * time.Second
			case 8:
				r.NoDelay = !r.NoDelay
			default:
				s := p.segment(r)
				for _, part := range s.parts {
					chunks[part.c] = true
				}
				r.Input(r.now, s)
			}
			r.flush()
			for _, q := range r.sendq.chunks[r.sendq.head:] {
				chunks[q.c] = true
			}
			r.out = nil
		}
		r.closeNow(p.byte()&1 != 0)
		for steps := 0; r.Next() != Never; steps++ {
			require.Less(t, steps, 10000, "timers without end")
			r.run(r.Next())
		}
		require.Equal(t, Closed, r.state)
		for c := range chunks {
			require.Zero(t, c.refs, "a chunk is still held")
		}
	})
}
