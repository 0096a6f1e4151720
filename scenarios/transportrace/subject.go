package transportrace

import (
	"github.com/seed-5a7f77c4/deadair/selection/handshake"
	"github.com/seed-5a7f77c4/deadair/selection/memory"
	"github.com/seed-5a7f77c4/deadair/selection/race"
	"github.com/seed-5a7f77c4/deadair/selection/roam"
)

// Subject is the client under test: our own, with the rules of each part.
type Subject struct {
	Race      race.Policy
	Memory    memory.Policy
	Handshake handshake.Policy
	Roam      roam.Policy
	// TrustingRegistry lets any release free a dial, see handshake.Registry.
	TrustingRegistry bool
}

// Ours is the client with every rule in force.
func Ours() Subject {
	return Subject{
		Race: race.DefaultPolicy(), Memory: memory.DefaultPolicy(),
		Handshake: handshake.DefaultPolicy(), Roam: roam.DefaultPolicy(),
	}
}
