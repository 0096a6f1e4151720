package roam

import (
	"math/rand/v2"
	"time"
)

// Stable is the age from which a connection resets the ladder.
const Stable = 10 * time.Second

var rungs = []time.Duration{1, 2, 4, 8, 16, 16, 16} // seconds

// Ladder spaces the attempts to reconnect: 1, 2, 4, 8, 16, 16, 16 s, each ± 20 %, then one attempt every 30–40 s.
type Ladder struct {
	random *rand.Rand
	rung   int
}

// NewLadder makes a ladder whose jitter comes from the seed.
func NewLadder(seed uint64) *Ladder {
	return &Ladder{random: rand.New(rand.NewPCG(seed, 0x6c6164646572))}
}

// Next is the wait before the next attempt.
func (l *Ladder) Next() time.Duration {
	draw := l.random.Float64()
	if l.rung == len(rungs) {
		return 30*time.Second + time.Duration(draw*float64(10*time.Second))
	}
	base := rungs[l.rung] * time.Second
	l.rung++
	return time.Duration(float64(base) * (0.8 + 0.4*draw))
}

// Lost says that a connection of this age has ended; a stable one resets the ladder.
func (l *Ladder) Lost(age time.Duration) {
	if age >= Stable {
		l.rung = 0
	}
}
