package blackhole

import (
	"errors"
	"fmt"
	"sync/atomic"
)

// Fault is one way in which connections break. Fill it in, put it on connections, read its counters; it must not be
// copied or changed after that. One fault may be on any number of connections, each of which keeps its own state.
type Fault struct {
	// Name appears in errors and in [Status]; without it the fault describes itself.
	Name string
	// When says when the fault is active; nil means at once.
	When Trigger
	// Do says what it does then.
	Do Effect
	// On says to which bytes.
	On Direction

	hits  atomic.Int64
	bytes atomic.Int64
}

// Hits is how often the fault has taken effect: once for each time that it became active on a connection and touched a
// byte, the end of a stream or the connection itself.
func (f *Fault) Hits() int64 { return f.hits.Load() }

// Bytes is the number of bytes the fault has touched: swallowed, delayed, shaped. Bytes that a stall holds count when
// they are released only if another effect touches them.
func (f *Fault) Bytes() int64 { return f.bytes.Load() }

// String is the name, or effect and direction.
func (f *Fault) String() string {
	if f.Name != "" {
		return f.Name
	}
	return fmt.Sprintf("%v %v", f.Do, f.On)
}

// Validate returns an error that names what makes the fault impossible: no effect, no direction, a trigger that can
// never fire, a figure out of range. Client, Server, Listener and Dialer call it.
func (f *Fault) Validate() error {
	if f == nil {
		return errors.New("blackhole: fault is nil")
	}
	if err := f.validate(); err != nil {
		return fmt.Errorf("blackhole: fault %q: %w", f.String(), err)
	}
	return nil
}

func (f *Fault) validate() error {
	if f.Do.how == nil {
		return errors.New("no effect: Do is not set")
	}
	if !f.On.valid() {
		return fmt.Errorf("no direction: On is %v", f.On)
	}
	if f.When != nil {
		if err := f.When.Validate(); err != nil {
			return err
		}
	}
	return f.Do.how.validate()
}

func (f *Fault) trigger() Trigger {
	if f.When == nil {
		return AtOnce()
	}
	return f.When
}

// Status tells how one fault stands on one connection.
type Status struct {
	// Fault is the fault.
	Fault *Fault
	// Trigger is the state of its trigger in words, for people.
	Trigger string
	// Active reports whether it acts at this moment.
	Active bool
	// Hits and Bytes are the share of this connection in the counters of the fault.
	Hits, Bytes int64
}
