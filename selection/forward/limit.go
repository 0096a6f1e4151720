package forward

import "time"

// Urgency is who waits for a command: a background worker (the zero value), or a user who has tapped Retry n times.
type Urgency struct {
	Interactive bool
	Retry       int
}

// Limits are a command's time-outs.
type Limits struct {
	// Connect is for DNS, TCP, SOCKS, TLS and hello together, and for those who wait for another's connection.
	Connect time.Duration
	// Command is for a command to a server and its answer.
	Command time.Duration
}

// Session is the limit of a request for a relay session: the proxy may have to connect first.
func (l Limits) Session() time.Duration { return l.Connect + l.Command }

// Forward is the limit of a forwarded command: it takes two hops.
func (l Limits) Forward() time.Duration { return 2 * l.Command }

// Times are the limits by urgency.
type Times struct {
	Background, Interactive Limits
	// Growth, a fraction, is by how much each retry of the user stretches the limits, up to the MaxRetry-th.
	GrowthNum, GrowthDen, MaxRetry int
	// Slow, a fraction, is by how much a slow network stretches all limits.
	SlowNum, SlowDen int
}

// DefaultTimes are a messaging agent's: connect 45 s and command 30 s in the background; 15 s and 10 s interactive,
// half as long again for each of the first three retries.
var DefaultTimes = Times{
	Background:  Limits{Connect: 45 * time.Second, Command: 30 * time.Second},
	Interactive: Limits{Connect: 15 * time.Second, Command: 10 * time.Second},
	GrowthNum:   3, GrowthDen: 2, MaxRetry: 3,
	SlowNum: 3, SlowDen: 2,
}

// For returns the limits of a command; a slow network makes them half as long again.
func (t Times) For(u Urgency, slow bool) Limits {
	l := t.Background
	if u.Interactive {
		l = t.Interactive
		for range min(u.Retry, t.MaxRetry) {
			l = l.times(t.GrowthNum, t.GrowthDen)
		}
	}
	if slow {
		l = l.times(t.SlowNum, t.SlowDen)
	}
	return l
}

func (l Limits) times(num, den int) Limits {
	n, d := time.Duration(num), time.Duration(den)
	return Limits{Connect: l.Connect * n / d, Command: l.Command * n / d}
}
