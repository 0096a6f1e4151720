package transportrace

import (
	"encoding/json"
	"time"

	"github.com/coder/websocket"

	"github.com/seed-5a7f77c4/deadair/selection/handshake"
	"github.com/seed-5a7f77c4/deadair/selection/memory"
	"github.com/seed-5a7f77c4/deadair/selection/race"
	"github.com/seed-5a7f77c4/deadair/selection/roam"
	"github.com/seed-5a7f77c4/deadair/selection/route"
)

// Subject is the client under test: our own, with the rules of each part. A rule that is not a package's own policy is a
// function or a switch here, consulted by the app at one place.
type Subject struct {
	Race      race.Policy
	Memory    memory.Policy
	Handshake handshake.Policy
	Roam      roam.Policy

	// SingleFlight lets one dial to a machine's key be under way. TrustingRegistry lets any release free a dial, see
	// handshake.Registry.
	SingleFlight, TrustingRegistry bool
	// OneRacer says that all races are run by one Racer, so that a new one cancels the one before.
	OneRacer bool
	// Record writes a race into the memories.
	Record func(m *memory.Memory, now time.Time, network route.Fingerprint, won Outcome, success *memory.Success)
	// Load and Save turn the profile from and into what is stored.
	Load func([]byte, memory.Policy) (*memory.Profile, error)
	Save func(*memory.Profile) ([]byte, error)
	// Close ends a socket that is not needed any more.
	Close func(*websocket.Conn) error
}

// Outcome is a finished race of the app.
type Outcome = race.Outcome[*Conn]

// Ours is the client with every rule in force.
func Ours() Subject {
	return Subject{
		Race: race.DefaultPolicy(), Memory: memory.DefaultPolicy(),
		Handshake: handshake.DefaultPolicy(), Roam: roam.DefaultPolicy(),
		SingleFlight: true, OneRacer: true,
		Record: recordOnce,
		Load:   memory.DecodeProfile,
		Save:   func(p *memory.Profile) ([]byte, error) { return json.Marshal(p) },
		Close:  (*websocket.Conn).CloseNow,
	}
}

// recordOnce writes a race down once, after it: each route to blame has one strike, however many of its ports failed.
func recordOnce(m *memory.Memory, now time.Time, network route.Fingerprint, won Outcome, success *memory.Success) {
	m.Record(now, network, won.Failed, success)
}
