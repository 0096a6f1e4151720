package tcp

import "time"

// window is the right edge that this end could advertise now.
func (e *Endpoint) window() int64 {
	return max(e.advertised, e.rcvNxt+int64(max(0, e.cfg.RecvBuffer-e.recvq.n-e.beyondBytes)))
}

// emit sends s.
func (e *Endpoint) emit(now time.Duration, s *Segment) {
	s.Stamp = stampOf(now)
	e.env.Emit(now, s)
}

// acknowledge puts the acknowledgement and the window on s.
func (e *Endpoint) acknowledge(s *Segment) {
	e.advertised = e.window()
	s.Flags |= ACK
	s.Ack, s.Right = e.rcvNxt, e.advertised
	s.sack = e.ranges(s.sack)
	s.Echo, e.ackSent = e.echo, e.rcvNxt
	e.ackNow, e.ackPending, e.delackAt, e.unacked = false, false, never, 0
}

// ranges are the blocks of a selective acknowledgement: the one with what came
// last and those next below it, which came before it as a rule. The sender adds
// up what it is told, so that in the end it knows all (RFC 2018, section 4).
func (e *Endpoint) ranges(to []Range) []Range {
	last := len(e.beyond) - 1
	for last >= 0 && e.beyond[last].seq > e.latest {
		last--
	}
	if last < 0 {
		last = len(e.beyond) - 1
	}
	for i := last; i >= 0; i-- {
		a := &e.beyond[i]
		n := len(to)
		switch {
		case n > 0 && a.end() >= to[n-1].From:
			to[n-1] = Range{min(a.seq, to[n-1].From), max(a.end(), to[n-1].To)}
		case n < maxSackRanges:
			to = append(to, Range{a.seq, a.end()})
		default:
			return to
		}
	}
	return to
}

// ack sends an acknowledgement and nothing else.
func (e *Endpoint) ack(now time.Duration) {
	s := e.pool.NewSegment()
	s.Seq = e.nxt
	e.acknowledge(s)
	e.emit(now, s)
}

// UpdateWindow tells the peer that there is room again.
func (e *Endpoint) UpdateWindow(now time.Duration) {
	if e.WantsWindowUpdate() {
		e.ack(now)
	}
}

// probe sends what the peer must answer: a number it has had already.
func (e *Endpoint) probe(now time.Duration) {
	s := e.pool.NewSegment()
	s.Seq = e.una - 1
	s.Probe = true
	e.acknowledge(s)
	e.emit(now, s)
}

// inFlight is how many numbers are on the way, as far as this end can tell.
func (e *Endpoint) inFlight() int64 { return e.nxt - e.una - e.sacked - e.lost }

// Output sends what may be sent: lost segments again, then new ones, then an
// acknowledgement that is due.
func (e *Endpoint) Output(now time.Duration) {
	if e.state == Established {
		mss, burst := e.env.SegmentSize()
		if e.lost > 0 {
			e.retransmit(now, burst)
		}
		if e.lost == 0 {
			e.sendNew(now, int64(mss), int64(burst))
		}
		e.armPersist(now)
	}
	if e.ackNow && (e.state == Established || e.state == TimeWaiting) {
		e.ack(now)
	}
}

func (e *Endpoint) retransmit(now time.Duration, burst int) {
	for i := e.flightHead; i < len(e.flight); i++ {
		f := &e.flight[i]
		if !f.lost {
			continue
		}
		if n := e.inFlight(); n > 0 && n+(f.end-f.seq) > e.cwnd && !e.resend {
			return
		}
		e.resend = false
		data := f.end - f.seq
		if f.fin {
			data--
		}
		if data > int64(burst) { // the path takes less than when this was sent
			rest := *f
			rest.seq = f.seq + int64(burst)
			f.end, f.fin = rest.seq, false
			e.flight = append(e.flight, inflight{})
			copy(e.flight[i+2:], e.flight[i+1:])
			e.flight[i+1] = rest
			f = &e.flight[i]
		}
		f.lost, f.again, f.sentAt = false, true, now
		e.lost -= f.end - f.seq
		if i == e.flightHead {
			e.rtoAt = now + e.rto(e.backoff)
		}
		e.emitData(now, f)
	}
}

func (e *Endpoint) sendNew(now time.Duration, mss, burst int64) {
	for e.nxt < e.sendable() {
		avail := max(0, e.end-e.nxt)
		room := min(e.right-e.nxt, max(e.cwnd, mss)-e.inFlight()) // the path may take larger segments than it did
		n := max(0, min(avail, burst, room))                      // no room: a FIN may still go
		if n < avail && n < mss && avail > 0 {
			// Part of a segment only: wait for more room, unless nothing is in
			// flight that would bring it and the window is never going to be larger.
			if n <= 0 || e.inFlight() > 0 || n < min(mss, e.maxWindow/2) {
				return
			}
		}
		last := e.finQueued && n == avail
		if !last && n < mss && !e.NoDelay && e.inFlight() > 0 {
			return // Nagle
		}
		e.send(now, n)
	}
}

// send sends n new bytes, and the FIN if it comes behind them.
func (e *Endpoint) send(now time.Duration, n int64) {
	f := inflight{seq: e.nxt, end: e.nxt + n, firstAt: now, sentAt: now}
	if e.finQueued && f.end == e.end {
		f.fin = true
		f.end++
		e.activeClose = !e.finReceived
	}
	e.nxt = f.end
	e.flight = append(e.flight, f)
	e.emitData(now, &f)
}

func (e *Endpoint) emitData(now time.Duration, f *inflight) {
	s := e.pool.NewSegment()
	s.Seq, s.Len, s.Again = f.seq, int(f.end-f.seq), f.again
	if f.fin {
		s.Flags |= FIN
		s.Len--
	}
	s.parts = e.sendq.slice(s.parts, f.seq, s.Len)
	e.acknowledge(s)
	if e.rtoAt == never {
		e.rtoAt = now + e.rto(e.backoff)
	}
	e.emit(now, s)
}

// armPersist starts the window probes when there is something to send, no room
// for it at the peer and nothing in flight whose acknowledgement could tell.
func (e *Endpoint) armPersist(now time.Duration) {
	if e.nxt < e.end && e.nxt == e.una && e.persistAt == never {
		e.persistAt = now + e.rto(e.persisted)
	}
}
