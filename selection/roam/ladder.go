package roam

import (
	"math/rand/v2"
	"time"
)

// Stable is the age from which a connection resets the ladder.
const Stable = 10 * time.Second

// Rungs are the waits of the ladder before its slow beat.
var Rungs = []time.Duration{
	time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 16 * time.Second, 16 * time.Second,
}

// Ladder spaces the attempts to reconnect: 1, 2, 4, 8, 16, 16, 16 s, each ± 20 %, then one attempt every 30–40 s.
type Ladder struct {
	policy Policy
	random *rand.Rand
	rung   int
}

// NewLadder makes a ladder whose jitter comes from the seed.
func NewLadder(p Policy, seed uint64) *Ladder {
	return &Ladder{policy: p, random: rand.New(rand.NewPCG(seed, 0x6c6164646572))}
}

// Next is the wait before the next attempt.
func (l *Ladder) Next() time.Duration {
	draw := l.random.Float64()
	if l.rung == len(l.policy.Rungs) {
		return 30*time.Second + time.Duration(draw*float64(10*time.Second))
	}
	base := l.policy.Rungs[l.rung]
	l.rung++
	return time.Duration(float64(base) * (0.8 + 0.4*draw))
}

// Lost says that a connection of this age has ended; a stable one resets the ladder.
func (l *Ladder) Lost(age time.Duration) {
	if age >= l.policy.Stable {
		l.rung = 0
	}
}
