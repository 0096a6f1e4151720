package memory

import (
	"time"

	"github.com/seed-5a7f77c4/deadair/selection/route"
)

// Policy holds the rules of both memories: take DefaultPolicy and change what differs.
type Policy struct {
	// Capacity is the number of networks remembered. Default 8.
	Capacity int
	// Threshold is the number of consecutive failures from which an endpoint counts as failing. Default 2.
	Threshold int
	// Recent reports whether a failure of this age still counts. Default: from 0 to 120 s, both included; a stamp in
	// the future has expired.
	Recent func(age time.Duration) bool
	// Remembers reports whether a win on this class of route is remembered for the network. Default: every class.
	Remembers func(route.Class) bool
}

// FailureWindow is the time for which a failure counts.
const FailureWindow = 120 * time.Second

// DefaultPolicy gives the rules as they should be.
func DefaultPolicy() Policy {
	return Policy{
		Capacity:  8,
		Threshold: 2,
		Recent:    func(age time.Duration) bool { return age >= 0 && age <= FailureWindow },
		Remembers: func(route.Class) bool { return true },
	}
}
