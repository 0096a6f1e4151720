package tcp

// A chunk is a stretch of a stream's bytes. The sender's queue, the segments
// in flight and the receiver's queue share it; it goes back to its pool when
// the last of them lets go. Bytes once written never change, so a chunk may be
// appended to while a segment that refers to its front travels.
type chunk struct {
	refs  int
	class int8
	b     []byte
}

// classes are the capacities of chunks: small ones for messages, large ones for
// bulk, so that an idle connection holds nothing and a busy one few.
var classes = [...]int{512, 8 << 10, 64 << 10}

// A Pool keeps chunks and segments for reuse. It belongs to one network and is
// used under that network's lock.
type Pool struct {
	chunks   [len(classes)][]*chunk
	segments []*Segment
}

func (p *Pool) get(want int) *chunk {
	class := 0
	for class < len(classes)-1 && classes[class] < want {
		class++
	}
	free := p.chunks[class]
	if n := len(free); n > 0 {
		c := free[n-1]
		p.chunks[class] = free[:n-1]
		c.refs = 1
		return c
	}
	return &chunk{refs: 1, class: int8(class), b: make([]byte, 0, classes[class])}
}

func (p *Pool) release(c *chunk) {
	if c.refs--; c.refs == 0 {
		c.b = c.b[:0]
		p.chunks[c.class] = append(p.chunks[c.class], c)
	}
}

// A part is a stretch of a chunk.
type part struct {
	c      *chunk
	off, n int
}

func (p part) bytes() []byte { return p.c.b[p.off : p.off+p.n] }

// A sendQueue holds the bytes that were written and not yet acknowledged.
type sendQueue struct {
	chunks []queued
	head   int
}

type queued struct {
	seq int64 // of the first byte that the queue holds of c
	off int   // where that byte is in c
	c   *chunk
}

// write appends b at seq.
func (q *sendQueue) write(p *Pool, seq int64, b []byte) {
	for len(b) > 0 {
		var c *chunk
		if n := len(q.chunks); n > q.head {
			if tail := q.chunks[n-1].c; len(tail.b) < cap(tail.b) {
				c = tail
			}
		}
		if c == nil {
			if q.head > 0 && len(q.chunks) == cap(q.chunks) {
				n := copy(q.chunks, q.chunks[q.head:])
				clear(q.chunks[n:])
				q.chunks, q.head = q.chunks[:n], 0
			}
			c = p.get(len(b))
			q.chunks = append(q.chunks, queued{seq: seq, c: c})
		}
		n := min(len(b), cap(c.b)-len(c.b))
		c.b = append(c.b, b[:n]...)
		b, seq = b[n:], seq+int64(n)
	}
}

// slice appends references to the n bytes at seq to parts.
func (q *sendQueue) slice(parts []part, seq int64, n int) []part {
	lo, hi := q.head, len(q.chunks)
	for hi-lo > 1 { // the last chunk that starts at or before seq
		if mid := (lo + hi) / 2; q.chunks[mid].seq <= seq {
			lo = mid
		} else {
			hi = mid
		}
	}
	for ; n > 0; lo++ {
		e := q.chunks[lo]
		off := e.off + int(seq-e.seq)
		k := min(n, len(e.c.b)-off)
		e.c.refs++
		parts = append(parts, part{e.c, off, k})
		seq, n = seq+int64(k), n-k
	}
	return parts
}

// acked lets go of what lies before seq; end is the end of all that was written.
func (q *sendQueue) acked(p *Pool, seq, end int64) {
	for q.head < len(q.chunks) {
		last := end
		if q.head+1 < len(q.chunks) {
			last = q.chunks[q.head+1].seq
		}
		if e := &q.chunks[q.head]; last > seq {
			e.off += int(max(seq, e.seq) - e.seq)
			e.seq = max(seq, e.seq)
			return
		}
		p.release(q.chunks[q.head].c)
		q.chunks[q.head] = queued{}
		q.head++
	}
	q.chunks, q.head = q.chunks[:0], 0
	if cap(q.chunks) > 64 {
		q.chunks = nil
	}
}

func (q *sendQueue) drop(p *Pool) {
	for _, e := range q.chunks[q.head:] {
		p.release(e.c)
	}
	*q = sendQueue{}
}

// A recvQueue holds the bytes that arrived in order and were not yet read.
type recvQueue struct {
	parts []part
	head  int
	n     int
}

func (q *recvQueue) push(ps []part) {
	if q.head > 0 && len(q.parts)+len(ps) > cap(q.parts) {
		n := copy(q.parts, q.parts[q.head:])
		clear(q.parts[n:])
		q.parts, q.head = q.parts[:n], 0
	}
	q.parts = append(q.parts, ps...)
	for _, p := range ps {
		q.n += p.n
	}
}

func (q *recvQueue) read(pool *Pool, b []byte) (n int) {
	for n < len(b) && q.head < len(q.parts) {
		p := &q.parts[q.head]
		k := copy(b[n:], p.bytes())
		n += k
		p.off, p.n = p.off+k, p.n-k
		if p.n == 0 {
			pool.release(p.c)
			*p = part{}
			q.head++
		}
	}
	q.n -= n
	if q.head == len(q.parts) {
		q.parts, q.head = q.parts[:0], 0
		if cap(q.parts) > 256 {
			q.parts = nil
		}
	}
	return n
}

func (q *recvQueue) drop(pool *Pool) {
	for _, p := range q.parts[q.head:] {
		pool.release(p.c)
	}
	*q = recvQueue{}
}

// trim cuts the first n bytes off ps.
func trim(pool *Pool, ps []part, n int) []part {
	for n > 0 {
		p := &ps[0]
		k := min(n, p.n)
		p.off, p.n, n = p.off+k, p.n-k, n-k
		if p.n == 0 {
			pool.release(p.c)
			ps = ps[1:]
		}
	}
	return ps
}
