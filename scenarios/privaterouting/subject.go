package privaterouting

import "github.com/seed-5a7f77c4/deadair/selection/forward"

// Subject is the agent under test: every rule of it is a field of its policy, so
// that a mutant is the same agent with one field changed.
type Subject struct {
	Policy forward.Policy
}

// Ours is the agent with all of its rules.
func Ours() Subject { return Subject{Policy: forward.DefaultPolicy()} }
