// Package idle decides when a silent connection is given up: the drop rule.
//
// A connection is looked at after every interval of silence. It is ended if enough commands have timed out since the
// last block was received and the silence has lasted long enough; both are needed. Anything received starts afresh, so
// a server that answers with errors keeps its connection for ever.
//
//	s := idle.Start(now)
//	// on every block received:   s.Received(now)
//	// on every client time-out:  s.TimedOut()
//	// at s.Due(idle.Default):    s.Check(idle.Default, now)
package idle

import "time"

// Rule is the drop rule's figures.
type Rule struct {
	// Every is the silence after which, and after whose multiples, the connection is looked at.
	Every time.Duration
	// Commands is the number of commands that must have timed out.
	Commands int
	// Silence is the shortest silence that ends a connection.
	Silence time.Duration
}

// Default is a messaging agent's rule: looked at every 600 s, ended after 3 time-outs and 900 s. With these figures
// the earliest end is at 1200 s.
var Default = Rule{Every: 600 * time.Second, Commands: 3, Silence: 900 * time.Second}

// State is what the rule knows of one connection.
type State struct {
	last     time.Time
	looked   int
	timedOut int
}

// Start is the state of a connection that was established now.
func Start(now time.Time) State { return State{last: now} }

// Received notes that a block came in.
func (s *State) Received(now time.Time) { *s = State{last: now} }

// TimedOut notes that a command got no answer in time.
func (s *State) TimedOut() { s.timedOut++ }

// Due is when the connection is to be looked at next.
func (s *State) Due(r Rule) time.Time { return s.last.Add(time.Duration(s.looked+1) * r.Every) }

// Verdict is what [State.Check] decides.
type Verdict uint8

const (
	// Wait: nothing is due.
	Wait Verdict = iota
	// Ping: the silence has lasted another interval; ask whether the other side is alive.
	Ping
	// End the connection.
	End
)

// Check looks at the connection.
func (s *State) Check(r Rule, now time.Time) Verdict {
	if now.Before(s.Due(r)) {
		return Wait
	}
	silence := now.Sub(s.last)
	s.looked = int(silence / r.Every)
	if s.timedOut >= r.Commands && silence >= r.Silence {
		return End
	}
	return Ping
}
