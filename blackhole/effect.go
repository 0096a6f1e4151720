package blackhole

import (
	"fmt"
	"math/bits"
	"time"
)

// Effect says what a fault does while it is active. The zero Effect is refused.
type Effect struct{ how behaviour }

// String names the effect and its figures.
func (e Effect) String() string {
	if e.how == nil {
		return "nothing"
	}
	return e.how.String()
}

// Swallow makes bytes vanish: writes succeed, reads do not return until their deadline or Close, the end of the stream
// does not come. What arrives while somebody reads is taken from the network and thrown away. When both sides have
// ended their streams the hole has nothing left to swallow, and a blocked read returns.
func Swallow() Effect { return Effect{swallow{}} }

// Stall makes bytes stand still until the fault is released; none is lost.
func Stall() Effect { return Effect{stall{}} }

// Delay holds each piece (one Write, or what one Read of the inner connection brought) and the end of the stream for
// d, one after the other. The caller waits; for the latency of a network path use a simulated network.
func Delay(d time.Duration) Effect { return Effect{delay(d)} }

// Throttle lets rate bytes a second pass, in each direction, in portions of a fiftieth of a second's worth.
func Throttle(rate int) Effect { return Effect{throttle(rate)} }

// Slice cuts what passes into pieces of at most size bytes with a pause between them. Slice(1, time.Second) drips.
func Slice(size int, pause time.Duration) Effect { return Effect{slice{size, pause}} }

// Corrupt flips one bit in every run of every bytes. Which one follows from the seed, the direction and the position in
// the stream alone, not from how the stream is cut into pieces.
func Corrupt(seed uint64, every int) Effect { return Effect{corrupt{seed, every}} }

// Truncate lets the first n bytes of each piece (one Write, or what one Read of the inner connection brought) pass and
// makes the rest of it vanish.
func Truncate(n int) Effect { return Effect{truncate(n)} }

// Reset ends the connection by RST at once, in both directions, whichever direction the fault is on: the inner
// connection is closed with a linger time of 0, the holder gets ECONNRESET. An inner connection that has no SetLinger
// is closed.
func Reset() Effect { return Effect{breakOff(actReset)} }

// Close ends the connection by FIN at once, in both directions, whichever direction the fault is on: the inner
// connection is closed, the holder reads io.EOF and its writes fail with EPIPE.
func Close() Effect { return Effect{breakOff(actClose)} }

// HalfClose ends the stream in the fault's direction only, as CloseWrite of its sender does. The inner connection must
// have CloseWrite, as TCP and Unix connections do.
func HalfClose() Effect { return Effect{breakOff(actHalfClose)} }

type verb uint8

const (
	pass verb = iota
	drop      // and forget
	hold      // until an instant, or until something changes
	act       // on the connection
)

type action uint8

const (
	actNone action = iota
	actHalfClose
	actClose
	actReset
)

// ruling is what a behaviour decides about the next piece.
type ruling struct {
	verb  verb
	n     int       // pass, drop: at most so many bytes of the piece; 0 means no limit
	until time.Time // hold: ask again then; zero: when something changes
}

// track is the memory of a behaviour in one direction.
type track struct {
	ready time.Time // when the present piece may pass, or the next one
	pos   uint64    // bytes that have passed
	cut   int       // of the present piece: bytes that have passed; for delay, whether some have
}

// behaviour is an effect as a pure state machine: admit decides, shape gives the bytes as they go on, commit tells
// that the first n bytes of the piece passed (or its end, with n = 0).
type behaviour interface {
	fmt.Stringer
	validate() error
	admit(t *track, now time.Time, it item) ruling
	shape(t *track, d Direction, p []byte) []byte
	commit(t *track, now time.Time, n int)
}

// plain is the part of a behaviour that leaves the bytes alone and remembers nothing.
type plain struct{}

func (plain) validate() error                              { return nil }
func (plain) shape(_ *track, _ Direction, p []byte) []byte { return p }
func (plain) commit(*track, time.Time, int)                {}

type swallow struct{ plain }

func (swallow) String() string                       { return "swallow" }
func (swallow) admit(*track, time.Time, item) ruling { return ruling{verb: drop} }

type stall struct{ plain }

func (stall) String() string                       { return "stall" }
func (stall) admit(*track, time.Time, item) ruling { return ruling{verb: hold} }

type breakOff action

func (b breakOff) String() string {
	return map[action]string{actReset: "reset", actClose: "close", actHalfClose: "half-close"}[action(b)]
}
func (breakOff) validate() error                              { return nil }
func (breakOff) admit(*track, time.Time, item) ruling         { return ruling{verb: act} }
func (breakOff) shape(_ *track, _ Direction, p []byte) []byte { return p }
func (breakOff) commit(*track, time.Time, int)                {}

type delay time.Duration

func (d delay) String() string { return fmt.Sprintf("delay %v", time.Duration(d)) }
func (d delay) validate() error {
	if d <= 0 {
		return fmt.Errorf("Delay(%v): want more than 0", time.Duration(d))
	}
	return nil
}
func (d delay) admit(t *track, now time.Time, it item) ruling {
	// A piece waits once, also if another fault or a trigger cuts it.
	if t.ready.IsZero() && (it.fresh || it.end || t.cut == 0) {
		t.ready = now.Add(time.Duration(d))
	}
	if now.Before(t.ready) {
		return ruling{verb: hold, until: t.ready}
	}
	return ruling{}
}
func (delay) shape(_ *track, _ Direction, p []byte) []byte { return p }
func (delay) commit(t *track, _ time.Time, _ int)          { t.ready, t.cut = time.Time{}, 1 }

type throttle int

// portionsPerSecond is how often a throttle lets bytes pass when it is busy.
const portionsPerSecond = 50

func (r throttle) String() string { return fmt.Sprintf("throttle %d B/s", int(r)) }
func (r throttle) validate() error {
	if r <= 0 {
		return fmt.Errorf("Throttle(%d): want more than 0 bytes a second", int(r))
	}
	return nil
}
func (r throttle) admit(t *track, now time.Time, it item) ruling {
	if it.end {
		return ruling{}
	}
	if now.Before(t.ready) {
		return ruling{verb: hold, until: t.ready}
	}
	return ruling{n: max(1, int(r)/portionsPerSecond)}
}
func (throttle) shape(_ *track, _ Direction, p []byte) []byte { return p }
func (r throttle) commit(t *track, now time.Time, n int) {
	t.ready = now.Add(time.Duration(int64(n) * int64(time.Second) / int64(r)))
}

type slice struct {
	size  int
	pause time.Duration
}

func (s slice) String() string { return fmt.Sprintf("slice %d B every %v", s.size, s.pause) }
func (s slice) validate() error {
	if s.size <= 0 || s.pause < 0 {
		return fmt.Errorf("Slice(%d, %v): want a size above 0 and a pause of at least 0", s.size, s.pause)
	}
	return nil
}
func (s slice) admit(t *track, now time.Time, it item) ruling {
	if it.end {
		return ruling{}
	}
	if now.Before(t.ready) {
		return ruling{verb: hold, until: t.ready}
	}
	return ruling{n: s.size}
}
func (slice) shape(_ *track, _ Direction, p []byte) []byte { return p }
func (s slice) commit(t *track, now time.Time, _ int)      { t.ready = now.Add(s.pause) }

type corrupt struct {
	seed  uint64
	every int
}

func (c corrupt) String() string { return fmt.Sprintf("corrupt 1 bit in %d B", c.every) }
func (c corrupt) validate() error {
	if c.every <= 0 {
		return fmt.Errorf("Corrupt(%d, %d): want a run of more than 0 bytes", c.seed, c.every)
	}
	return nil
}
func (corrupt) admit(*track, time.Time, item) ruling { return ruling{} }
func (c corrupt) shape(t *track, d Direction, p []byte) []byte {
	out := append([]byte(nil), p...)
	every := uint64(c.every)
	for run := t.pos / every; run*every < t.pos+uint64(len(p)); run++ {
		draw := mix(c.seed ^ mix(run<<1|uint64(d.lane())))
		at := run*every + draw>>3%every
		if at >= t.pos && at < t.pos+uint64(len(p)) {
			out[at-t.pos] ^= 1 << (draw & 7)
		}
	}
	return out
}
func (corrupt) commit(t *track, _ time.Time, n int) { t.pos += uint64(n) }

// mix is the finaliser of SplitMix64: a bijection that spreads every bit of x over the result.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return bits.RotateLeft64(x^x>>31, 17)
}

type truncate int

func (n truncate) String() string { return fmt.Sprintf("truncate to %d B", int(n)) }
func (n truncate) validate() error {
	if n < 0 {
		return fmt.Errorf("Truncate(%d): the size is negative", int(n))
	}
	return nil
}
func (n truncate) admit(t *track, _ time.Time, it item) ruling {
	if it.fresh {
		t.cut = 0
	}
	switch {
	case it.end:
		return ruling{}
	case t.cut >= int(n):
		return ruling{verb: drop}
	}
	return ruling{n: int(n) - t.cut}
}
func (truncate) shape(_ *track, _ Direction, p []byte) []byte { return p }
func (truncate) commit(t *track, _ time.Time, n int)          { t.cut += n }
