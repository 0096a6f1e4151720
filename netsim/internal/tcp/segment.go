package tcp

import (
	"strings"
	"time"
)

// Flags of a segment.
type Flags uint8

// The flags that matter here; PSH and URG tell a Go program nothing.
const (
	SYN Flags = 1 << iota
	ACK
	FIN
	RST
)

// String lists the flags, joined by -.
func (f Flags) String() string {
	var s []string
	for i, name := range [...]string{"SYN", "ACK", "FIN", "RST"} {
		if f&(1<<i) != 0 {
			s = append(s, name)
		}
	}
	return strings.Join(s, "-")
}

// A Range is a stretch of sequence numbers, [From, To).
type Range struct{ From, To int64 }

// A Segment is what one end sends the other. Sequence numbers are 64 bits wide
// and relative: the SYN has number 0, the first byte 1.
type Segment struct {
	Flags Flags
	Seq   int64
	Ack   int64
	Right int64 // the right edge of the window: the first number that may not be sent
	Len   int   // payload, in bytes

	// Stamp says when the segment was sent, Echo which stamp of the peer its
	// acknowledgement answers; 0 is none. They are a nanosecond more than the
	// time.
	Stamp, Echo time.Duration

	// Again marks a retransmission, Probe a keep-alive or window probe.
	Again, Probe bool

	parts []part
	sack  []Range
	pool  *Pool
}

// Sack is the ranges that the sender of the segment holds beyond Ack.
func (s *Segment) Sack() []Range { return s.sack }

// NewSegment takes a segment from the pool.
func (p *Pool) NewSegment() *Segment {
	if n := len(p.segments); n > 0 {
		s := p.segments[n-1]
		p.segments = p.segments[:n-1]
		return s
	}
	return &Segment{pool: p}
}

// Free gives the segment back, with its hold on the payload.
func (s *Segment) Free() {
	for _, p := range s.parts {
		s.pool.release(p.c)
	}
	parts, sack := s.parts[:0], s.sack[:0]
	if cap(parts) > 64 {
		parts = nil
	}
	*s = Segment{pool: s.pool, parts: parts, sack: sack}
	s.pool.segments = append(s.pool.segments, s)
}

// Clone makes a second segment with the same content, as a network does that
// duplicates packets.
func (s *Segment) Clone() *Segment {
	c := s.pool.NewSegment()
	parts, sack := c.parts, c.sack
	*c = *s
	c.parts, c.sack = append(parts, s.parts...), append(sack, s.sack...)
	for _, p := range c.parts {
		p.c.refs++
	}
	return c
}

// AppendPayload appends the payload's bytes to b.
func (s *Segment) AppendPayload(b []byte) []byte {
	for _, p := range s.parts {
		b = append(b, p.bytes()...)
	}
	return b
}

// end is the number after the segment's last.
func (s *Segment) end() int64 {
	n := s.Seq + int64(s.Len)
	if s.Flags&FIN != 0 {
		n++
	}
	return n
}
