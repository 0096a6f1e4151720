package forward

import (
	"time"

	"github.com/seed-5a7f77c4/deadair/selection/backoff"
	"github.com/seed-5a7f77c4/deadair/selection/choice"
	"github.com/seed-5a7f77c4/deadair/selection/idle"
	"github.com/seed-5a7f77c4/deadair/selection/pick"
	"github.com/seed-5a7f77c4/deadair/selection/share"
)

// Policy is every rule of the client as a value. Each is consulted at one place; to switch one off, copy and assign.
type Policy struct {
	// Choice says what becomes of a choice.
	Choice choice.Policy
	// Proxied says whether commands for a destination go through a proxy.
	Proxied func(c Config, destination pick.Server) bool
	// Cascade are the filters of the pick.
	Cascade []pick.Filter
	// ExcludeFailed leaves the proxy just forgotten out of the next pick while another candidate exists. Off by default.
	ExcludeFailed bool
	// Probe races a second proxy while a streak runs and keeps the winner. Off by default.
	Probe bool
	// NoSession says what to do when the proxy does not know the session.
	NoSession NoSessionRule
	// FallsBack says after which errors a command may go directly, where the configuration allows it.
	FallsBack func(*Error) bool
	// Connects and Sessions say what becomes of attempts to connect, and to get a relay session, that came to nothing.
	Connects, Sessions share.Policy
	// Times are the time-outs.
	Times Times
	// Idle is the drop rule of connections.
	Idle idle.Rule
	// Retry is what a background worker does after a failure.
	Retry RetryPolicy
}

// NoSessionRule is what a client does when a proxy answers that it does not know the relay session.
type NoSessionRule struct {
	// Retries is how often a call asks the same proxy for a new session and tries again.
	Retries int
	// Drop takes the dead session out, so that the next request makes a new one. It gets the sessions of the proxy that
	// handled the request and the attempt that made the session used; nil leaves them alone.
	Drop func(sessions *share.Group[string, Session], relay string, used share.Attempt)
	// Record puts the proxy of the retry in the table when there is no entry. A correct client does not.
	Record bool
}

// DropUsed takes out the session that the request used, unless another one has taken its place.
func DropUsed(sessions *share.Group[string, Session], relay string, used share.Attempt) {
	sessions.Remove(relay, used)
}

// PersistErrorInterval is how long a failed attempt is stored.
const PersistErrorInterval = 3 * time.Second

// DefaultPolicy is a messaging agent's.
func DefaultPolicy() Policy {
	return Policy{
		Choice:    choice.Default(),
		Proxied:   Config.Proxied,
		Cascade:   pick.Default,
		NoSession: NoSessionRule{Retries: 1, Drop: DropUsed},
		FallsBack: (*Error).HostError,
		Connects:  share.For(PersistErrorInterval),
		Sessions:  share.Policy{Persist: sessionErrors},
		Times:     DefaultTimes,
		Idle:      idle.Default,
		Retry:     RetryPolicy{Ladder: backoff.Background, Full: backoff.Quota, MoveAfter: 2},
	}
}

// sessionErrors stores a host error as long as the proxy's connection lives, since no retry can cure it.
func sessionErrors(err error) time.Duration {
	if e := AsError(err); e != nil && e.HostError() {
		return -1
	}
	return PersistErrorInterval
}
