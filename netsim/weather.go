package netsim

import (
	"math/bits"
	"time"
)

// dropReason says why a packet was lost on its path.
type dropReason uint8

const (
	notDropped  dropReason = iota
	dropLoss               // Conditions.Loss
	dropBurst              // Conditions.Burst
	dropQueue              // the queue before the rate limit was full
	dropTooLong            // larger than the MTU
)

var dropNames = [...]string{"", "loss", "burst loss", "queue full", "larger than MTU"}

func (r dropReason) String() string { return dropNames[r] }

// fate is what the weather does to one packet.
type fate struct {
	Drop       dropReason
	Overtakes  bool          // sent without delay because of Reorder
	Dup        bool          // a copy arrives after DupDelay
	Corrupt    bool          // CorruptBit of the payload, modulo its length in bits, is inverted
	Delay      time.Duration // from now until arrival, Queue included
	Queue      time.Duration // the part of Delay spent waiting for the rate and being sent
	DupDelay   time.Duration
	CorruptBit uint64
}

// weather judges the packets of one direction of one path. It is a pure state machine: same key, same conditions, same
// packets at the same times, same fates. Only paths whose conditions are not plain have one.
//
// It does not keep order. Who needs order (a stream) sorts at the end that receives, as the real thing does.
type weather struct {
	key       uint64
	forecast  *Conditions // what was set
	now       *Conditions // the phase of it, if it is a schedule
	count     uint64      // packets so far
	busyUntil time.Duration

	// The draws before, for correlation.
	lastDelay, lastLoss, lastDuplicate, lastCorrupt, lastReorder float64

	slotOpens   time.Duration
	slotCount   uint64
	slotPackets int // left in the slot
	slotBytes   int

	sinceReorder int
	burst        uint8
}

// newWeather makes the judge of one direction of a path. c must be valid and must not change afterwards.
func newWeather(seed uint64, path string, back bool, c *Conditions) *weather {
	w := &weather{key: drawKey(seed, path, back)}
	// netem starts a correlated stream at a random place, too.
	w.lastDelay, w.lastLoss = unit(draw(w.key, drawDelay, 0)), unit(draw(w.key, drawLoss, 0))
	w.lastDuplicate, w.lastCorrupt = unit(draw(w.key, drawDuplicate, 0)), unit(draw(w.key, drawCorrupt, 0))
	w.lastReorder = unit(draw(w.key, drawReorder, 0))
	w.set(c)
	return w
}

// set changes the conditions. What waits in the queue goes on waiting, draws go on where they were, a loss model begins
// in its good state, and no slot is open.
func (w *weather) set(c *Conditions) {
	w.forecast = c
	w.turn(c)
}

func (w *weather) turn(c *Conditions) { w.now, w.burst, w.slotOpens = c, 0, -1 }

// judge decides on the next packet of size bytes, headers included. now counts from the start of the network. Every
// fault that is configured draws for every packet, lost or not, so that none depends on what another decided.
func (w *weather) judge(now time.Duration, size int) fate {
	c := w.at(now)
	w.count++
	var f fate

	lost := w.lose(c)
	f.Dup = w.hit(drawDuplicate, &w.lastDuplicate, c.Duplicate, c.DuplicateCorrelation)
	f.Corrupt = w.hit(drawCorrupt, &w.lastCorrupt, c.Corrupt, c.CorruptCorrelation)
	if f.Corrupt {
		f.CorruptBit = draw(w.key, drawCorruptBit, w.count)
	}
	f.Overtakes = w.reorder(c)
	delay := w.delay(c)

	switch {
	case c.MTU > 0 && size > c.MTU:
		return fate{Drop: dropTooLong}
	case lost != notDropped && f.Dup:
		f.Dup = false // one of the two is lost, as in netem: the other arrives
	case lost != notDropped:
		return fate{Drop: lost}
	}
	if f.Overtakes {
		delay = 0
	}
	var ok bool
	if f.Queue, ok = w.enqueue(c, now, size); !ok {
		return fate{Drop: dropQueue}
	}
	f.Delay = w.slot(c, now+f.Queue+delay, size) - now
	if f.Dup {
		var queued time.Duration
		if queued, f.Dup = w.enqueue(c, now, size); f.Dup {
			delay = w.dupDelay(c)
			f.DupDelay = w.slot(c, now+queued+delay, size) - now
		}
	}
	return f
}

// at gives the conditions that hold now.
func (w *weather) at(now time.Duration) *Conditions {
	if w.forecast.Schedule == nil {
		return w.now
	}
	if c := w.forecast.Schedule.at(now); c != w.now {
		w.turn(c)
	}
	return w.now
}

// correlated gives the next number of a stream, mixed with the one before it as netem does.
func (w *weather) correlated(kind drawKind, last *float64, rho float64) float64 {
	u := unit(draw(w.key, kind, w.count))
	if rho > 0 {
		u = rho**last + (1-rho)*u
	}
	*last = u
	return u
}

func (w *weather) hit(kind drawKind, last *float64, p, rho float64) bool {
	return p > 0 && w.correlated(kind, last, rho) < p
}

func (w *weather) lose(c *Conditions) dropReason {
	if c.Burst != nil {
		var lost bool
		w.burst, lost = c.Burst.step(w.burst, unit(draw(w.key, drawBurst, w.count)), unit(draw(w.key, drawBurstLoss, w.count)))
		if lost {
			return dropBurst
		}
		return notDropped
	}
	if w.hit(drawLoss, &w.lastLoss, c.Loss, c.LossCorrelation) {
		return dropLoss
	}
	return notDropped
}

// reorderShare is the share of those packets that may overtake which do.
func (c *Conditions) reorderShare() float64 {
	if c.ReorderGap > 0 && c.Reorder == 0 {
		return 1
	}
	return c.Reorder
}

// reorder counts as netem does: a packet may overtake once gap-1 others have gone the normal way since the last one
// that did.
func (w *weather) reorder(c *Conditions) bool {
	share := c.reorderShare()
	if share == 0 {
		return false
	}
	chosen := w.correlated(drawReorder, &w.lastReorder, c.ReorderCorrelation) < share
	if w.sinceReorder < c.ReorderGap-1 || !chosen {
		w.sinceReorder++
		return false
	}
	w.sinceReorder = 0
	return true
}

func (w *weather) delay(c *Conditions) time.Duration {
	if c.Jitter == 0 {
		return c.Latency
	}
	return jittered(c, w.correlated(drawDelay, &w.lastDelay, c.DelayCorrelation))
}

func (w *weather) dupDelay(c *Conditions) time.Duration {
	return jittered(c, unit(draw(w.key, drawDupDelay, w.count)))
}

func jittered(c *Conditions, u float64) time.Duration {
	return max(0, c.Latency+time.Duration(float64(c.Jitter)*c.Distribution.spread(u)))
}

// enqueue puts a packet before the rate limit and says after how long it has left it; false when it does not fit. A
// packet that finds the line idle needs no room in the queue.
func (w *weather) enqueue(c *Conditions, now time.Duration, size int) (time.Duration, bool) {
	if c.Rate == 0 {
		return 0, true
	}
	start := max(now, w.busyUntil)
	if start > now && c.Queue > 0 && bytesIn(start-now, c.Rate)+int64(size) > int64(c.Queue) {
		return 0, false
	}
	w.busyUntil = start + timeFor(int64(size), c.Rate)
	return w.busyUntil - now, true
}

// timeFor is the time it takes to send bytes at a rate, rounded up; bytesIn is its inverse, rounded down.
func timeFor(bytes, rate int64) time.Duration {
	hi, lo := bits.Mul64(uint64(bytes)*8, uint64(time.Second))
	lo, carry := bits.Add64(lo, uint64(rate)-1, 0)
	return time.Duration(div(hi+carry, lo, uint64(rate)))
}

func bytesIn(d time.Duration, rate int64) int64 {
	hi, lo := bits.Mul64(uint64(d), uint64(rate))
	return int64(div(hi, lo, 8*uint64(time.Second)))
}

// div divides 128 bits, and is the largest duration where the quotient is larger still.
func div(hi, lo, by uint64) uint64 {
	if hi >= by {
		return 1<<63 - 1
	}
	q, _ := bits.Div64(hi, lo, by)
	return min(q, 1<<63-1)
}

func (s *Slots) maxDelay() time.Duration { return max(s.MinDelay, s.MaxDelay) }

// slot gives the time at which a packet that is ready leaves.
func (w *weather) slot(c *Conditions, ready time.Duration, size int) time.Duration {
	s := c.Slots
	if s == nil {
		return ready
	}
	if w.slotOpens < ready {
		w.openSlot(s, ready)
	}
	leaves := max(ready, w.slotOpens)
	w.slotPackets--
	w.slotBytes -= size
	if s.Packets > 0 && w.slotPackets <= 0 || s.Bytes > 0 && w.slotBytes <= 0 {
		w.openSlot(s, leaves)
	}
	return leaves
}

func (w *weather) openSlot(s *Slots, after time.Duration) {
	w.slotCount++
	span := s.maxDelay() - s.MinDelay
	w.slotOpens = after + s.MinDelay + time.Duration(unit(draw(w.key, drawSlot, w.slotCount))*float64(span))
	w.slotPackets, w.slotBytes = s.Packets, s.Bytes
}
