package privaterouting

import (
	"context"
	"sync"

	"github.com/seed-5a7f77c4/deadair/scenarios/privaterouting/wire"
)

// Reaction is what a scripted server does with a message. The zero Reaction is its ordinary behaviour.
type Reaction struct {
	// Until, if set, is waited for first: a gate that the story opens by closing it.
	Until <-chan struct{}
	// Answer, if set, is sent instead of the ordinary answer.
	Answer wire.Message
	// Silent: there is no answer at all.
	Silent bool
}

// wait passes the gate. It reports false if there is to be no answer.
func (r Reaction) wait(ctx context.Context) bool {
	if r.Until != nil {
		select {
		case <-r.Until:
		case <-ctx.Done():
			return false
		}
	}
	return !r.Silent
}

type script struct {
	mu sync.Mutex
	f  func(wire.Message) Reaction
}

func (s *script) set(f func(wire.Message) Reaction) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.f = f
}

func (s *script) react(m wire.Message) Reaction {
	s.mu.Lock()
	f := s.f
	s.mu.Unlock()
	if f == nil {
		return Reaction{}
	}
	return f(m)
}
