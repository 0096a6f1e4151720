package clock

import (
	"fmt"
	"time"
)

// Option sets something for one Run or Bubble.
type Option func(*config) error

type config struct {
	start    time.Time
	patience time.Duration
	busy     time.Duration
	grace    time.Duration
	budget   time.Duration
	seed     uint64
	noSeed   error // why there is no default
}

// bubbleStart is where the time of every bubble starts.
var bubbleStart = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func configure(opts []Option) (config, error) {
	c := config{patience: 5 * time.Second, grace: 10 * time.Second}
	c.seed, c.noSeed = DefaultSeed()
	for _, opt := range opts {
		if err := opt(&c); err != nil {
			return config{}, err
		}
	}
	if c.noSeed != nil {
		return config{}, c.noSeed
	}
	if c.busy == 0 {
		c.busy = 12 * c.patience
	}
	return c, nil
}

// StartAt is the virtual time at which the body starts. Default: 2000-01-01 00:00 UTC, where the runtime starts a bubble.
// Later times are reached by one sleep; earlier ones are an error.
func StartAt(t time.Time) Option {
	return func(c *config) error {
		if t.Before(bubbleStart) {
			return fmt.Errorf("clock: StartAt(%v): a bubble's time cannot start before %v", t, bubbleStart)
		}
		c.start = t
		return nil
	}
}

// Patience is how long, in real time, virtual time may stand still because a goroutine waits for something outside the
// bubble, before the watchdog gives up the run and says so. Default: 5 s. 0 switches the watchdog off.
func Patience(d time.Duration) Option {
	return natural("Patience", d, func(c *config) { c.patience = d })
}

// BusyPatience is the same for a goroutine that computes all the time, which may well come to an end. Default: twelve
// times Patience. A run that was slow before gets more: twice the real time it took to come this far.
func BusyPatience(d time.Duration) Option {
	return natural("BusyPatience", d, func(c *config) { c.busy = d })
}

// Grace is how long, in virtual time, goroutines may go on after the body returned and its cleanups ran; those that
// still live then are leaked. Default: 10 s.
func Grace(d time.Duration) Option { return natural("Grace", d, func(c *config) { c.grace = d }) }

// Budget is the virtual time the body may take. A body that is not done by then is given up with an error that says
// where its goroutines stand. Default: 0, none.
func Budget(d time.Duration) Option { return natural("Budget", d, func(c *config) { c.budget = d }) }

// Seed is the seed a failure is reported with. Default: DefaultSeed.
func Seed(seed uint64) Option {
	return func(c *config) error { c.seed, c.noSeed = seed, nil; return nil }
}

func natural(name string, d time.Duration, set func(*config)) Option {
	return func(c *config) error {
		if d < 0 {
			return fmt.Errorf("clock: %s(%v): negative", name, d)
		}
		set(c)
		return nil
	}
}
