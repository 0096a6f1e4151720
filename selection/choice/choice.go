// Package choice remembers which forwarding proxy is used towards which destination, and when to forget it.
//
// An entry names a proxy and carries a generation number. A request takes its choice from the table, and what becomes
// of it is told to the table as an event that names the choice. Events of a choice that is no longer the entry's touch
// nothing, so a late result cannot hurt a newer choice, not even one of the same proxy.
//
//	t := choice.NewTable[string, string](choice.Default())
//	c, _ := t.Choose("relay", "p1") // an existing entry overrides the proxy offered
//	if err := forward(c.Proxy); err != nil {
//		t.Apply("relay", choice.Event[string]{Kind: choice.ForwardFailed, Choice: c}, time.Now())
//	}
//
// The rules are rows of a [Policy]; [Step] applies them and is a pure function. A [Table] is a map of entries around it.
package choice

import "time"

// Choice is one pick of a proxy. Two picks of one proxy differ in their generation.
type Choice[P comparable] struct {
	Proxy      P
	Generation uint64
}

// Entry is a choice in force, with its streak of failures.
type Entry[P comparable] struct {
	Choice[P]
	Streak Streak
}

// Event tells what became of a request that went by a choice.
type Event[P comparable] struct {
	Kind   Kind
	Choice Choice[P]
}

// Change is what an event did to an entry.
type Change uint8

const (
	// Kept: nothing changed, or the event was none of the entry's business.
	Kept Change = iota
	// StreakBegun: the first failure was noted.
	StreakBegun
	// StreakGoesOn: one more failure of a streak, which does not suffice.
	StreakGoesOn
	// StreakCleared: the streak was ended by a success.
	StreakCleared
	// StreakOut: the entry was forgotten because its streak lasted too long.
	StreakOut
	// Dropped: the entry was forgotten at once.
	Dropped
)

var changeNames = [...]string{"kept", "streak begun", "streak goes on", "streak cleared", "forgotten after a streak", "forgotten"}

// String is the change in words.
func (c Change) String() string { return changeNames[c] }

// Forgotten reports whether the entry is gone.
func (c Change) Forgotten() bool { return c == StreakOut || c == Dropped }

// Step applies an event to an entry, at the time it is handled. The entry returned is meaningless if the change says Forgotten.
func Step[P comparable](p *Policy, e Entry[P], ev Event[P], now time.Time) (Entry[P], Change) {
	rule := p.Rules[ev.Kind]
	if !allows(rule.Guard, e.Choice, ev.Choice) {
		return e, Kept
	}
	switch rule.Effect {
	case Forget:
		return e, Dropped
	case Clear:
		if !e.Streak.Running() {
			return e, Kept
		}
		e.Streak = Streak{}
		return e, StreakCleared
	case Count:
		running := e.Streak.Running()
		next, forget := p.Counter(e.Streak, now)
		e.Streak = next
		switch {
		case forget:
			return e, StreakOut
		case running:
			return e, StreakGoesOn
		}
		return e, StreakBegun
	}
	return e, Kept
}

func allows[P comparable](g Guard, current, of Choice[P]) bool {
	switch g {
	case SameChoice:
		return current.Generation == of.Generation
	case SameProxy:
		return current.Proxy == of.Proxy
	}
	return true
}
