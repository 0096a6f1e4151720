package privaterouting

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// Note is one thing that happened: who did or received what.
type Note struct {
	// At is the time since the world began.
	At time.Duration
	// Actor is who writes the note: "app", "p1", "r".
	Actor string
	// What is the kind of thing: a tag of the wire protocol for what a server received or answered, "attempt", "failed",
	// "answered", "choice", "connected" for what an app did.
	What string
	// About is what the thing was about: the proxy asked, the relay asked for, the error.
	About string
	// Text is the rest, for people.
	Text string
}

// String is the note as a line of text.
func (n Note) String() string {
	return strings.TrimRight(fmt.Sprintf("%12.6f  %-8s %-10s %s %s", n.At.Seconds(), n.Actor, n.What, n.About, n.Text), " ")
}

// Journal is the record of a world's actors, in order. The network's trace has the packets; the journal has what they meant.
type Journal struct {
	mu    sync.Mutex
	start time.Time
	notes []Note
	seen  chan struct{} // closed and renewed at every note
}

func newJournal(now time.Time) *Journal {
	return &Journal{start: now, seen: make(chan struct{})}
}

// Add writes a note down, with the present time.
func (j *Journal) Add(actor, what, about, text string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.notes = append(j.notes, Note{At: time.Since(j.start), Actor: actor, What: what, About: about, Text: text})
	close(j.seen)
	j.seen = make(chan struct{})
}

// Notes returns what was written so far.
func (j *Journal) Notes() []Note {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.notes[:len(j.notes):len(j.notes)]
}

// All returns the notes of an actor about what, in order. An empty actor or what means any.
func (j *Journal) All(actor, what string) []Note {
	var out []Note
	for _, n := range j.Notes() {
		if (actor == "" || n.Actor == actor) && (what == "" || n.What == what) {
			out = append(out, n)
		}
	}
	return out
}

// Count is the number of such notes.
func (j *Journal) Count(actor, what string) int { return len(j.All(actor, what)) }

// First returns the first such note.
func (j *Journal) First(actor, what string) (Note, bool) {
	if all := j.All(actor, what); len(all) > 0 {
		return all[0], true
	}
	return Note{}, false
}

// Times are the instants of notes.
func Times(notes []Note) []time.Duration {
	out := make([]time.Duration, len(notes))
	for i, n := range notes {
		out[i] = n.At
	}
	return out
}

// Wait waits until a note satisfies the match, also one that was written before, for at most limit.
func (j *Journal) Wait(limit time.Duration, match func(Note) bool) (Note, bool) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for i := 0; ; {
		j.mu.Lock()
		notes, more := j.notes, j.seen
		j.mu.Unlock()
		for ; i < len(notes); i++ {
			if match(notes[i]) {
				return notes[i], true
			}
		}
		select {
		case <-more:
		case <-timer.C:
			return Note{}, false
		}
	}
}

// String is the journal as text, one line a note.
func (j *Journal) String() string {
	var b strings.Builder
	for _, n := range j.Notes() {
		fmt.Fprintln(&b, n)
	}
	return b.String()
}
