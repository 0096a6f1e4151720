package blackhole

import (
	"sync"
	"time"
)

// deadline is a point in time that can be waited for and moved while somebody waits.
type deadline struct {
	mu     sync.Mutex
	at     time.Time
	timer  *time.Timer
	passed chan struct{} // closed when the deadline has passed; made on demand
}

// set moves the deadline; zero means never.
func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.disarm()
	d.at = t
	if d.passed != nil {
		if isClosed(d.passed) {
			d.passed = nil
		} else {
			d.arm()
		}
	}
}

// wait returns a channel that is closed when the deadline passes. A deadline that has passed and is moved into the
// future needs a new call.
func (d *deadline) wait() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.passed == nil {
		d.passed = make(chan struct{})
		d.arm()
	}
	return d.passed
}

// arm starts the timer of a deadline that somebody waits for.
func (d *deadline) arm() {
	if d.at.IsZero() {
		return
	}
	left := time.Until(d.at)
	if left <= 0 {
		close(d.passed)
		return
	}
	passed := d.passed
	d.timer = time.AfterFunc(left, func() { close(passed) })
}

// over reports whether the deadline has passed.
func (d *deadline) over() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.at.IsZero() && time.Until(d.at) <= 0
}

// stop releases the timer.
func (d *deadline) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.disarm()
}

// disarm ends the timer. A set may still follow, from somebody who did not see the connection close. The caller holds mu.
func (d *deadline) disarm() {
	if d.timer != nil && !d.timer.Stop() {
		<-d.passed // the timer's function has run or is about to
	}
	d.timer = nil
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
