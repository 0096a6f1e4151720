package clock

import (
	"fmt"
	"hash/fnv"
	"strings"
	"time"
)

// watchdog says why virtual time stands still. It is fed with samples of a bubble's goroutines, taken a tenth of the
// patience apart, and gives an error once it is sure:
//
//   - frozen: for the whole patience no goroutine of the bubble moved, none could run, and one waits for something
//     outside the bubble. A bubble's time moves only when all wait inside.
//   - busy: no heartbeat of virtual time, the same goroutine running in every sample, and no other moved.
//
// It is pure: it reads no clock and no stack itself.
type watchdog struct {
	patience, busy time.Duration
	began          time.Time

	still      uint64    // what the bubble looked like in the last samples
	stillSince time.Time // zero: it moved, or could
	stillCount int

	beats     uint64
	beatAt    time.Time
	others    uint64 // what the goroutines that did not run looked like
	running   map[int64]bool
	busySince time.Time
	busyCount int
}

const samplesPerPatience = 10

func newWatchdog(patience, busy time.Duration, now time.Time) *watchdog {
	return &watchdog{patience: patience, busy: busy, began: now, beatAt: now}
}

// sample takes one look at the goroutines of the bubble, and at the number of heartbeats its virtual time has given.
func (w *watchdog) sample(now time.Time, gs []goroutine, beats uint64) error {
	if beats != w.beats {
		w.beats, w.beatAt = beats, now
		w.stillCount, w.busyCount = 0, 0
	}
	var stuck, running []goroutine
	print := fnv.New64a()
	for _, g := range gs {
		switch {
		case g.active():
			running = append(running, g)
			continue
		case !g.durable:
			stuck = append(stuck, g)
		}
		fmt.Fprintf(print, "%d %s %s\n", g.id, g.state, g.stack)
	}
	if len(running) > 0 {
		w.stillCount = 0
		return w.lookBusy(now, running, print.Sum64())
	}
	w.busyCount = 0
	return w.lookFrozen(now, stuck, print.Sum64())
}

func (w *watchdog) lookFrozen(now time.Time, stuck []goroutine, print uint64) error {
	if len(stuck) == 0 || w.stillCount == 0 || print != w.still {
		w.still, w.stillSince, w.stillCount = print, now, min(1, len(stuck))
		return nil
	}
	w.stillCount++
	if w.stillCount < samplesPerPatience || now.Sub(w.stillSince) < w.patience*(samplesPerPatience-1)/samplesPerPatience {
		return nil
	}
	return frozenError(now.Sub(w.stillSince), stuck)
}

func (w *watchdog) lookBusy(now time.Time, running []goroutine, others uint64) error {
	if w.busyCount == 0 || others != w.others {
		w.startBusy(now, running, others)
		return nil
	}
	var same []goroutine
	for _, g := range running {
		if w.running[g.id] {
			same = append(same, g)
		}
	}
	if len(same) == 0 {
		w.startBusy(now, running, others)
		return nil
	}
	w.running = ids(same)
	w.busyCount++
	// A run that took long to come this far is slow, not stuck: heartbeats come at doubled intervals of virtual time.
	patience := max(w.busy, 2*w.beatAt.Sub(w.began))
	if w.busyCount < samplesPerPatience || now.Sub(w.busySince) < patience {
		return nil
	}
	return fmt.Errorf("%w for %v of real time: a goroutine computes all the while and never waits:%s\n"+
		"Virtual time moves only when every goroutine of the bubble waits. Let the loop wait for something (a channel, "+
		"time.Sleep, sync.Cond) instead of asking again and again; if it is just slow, raise clock.BusyPatience.",
		ErrBusy, now.Sub(w.busySince).Round(time.Millisecond), list(same))
}

func (w *watchdog) startBusy(now time.Time, running []goroutine, others uint64) {
	w.others, w.running, w.busySince, w.busyCount = others, ids(running), now, 1
}

func ids(gs []goroutine) map[int64]bool {
	m := make(map[int64]bool, len(gs))
	for _, g := range gs {
		m[g.id] = true
	}
	return m
}

func frozenError(after time.Duration, stuck []goroutine) error {
	var b strings.Builder
	for _, g := range stuck {
		what, do := advice(g)
		fmt.Fprintf(&b, "\ngoroutine %d waits for %s [%s]\n  at %v", g.id, what, g.state, g.where())
		if g.creator.function != "" {
			fmt.Fprintf(&b, "\n  started by %v", g.creator)
		}
		fmt.Fprintf(&b, "\n  %s", do)
	}
	return fmt.Errorf("%w for %v of real time, because a goroutine waits for something that the bubble cannot see.%s\n"+
		"This is a limit of synctest bubbles: their time moves only when every goroutine in them waits for a timer, "+
		"or for a channel, sync.Cond or WaitGroup of the same bubble", ErrFrozen, after.Round(time.Millisecond), b.String())
}

// advice says in words what a goroutine waits for, and what to do about it.
func advice(g goroutine) (what, do string) {
	switch s := g.state; {
	case strings.HasPrefix(s, "sync.Mutex") || strings.HasPrefix(s, "sync.RWMutex"):
		return "a lock (sync.Mutex or sync.RWMutex)",
			"Do not hold the lock across anything that waits (a sleep, a channel, a read), or guard with a channel of one place instead."
	case strings.HasPrefix(s, "chan ") || strings.HasPrefix(s, "select"):
		return "a channel that was made outside the bubble",
			"Make the channel inside: channels from package variables, init, BeforeEach or another test do not count."
	case strings.HasPrefix(s, "sync.WaitGroup") || strings.HasPrefix(s, "semacquire"):
		return "a WaitGroup or semaphore that was used outside the bubble",
			"Make it, and call its first Add, inside the bubble; a package variable does not do."
	case s == "IO wait":
		return "a real network connection or file",
			"Use the simulated network's dial and listen functions inside a bubble, or run the test in real time."
	case s == "syscall":
		return "a system call",
			"Do it before the bubble starts, or run the test in real time."
	}
	return "something outside the bubble", "Keep it out of the bubble, or run the test in real time."
}
