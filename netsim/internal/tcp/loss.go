package tcp

import "time"

// Loss detection: a segment counts as lost when one that was sent later has
// arrived and a quarter of a round trip has passed, or three have (RFC 8985).

// rackSeen remembers the latest sent segment that is known to have arrived.
func (e *Endpoint) rackSeen(f *inflight) {
	if f.sentAt > e.rackAt || f.sentAt == e.rackAt && f.end > e.rackEnd {
		e.rackAt, e.rackEnd = f.sentAt, f.end
	}
}

func (e *Endpoint) markSacked(ranges []Range) {
	for i := e.flightHead; i < len(e.flight); i++ {
		f := &e.flight[i]
		if f.sacked {
			continue
		}
		for _, r := range ranges {
			if f.seq >= r.From && f.end <= r.To {
				if f.lost {
					f.lost = false
					e.lost -= f.end - f.seq
				}
				f.sacked = true
				e.sacked += f.end - f.seq
				e.rackSeen(f)
				break
			}
		}
	}
}

func (e *Endpoint) detectLoss(now time.Duration) {
	e.reorderAt = never
	if e.sacked == 0 {
		return
	}
	rtt := e.srtt
	wait := e.minRTT / 4
	if e.minRTT == never {
		wait = 0
	}
	after := 0 // segments with the peer beyond the one at hand
	for i := e.flightHead; i < len(e.flight); i++ {
		if e.flight[i].sacked {
			after++
		}
	}
	found := false
	for i := e.flightHead; i < len(e.flight) && after > 0; i++ {
		f := &e.flight[i]
		if f.sacked {
			after--
			continue
		}
		if f.lost || f.sentAt > e.rackAt || f.sentAt == e.rackAt && f.end > e.rackEnd {
			continue
		}
		due := f.sentAt + rtt + wait
		if after >= duplicateACKs && !f.again || due <= now {
			f.lost = true
			e.lost += f.end - f.seq
			found = true
		} else {
			e.reorderAt = min(e.reorderAt, due)
		}
	}
	if found && !e.recovering {
		mss, _ := e.env.SegmentSize()
		e.doubts(now)
		e.recovering, e.recover, e.resend = true, e.nxt, true
		e.ssthresh = max(e.cwnd*7/10, 2*int64(mss)) // CUBIC's factor
		e.cwnd = e.ssthresh
	}
}

// timedOut is the retransmission time-out: everything that is not with the
// peer counts as lost, and one segment is sent. A peer that was said to have the
// first of them and does not acknowledge it has dropped what it had (RFC 2018,
// section 8).
func (e *Endpoint) timedOut(now time.Duration) {
	mss, _ := e.env.SegmentSize()
	if e.backoff == 0 {
		e.doubts(now)
		e.ssthresh = max(e.inFlight()/2, 2*int64(mss))
	}
	e.cwnd = int64(mss)
	e.recovering, e.restarting, e.recover = true, true, e.nxt
	reneged := e.flight[e.flightHead].sacked
	for i := e.flightHead; i < len(e.flight); i++ {
		f := &e.flight[i]
		if f.sacked && reneged {
			f.sacked = false
			e.sacked -= f.end - f.seq
		}
		if !f.sacked && !f.lost {
			f.lost = true
			e.lost += f.end - f.seq
		}
	}
	e.backoff++
}

// Budget is how long Linux goes on retransmitting with tcp_retries2 = retries:
// the sum of the time-outs from 200 ms, doubling to 120 s. 15 give 924.6 s.
func Budget(retries int) time.Duration {
	var sum time.Duration
	rto := MinRTO
	for range retries + 1 {
		sum += rto
		rto = min(2*rto, MaxRTO)
	}
	return sum
}
