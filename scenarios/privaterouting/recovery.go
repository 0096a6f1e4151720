package privaterouting

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/seed-5a7f77c4/deadair/clock"
	"github.com/seed-5a7f77c4/deadair/netsim"
	"github.com/seed-5a7f77c4/deadair/scenarios"
)

// A Line is one agent whose recovery is measured: as it was, as it is, or with a
// variant.
type Line struct {
	Name, Doc string
	Subject   Subject
}

// Lines are the agents that are compared.
func Lines() []Line {
	all := Mutants()
	old := all[slices.IndexFunc(all, func(m mutant) bool { return m.Name == "old" })]
	return []Line{
		{"old", "the agent as it was: " + old.Doc, old.Apply(Ours())},
		{"fixed", "the agent as it is", Ours()},
		{"exclude failed", "the proxy just forgotten is left out of the next pick", Ours().ExcludeFailed()},
		{"count client time-outs", "the app's own time-outs count as reports do", Ours().CountTimeouts()},
		{"streak expiry", "a streak whose last failure is an hour old starts anew", Ours().ExpireStreaks(time.Hour)},
		{"probe another", "a second proxy is raced from the first failure on", Ours().ProbeAnother()},
	}
}

// Figures of a recovery. The first two are missing when it did not come.
const (
	RecoveredAfter = "seconds" // float64, from the first attempt on
	RecoveredRetry = "retries" // int, how often the user tapped Retry
	Repicks        = "repicks" // int, how often the broken proxy was left less one
)

// Watched is how long a reply in the background is watched, and Patience how
// often a user taps Retry at most. Longer than the field watched: 600 s, 6 to 14.
const (
	Watched  = unfixed
	Patience = 14
)

// timerError is how wrong the timers of the app may be, in parts per million.
// At 20 s and 30 s that is some hundredths of a second, which a busy phone's
// timers are late, and as much as the way to the proxy takes: so who wins at the
// first Retry, the app's own time-out or the proxy's report, is open as it is in
// the field.
const timerError = 2000

// timers are the app's, a little wrong, as the seed says.
func timers(seed uint64) clock.Clock {
	const stream = 0x74696d6572
	r := rand.New(rand.NewPCG(seed, stream))
	return clock.NewSkewed(clock.System, clock.Skew{Drift: r.Int64N(2*timerError+1) - timerError})
}

// Reply measures PR-4 rather than judging it: when the contact was connected.
func Reply(line string, plain bool) scenarios.Scenario[Subject] {
	return measure("reply, "+line, func(p *scenarios.Play, s Subject) {
		setup := p1Silent()
		setup.Plain = plain
		w := opened(p, s, setup)
		took, ok := w.reply(Watched)
		p.Figure(Repicks, w.App.Forgotten()-1)
		if ok {
			p.Figure(RecoveredAfter, took.Seconds())
		}
	})
}

// Join measures PR-5: when, and at which Retry, the app joined the link.
func Join(line string, plain bool) scenarios.Scenario[Subject] {
	return measure("join, "+line, func(p *scenarios.Play, s Subject) {
		setup := p1Silent()
		setup.Plain, setup.Clock = plain, timers(p.Seed)
		w := opened(p, s, setup)
		began := p.Elapsed()
		seen, joined := w.join(Patience)
		p.Figure(Repicks, w.App.Forgotten()-1)
		if joined {
			p.Figure(RecoveredAfter, (p.Elapsed() - began).Seconds())
			p.Figure(RecoveredRetry, len(seen))
		}
	})
}

// Fleet measures PR-28 with so many of ten proxies broken: how often a broken one
// was picked again.
func Fleet(broken int, plain bool) scenarios.Scenario[Subject] {
	return measure(fmt.Sprintf("fleet, %d of 10 broken", broken), func(p *scenarios.Play, s Subject) {
		playFleet(p, s, broken, plain)
	})
}

func measure(id string, play func(*scenarios.Play, Subject)) story {
	return story{
		ID: id, Title: "P1 broken / P2 good, measured", Play: play,
		Network: []netsim.Option{netsim.Defaults(netsim.Conditions{Latency: Latency})},
	}
}

// A Trial is one that somebody watched in the field.
type Trial struct {
	Where string // "desktop" or "Android"
	Old   bool   // the agent as it was
	// Value is seconds until connected, or the Retry at which it joined. Of one that
	// did not, it is how long it was watched.
	Value float64
	Never bool
}

// Observed are the trials of the field: replies in the background, in seconds,
// and joins, in Retries. A fourth join on a desktop is left out: its Retry, one of
// 3, 4 and 6, was not noted.
func Observed() (replies, joins []Trial) {
	add := func(to *[]Trial, where string, old, never bool, values ...float64) {
		for _, v := range values {
			*to = append(*to, Trial{where, old, v, never})
		}
	}
	add(&replies, "desktop", false, false, 64, 64, 129, 192)
	add(&replies, "Android", false, false, 63, 63, 63, 67, 128)
	add(&replies, "desktop", true, true, 600, 600)
	add(&replies, "Android", true, true, 300, 300, 300, 300)
	add(&joins, "desktop", false, false, 3, 4, 6)
	add(&joins, "Android", false, false, 4, 4, 6, 6, 10)
	add(&joins, "Android", false, true, 6, 6)
	add(&joins, "desktop", true, true, 6, 6)
	add(&joins, "Android", true, true, 6, 6, 6, 6)
	return replies, joins
}
