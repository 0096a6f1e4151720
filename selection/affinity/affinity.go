// Package affinity remembers which provider a conversation talks to: session
// affinity with an idle time, as a pure table.
//
//	t := affinity.New(affinity.DefaultTTL, affinity.DefaultCapacity)
//	t.Bind("conversation 7", "provider A", now)  // after a success, and only then
//	provider, ok := t.Lookup("conversation 7", now.Add(time.Minute))
//
// A binding lasts for the TTL after the last Bind; a Bind to another provider
// overwrites it. A Lookup does not lengthen it: a conversation that only fails
// gets free.
package affinity

import (
	"container/list"
	"fmt"
	"time"
)

const (
	// DefaultTTL is how long a conversation sticks after its last success.
	DefaultTTL = 300 * time.Second

	// DefaultCapacity is how many conversations a table remembers.
	DefaultCapacity = 10_000
)

// Table is a bounded table of bindings; the binding that was renewed least
// recently makes room. It has no lock, clock or goroutine: the caller
// serialises the calls and passes the time.
type Table struct {
	ttl      time.Duration
	capacity int
	byKey    map[string]*list.Element
	order    *list.List // of *binding, the one renewed last in front
}

type binding struct {
	key, provider string
	expires       time.Time
}

// New gives an empty table. It panics unless both values are positive.
func New(ttl time.Duration, capacity int) *Table {
	if ttl <= 0 || capacity <= 0 {
		panic(fmt.Sprintf("affinity.New(%v, %d): both must be positive", ttl, capacity))
	}
	return &Table{ttl: ttl, capacity: capacity, byKey: make(map[string]*list.Element), order: list.New()}
}

// Bind binds key to provider until now + TTL, whatever it was bound to. An
// empty key is no conversation and is ignored.
func (t *Table) Bind(key, provider string, now time.Time) {
	if key == "" {
		return
	}
	e, ok := t.byKey[key]
	if !ok {
		e = t.order.PushFront(&binding{key: key})
		t.byKey[key] = e
	}
	b := e.Value.(*binding)
	b.provider, b.expires = provider, now.Add(t.ttl)
	t.order.MoveToFront(e)
	for t.order.Len() > t.capacity {
		t.remove(t.order.Back())
	}
}

// Lookup says which provider key is bound to at now.
func (t *Table) Lookup(key string, now time.Time) (provider string, ok bool) {
	e, ok := t.byKey[key]
	if !ok {
		return "", false
	}
	b := e.Value.(*binding)
	if !now.Before(b.expires) {
		t.remove(e)
		return "", false
	}
	return b.provider, true
}

// Len is how many bindings the table holds, expired ones included until they
// are looked up or make room.
func (t *Table) Len() int { return t.order.Len() }

func (t *Table) remove(e *list.Element) {
	delete(t.byKey, e.Value.(*binding).key)
	t.order.Remove(e)
}
