package tcp

import "time"

// Round-trip times come from timestamps (RFC 7323, section 4): every segment
// says when it was sent and which such stamp of the peer it answers. So each
// acknowledgement that is news gives a sample, also one of what was sent twice.
// Sequence numbers never wrap here, so stamps protect from nothing.

// stampOf is the stamp of what is sent at that time. The clock of stamps is a
// nanosecond fast, so that 0 can mean that there is none.
func stampOf(now time.Duration) time.Duration { return now + 1 }

// keepStamp remembers the stamp that the next acknowledgement answers: that of
// the segment with the first number that was not acknowledged, so that a sample
// has in it how long the acknowledgement was delayed, and what fills a hole
// counts as late as it came.
func (e *Endpoint) keepStamp(s *Segment) {
	if s.Seq <= e.ackSent {
		e.echo = max(e.echo, s.Stamp)
	}
}

// sampleRTT takes the sample that an acknowledgement of news gives.
func (e *Endpoint) sampleRTT(now, echo time.Duration) {
	if echo <= 0 || echo > stampOf(now) {
		return // none, or not a stamp of ours
	}
	r := stampOf(now) - echo
	e.minRTT = min(e.minRTT, r)
	if e.srtt == 0 {
		e.srtt, e.rttvar = max(r, 1), r/2
		return
	}
	d := e.srtt - r
	if d < 0 {
		d = -d
	}
	e.rttvar += (d - e.rttvar) / 4
	e.srtt = max(1, e.srtt+(r-e.srtt)/8)
}

// rto is the retransmission time-out after backoff doublings.
func (e *Endpoint) rto(backoff int) time.Duration {
	r := InitialRTO
	if e.srtt > 0 {
		r = e.srtt + max(4*e.rttvar, MinRTO)
	}
	for range backoff {
		if r *= 2; r >= MaxRTO {
			return MaxRTO
		}
	}
	return min(r, MaxRTO)
}
