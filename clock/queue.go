package clock

import "time"

// A queue holds the events of a [Scheduler] in order: a 4-ary heap.
type queue []slot

// A slot is an event's place in the queue. It has a copy of the time, so that
// most comparisons need not look at the event, which is far away in memory.
type slot struct {
	at time.Duration
	*Event
}

// before is the order: by time, then by key, then by who came first.
func (a slot) before(b slot) bool {
	if a.at != b.at {
		return a.at < b.at
	}
	if a.Key.Name != b.Key.Name {
		return a.Key.Name < b.Key.Name
	}
	if a.Key.Kind != b.Key.Kind {
		return a.Key.Kind < b.Key.Kind
	}
	return a.seq < b.seq
}

// afterHead are those among which the earliest but the head is.
func (q queue) afterHead() []slot { return q[1:min(5, len(q))] }

// push puts an event in that is in no queue.
func (q *queue) push(e *Event) {
	*q = append(*q, slot{})
	q.up(len(*q)-1, slot{e.at, e})
}

// remove takes an event out, wherever it is.
func (q *queue) remove(e *Event) {
	i, n := e.index-1, len(*q)-1
	tail := (*q)[n]
	(*q)[n] = slot{}
	*q = (*q)[:n]
	e.index = 0
	if i == n {
		return
	}
	if i > 0 && tail.before((*q)[(i-1)/4]) {
		q.up(i, tail)
	} else {
		q.down(i, tail)
	}
}

// up puts e at i or above.
func (q queue) up(i int, e slot) {
	for i > 0 {
		p := (i - 1) / 4
		if !e.before(q[p]) {
			break
		}
		q[i] = q[p]
		q[i].index = i + 1
		i = p
	}
	q[i] = e
	e.index = i + 1
}

// down puts e at i or below.
func (q queue) down(i int, e slot) {
	n := len(q)
	for {
		c := 4*i + 1
		if c >= n {
			break
		}
		m := c
		for k := c + 1; k < min(c+4, n); k++ {
			if q[k].before(q[m]) {
				m = k
			}
		}
		if !q[m].before(e) {
			break
		}
		q[i] = q[m]
		q[i].index = i + 1
		i = m
	}
	q[i] = e
	e.index = i + 1
}
