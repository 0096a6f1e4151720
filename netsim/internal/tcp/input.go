package tcp

import (
	"syscall"
	"time"
)

// Input takes a segment from the peer and frees it.
func (e *Endpoint) Input(now time.Duration, s *Segment) {
	defer s.Free()
	switch e.state {
	case Closed:
		return
	case SynSent:
		e.inputSynSent(now, s)
		return
	case TimeWaiting:
		e.inputTimeWait(now, s)
		return
	}
	if s.Flags&RST != 0 {
		e.inputReset(s)
		return
	}
	e.heardAt, e.probes = now, 0
	e.keepStamp(s)
	switch opening := e.state == SynReceived; {
	case opening && s.Flags&(SYN|ACK) == SYN:
		e.sendSYN(now) // it did not hear our answer
		return
	case opening && s.Ack < 1:
		return
	case opening && s.Ack > e.nxt:
		e.refuse(now, s)
		return
	case opening:
		e.inputAck(now, s)
		e.open(now)
	case s.Flags&SYN != 0:
		e.ack(now) // our acknowledgement was lost
		return
	case s.Ack > e.nxt:
		return // acknowledges what was never sent
	default:
		e.inputAck(now, s)
	}
	if e.state == Established {
		e.inputData(now, s)
	}
	e.Output(now)
}

func (e *Endpoint) inputSynSent(now time.Duration, s *Segment) {
	switch {
	case s.Flags&RST != 0:
		if s.Flags&ACK != 0 && s.Ack == 1 {
			e.fail(syscall.ECONNREFUSED)
		}
	case s.Flags&ACK != 0 && s.Ack != 1:
		e.refuse(now, s)
	case s.Flags&SYN != 0:
		e.rcvNxt = 1
		e.heardAt, e.echo = now, s.Stamp
		if s.Flags&ACK == 0 { // both ends opened at once
			e.state = SynReceived
			e.flight = e.flight[:0] // the SYN-ACK stands for the SYN
			e.sendSYN(now)
			return
		}
		e.inputAck(now, s)
		e.open(now)
		e.ackNow = true
		e.Output(now)
	}
}

// refuse answers a segment that acknowledges what this life of the connection
// never sent: its sender is left over from an earlier one (RFC 9293, 3.5.1).
func (e *Endpoint) refuse(now time.Duration, s *Segment) {
	r := e.pool.NewSegment()
	r.Flags, r.Seq = RST, s.Ack
	e.emit(now, r)
}

// inputReset follows tcp_reset: what the error is depends on what the peer had
// said before.
func (e *Endpoint) inputReset(s *Segment) {
	switch {
	case s.Seq < e.rcvNxt-1 || s.Seq > e.advertised:
	case e.state == SynReceived && !e.active:
		e.die() // no program knows of it yet
	case e.finReceived && !e.finQueued:
		e.fail(syscall.EPIPE)
	default:
		e.fail(syscall.ECONNRESET)
	}
}

// inputTimeWait acknowledges what the peer repeats, since it does not know that
// all of it arrived.
func (e *Endpoint) inputTimeWait(now time.Duration, s *Segment) {
	switch {
	case s.Flags&RST != 0:
		e.die()
	case s.end() > s.Seq || s.Seq < e.rcvNxt:
		e.closeAt = now + TimeWait
		e.ack(now)
	}
}

// inputAck takes the acknowledgement and the window of s.
func (e *Endpoint) inputAck(now time.Duration, s *Segment) {
	if s.Right > e.right {
		e.persistAt, e.persisted = never, 0
	}
	e.setRight(s.Right)
	e.stalledAt = never
	progress := s.Ack > e.una
	if progress {
		e.ackedUpTo(now, s.Ack, s.Echo)
	}
	if len(s.sack) > 0 {
		e.markSacked(s.sack)
	}
	if e.sacked > 0 || e.reorderAt != never {
		e.detectLoss(now)
	}
	if progress {
		if e.una < e.nxt {
			e.rtoAt = now + e.rto(e.backoff)
		} else {
			e.rtoAt = never
		}
	}
	if e.finAcked() {
		if e.finReceived {
			e.finish(now)
		} else if e.detached && e.closeAt == never {
			e.closeAt = now + FinTimeout
		}
	}
}

// ackedUpTo takes a cumulative acknowledgement that is news, and the stamp that
// it answers.
func (e *Endpoint) ackedUpTo(now time.Duration, ack int64, echo time.Duration) {
	e.sampleRTT(now, echo)
	e.judge(&e.flight[e.flightHead], echo)
	for e.flightHead < len(e.flight) {
		f := &e.flight[e.flightHead]
		if f.seq >= ack {
			break
		}
		n := min(f.end, ack) - f.seq
		if f.sacked {
			e.sacked -= n
		} else if f.lost {
			e.lost -= n
		}
		if !f.sacked {
			e.rackSeen(f)
		}
		if f.end > ack {
			f.seq = ack
			break
		}
		e.flightHead++
	}
	if e.flightHead == len(e.flight) {
		e.flight, e.flightHead = e.flight[:0], 0
	} else if e.flightHead > 64 && e.flightHead > len(e.flight)/2 {
		e.flight = append(e.flight[:0], e.flight[e.flightHead:]...)
		e.flightHead = 0
	}
	acked := ack - e.una
	e.una = ack
	e.backoff = 0
	e.sendq.acked(e.pool, min(ack, e.end), e.end)
	if e.recovering && ack >= e.recover {
		e.recovered()
	}
	if !e.recovering || e.restarting {
		e.grow(acked)
	}
	if space := e.Space(); space >= e.cfg.SendBuffer/3 || space == e.cfg.SendBuffer {
		e.events |= Writable
	}
	if e.Flushed() {
		e.events |= Writable
	}
}

// grow is slow start and congestion avoidance (RFC 5681).
func (e *Endpoint) grow(acked int64) {
	mss, _ := e.env.SegmentSize()
	if e.cwnd < e.ssthresh {
		e.cwnd += acked
	} else {
		e.cwnd += max(1, int64(mss)*acked/e.cwnd)
	}
	e.cwnd = min(e.cwnd, maxCongestion)
}

// strayEvery is how often a segment without payload from before the window is
// answered: tcp_invalid_ratelimit, without which two ends whose acknowledgements
// overtake each other would answer answers for ever.
const strayEvery = 500 * time.Millisecond

// inputData takes the payload and the FIN of s.
func (e *Endpoint) inputData(now time.Duration, s *Segment) {
	end := s.end()
	if s.Len == 0 && s.Flags&FIN == 0 {
		switch {
		case s.Probe:
			e.ackNow = true
		case s.Seq < e.rcvNxt && now >= e.strayAt:
			e.ackNow = true
			e.strayAt = now + strayEvery
		}
		return
	}
	if end <= e.rcvNxt || e.finReceived {
		e.ackNow = true // known: the acknowledgement was lost
		return
	}
	if (e.detached || e.shutRead && e.finQueued) && s.Len > 0 {
		e.Abort(now) // nobody will read it
		return
	}
	if s.Seq+int64(s.Len) > e.window() {
		e.ackNow = true // beyond the window
		return
	}
	parts := s.parts
	if s.Seq < e.rcvNxt {
		parts = trim(e.pool, parts, int(min(e.rcvNxt-s.Seq, int64(s.Len))))
		s.Len -= int(min(e.rcvNxt-s.Seq, int64(s.Len)))
		s.Seq = e.rcvNxt
	}
	if s.Seq > e.rcvNxt {
		e.insertAhead(ahead{seq: s.Seq, n: s.Len, fin: s.Flags&FIN != 0, parts: append([]part(nil), parts...)})
		s.parts = s.parts[:0]
		e.ackNow = true
		return
	}
	e.takeInOrder(parts, s.Len, s.Flags&FIN != 0)
	s.parts = s.parts[:0]
	for len(e.beyond) > 0 && e.beyond[0].seq <= e.rcvNxt {
		a := e.beyond[0]
		e.beyond = e.beyond[1:]
		e.beyondBytes -= a.n
		e.ackNow = true
		skip := int(min(e.rcvNxt-a.seq, int64(a.n)))
		a.parts = trim(e.pool, a.parts, skip)
		e.takeInOrder(a.parts, a.n-skip, a.fin)
	}
	if len(e.beyond) > 0 {
		e.ackNow = true
	}
	if mss, _ := e.env.SegmentSize(); e.unacked >= 2*mss {
		e.ackNow = true
	}
	if !e.ackNow && !e.ackPending {
		e.ackPending = true
		e.delackAt = now + DelayedACK
	}
	if e.finReceived && e.finAcked() {
		e.finish(now)
	}
}

// takeInOrder appends bytes to the receive queue, and the FIN behind them.
func (e *Endpoint) takeInOrder(parts []part, n int, fin bool) {
	e.recvq.push(parts)
	e.rcvNxt += int64(n)
	e.unacked += n
	e.events |= Readable
	if fin {
		e.finReceived = true
		e.rcvNxt++
		e.ackNow = true
		e.dropBeyond() // nothing comes behind a FIN
	}
}

// insertAhead keeps a where it belongs; what is there already is not kept twice.
func (e *Endpoint) insertAhead(a ahead) {
	e.latest = a.seq
	i := 0
	for i < len(e.beyond) && e.beyond[i].seq < a.seq {
		i++
	}
	covered := i > 0 && e.beyond[i-1].seq+int64(e.beyond[i-1].n) >= a.seq+int64(a.n) && !a.fin ||
		i < len(e.beyond) && e.beyond[i].seq == a.seq && e.beyond[i].n >= a.n && (e.beyond[i].fin || !a.fin)
	if covered {
		for _, p := range a.parts {
			e.pool.release(p.c)
		}
		return
	}
	e.beyond = append(e.beyond, ahead{})
	copy(e.beyond[i+1:], e.beyond[i:])
	e.beyond[i] = a
	e.beyondBytes += a.n
}

// finish is the end of both directions.
func (e *Endpoint) finish(now time.Duration) {
	if e.ackNow {
		e.ack(now)
	}
	if e.activeClose {
		e.state = TimeWaiting
		e.events |= Readable | Writable
		e.rtoAt, e.reorderAt, e.persistAt, e.delackAt = never, never, never, never
		e.closeAt = now + TimeWait
		return
	}
	e.die()
}
