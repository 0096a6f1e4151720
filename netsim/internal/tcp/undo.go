package tcp

import "time"

// Spurious retransmissions: what counted as lost was only late. The stamp that
// the first acknowledgement after a retransmission answers tells which of the
// two copies the peer means (Eifel detection, RFC 3522). If it is the first,
// what the retransmission did to the windows is undone, and what else counts as
// lost is waited for again (RFC 4015, with Linux's figures: the windows are what
// they were).

// A doubt is a recovery whose cause may turn out to be none.
type doubt struct {
	since          time.Duration // of the first retransmission; never: no doubt
	cwnd, ssthresh int64         // as they were then
}

// doubts starts a doubt, unless one is open.
func (e *Endpoint) doubts(now time.Duration) {
	if e.doubt.since == never {
		e.doubt = doubt{since: now, cwnd: e.cwnd, ssthresh: e.ssthresh}
	}
}

// judge decides the doubt when head, the first segment that is not acknowledged,
// was sent again in the course of it and is acknowledged now.
func (e *Endpoint) judge(head *inflight, echo time.Duration) {
	if e.doubt.since == never || !head.again || head.sentAt < e.doubt.since {
		return
	}
	spurious := echo > 0 && echo < stampOf(e.doubt.since)
	if spurious {
		e.cwnd, e.ssthresh = max(e.cwnd, e.doubt.cwnd), max(e.ssthresh, e.doubt.ssthresh)
		e.recovered()
		for i := e.flightHead; i < len(e.flight); i++ {
			e.flight[i].lost = false
		}
		e.lost = 0
	}
	e.doubt.since = never
}

// recovered ends a recovery.
func (e *Endpoint) recovered() {
	e.recovering, e.restarting, e.resend, e.doubt.since = false, false, false, never
}
