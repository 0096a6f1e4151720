package choice

import (
	"sync"
	"time"
)

// Table holds the choices in force, by key. It is in memory only and safe for concurrent use; no method blocks.
type Table[K, P comparable] struct {
	policy Policy

	mu          sync.Mutex
	generations uint64
	entries     map[K]Entry[P]
	forgotten   map[K]P
}

// NewTable returns an empty table with the given rules.
func NewTable[K, P comparable](policy Policy) *Table[K, P] {
	return &Table[K, P]{policy: policy, entries: map[K]Entry[P]{}, forgotten: map[K]P{}}
}

// Choose is lookup-or-insert in one step: the entry's choice if there is one, else the offered proxy as a new choice.
// It reports whether the offer was taken.
func (t *Table[K, P]) Choose(key K, offered P) (c Choice[P], taken bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e, ok := t.entries[key]; ok {
		return e.Choice, false
	}
	return t.insert(key, offered), true
}

// Replace puts another proxy in the place of a choice, if that is still in force.
func (t *Table[K, P]) Replace(key K, old Choice[P], proxy P) (c Choice[P], replaced bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e, ok := t.entries[key]; !ok || e.Generation != old.Generation {
		return old, false
	}
	return t.insert(key, proxy), true
}

func (t *Table[K, P]) insert(key K, proxy P) Choice[P] {
	t.generations++
	c := Choice[P]{Proxy: proxy, Generation: t.generations}
	t.entries[key] = Entry[P]{Choice: c}
	delete(t.forgotten, key)
	return c
}

// Apply tells the table what became of a request. An event for a key without an entry changes nothing.
func (t *Table[K, P]) Apply(key K, ev Event[P], now time.Time) Change {
	t.mu.Lock()
	defer t.mu.Unlock()
	e, ok := t.entries[key]
	if !ok {
		return Kept
	}
	next, change := Step(&t.policy, e, ev, now)
	if change.Forgotten() {
		t.drop(key, e.Proxy)
	} else {
		t.entries[key] = next
	}
	return change
}

// Forget drops the entry of a key whatever its streak, and reports whether there was one. No event does it: it is for a
// user who asks for another proxy.
func (t *Table[K, P]) Forget(key K) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	e, ok := t.entries[key]
	if ok {
		t.drop(key, e.Proxy)
	}
	return ok
}

// drop takes an entry out. The caller holds mu.
func (t *Table[K, P]) drop(key K, proxy P) {
	delete(t.entries, key)
	t.forgotten[key] = proxy
}

// Lookup returns the entry of a key.
func (t *Table[K, P]) Lookup(key K) (Entry[P], bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e, ok := t.entries[key]
	return e, ok
}

// LastForgotten returns the proxy that was forgotten last for a key, until another one is chosen.
func (t *Table[K, P]) LastForgotten(key K) (P, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p, ok := t.forgotten[key]
	return p, ok
}

// Len is the number of entries.
func (t *Table[K, P]) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.entries)
}

// Reset forgets everything, as a changed network configuration does. Generations go on, so late results of choices
// made before stay late.
func (t *Table[K, P]) Reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.entries)
	clear(t.forgotten)
}
