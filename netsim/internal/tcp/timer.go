package tcp

import (
	"syscall"
	"time"
)

// Next is when Timer wants to be called; a very late time when never. Calling it
// earlier is harmless.
func (e *Endpoint) Next() time.Duration {
	at := min(e.retransmitAt(), e.reorderAt, e.persistAt, e.delackAt, e.closeAt)
	return min(at, e.keepAliveAt())
}

// Never is what Next gives when there is nothing to wait for.
const Never = never

// retransmitAt is the retransmission time-out, or the user time-out if that
// comes first.
func (e *Endpoint) retransmitAt() time.Duration {
	if e.rtoAt == never || e.UserTimeout == 0 || e.state != Established || e.flightHead == len(e.flight) {
		return e.rtoAt
	}
	return min(e.rtoAt, e.flight[e.flightHead].firstAt+e.UserTimeout)
}

// keepAliveAt is when the next keep-alive probe, or the verdict over the last
// one, is due. A connection with something to send has other timers.
func (e *Endpoint) keepAliveAt() time.Duration {
	if e.KeepIdle == 0 || e.state != Established || e.nxt != e.una || e.nxt < e.sendable() || e.finQueued && e.detached {
		return never
	}
	if e.probes == 0 {
		return e.heardAt + e.KeepIdle
	}
	return e.probedAt + e.KeepInterval
}

// Timer does what is due.
func (e *Endpoint) Timer(now time.Duration) {
	if e.closeAt <= now {
		e.die() // TIME_WAIT is over, or the peer of an orphan never closed
		return
	}
	if e.retransmitAt() <= now {
		e.retransmitTimer(now)
	}
	if e.state != Established {
		return
	}
	if e.reorderAt <= now {
		e.detectLoss(now)
		e.Output(now)
	}
	if e.persistAt <= now {
		e.persistTimer(now)
	}
	if e.delackAt <= now && e.state == Established {
		e.ackNow = true
		e.Output(now)
	}
	if e.keepAliveAt() <= now {
		e.keepAliveTimer(now)
	}
}

func (e *Endpoint) retransmitTimer(now time.Duration) {
	switch e.state {
	case SynSent, SynReceived:
		retries := e.cfg.SYNRetries
		if e.state == SynReceived {
			retries = e.cfg.SYNACKRetries
		}
		if e.backoff >= retries {
			e.fail(syscall.ETIMEDOUT)
			return
		}
		e.backoff++
		e.sendSYN(now)
	case Established:
		if now-e.flight[e.flightHead].firstAt >= e.budget() {
			e.fail(syscall.ETIMEDOUT)
			return
		}
		if e.rtoAt > now {
			return
		}
		e.timedOut(now)
		e.rtoAt = now + e.rto(e.backoff)
		e.Output(now)
	}
}

// budget is how long unanswered data is retransmitted.
func (e *Endpoint) budget() time.Duration {
	if e.UserTimeout > 0 {
		return e.UserTimeout
	}
	if e.detached {
		return Budget(min(e.cfg.Retries, orphanRetries))
	}
	return Budget(e.cfg.Retries)
}

// persistTimer asks the peer for room. Where there is some, but less than is
// worth waiting for, it is used after all (RFC 9293, 3.8.6.2.1).
func (e *Endpoint) persistTimer(now time.Duration) {
	if e.nxt >= e.end || e.nxt != e.una {
		e.persistAt = never
		return
	}
	if e.right > e.nxt {
		e.persistAt = never
		_, burst := e.env.SegmentSize()
		e.send(now, min(e.end-e.nxt, e.right-e.nxt, int64(burst)))
		return
	}
	if e.stalledAt == never {
		e.stalledAt = now
	}
	forlorn := e.detached && e.persisted >= orphanRetries && e.rto(e.persisted) == MaxRTO // answered, but nobody is there to end it
	if forlorn || now-e.stalledAt >= e.budget() {
		e.fail(syscall.ETIMEDOUT)
		return
	}
	e.probe(now)
	e.persisted++
	e.persistAt = now + e.rto(e.persisted)
}

func (e *Endpoint) keepAliveTimer(now time.Duration) {
	silent := now - e.heardAt
	if e.UserTimeout > 0 && e.probes > 0 && silent >= e.UserTimeout || e.UserTimeout == 0 && e.probes >= e.KeepCount {
		e.reset(now) // as Linux does here, and not where data went unanswered
		e.fail(syscall.ETIMEDOUT)
		return
	}
	e.probes++
	e.probedAt = now
	e.probe(now)
}
