package race

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-5a7f77c4/deadair/selection/rank"
	"github.com/seed-5a7f77c4/deadair/selection/route"
)

// Input is what a plan is made from.
type Input struct {
	// Candidates are all known ways to the machine, saved and discovered, in the order in which they are known.
	Candidates []route.Candidate
	// Account is the signed-in account, "" for none.
	Account string
	// Vet says whether a candidate may be dialled: nil, or why not. Default: route.Vet for Account, which lets a direct
	// route pass only if it stays private, since the hello goes out in plain text. A program whose hello is encrypted, and
	// proves who answers, may admit more.
	Vet func(route.Candidate) error
	// Facts is what the order depends on.
	Facts rank.Facts
	// Only limits the race to some classes of route. Nil: all.
	Only func(route.Class) bool
}

// Slot is one candidate of a plan.
type Slot struct {
	rank.Ranked
	// Wave says that the candidate starts at Delay; the others start when a place becomes free.
	Wave bool
	// Delay is the start of a candidate of the first wave, from the start of the race.
	Delay time.Duration
	// Reason says why the candidate has this slot.
	Reason string
}

// Plan is who is tried, and when. Its String explains it.
type Plan struct {
	// Slots lists the first wave and then the others, in the order in which they start.
	Slots []Slot
	// Refused lists the candidates that vetting has refused.
	Refused []route.Refusal
	// Missing is what the user has to do before the relay can be used: route.ErrSignIn or route.ErrWrongAccount. It is nil
	// when no relay was refused, and when the race leaves relays out.
	Missing error
}

// Build vets, ranks and schedules the candidates. Later steps only reorder what vetting has let through, so no memory
// can bring a refused candidate back.
func Build(in Input, policy Policy) Plan {
	policy = policy.withDefaults()
	vet := in.Vet
	if vet == nil {
		vet = func(c route.Candidate) error { return route.Vet(c, in.Account) }
	}
	admitted, refused := route.Sift(route.Merge(in.Candidates), vet)
	wanted := func(c route.Class) bool { return in.Only == nil || in.Only(c) }
	admitted = slices.DeleteFunc(admitted, func(c route.Candidate) bool { return !wanted(c.Class()) })
	plan := Schedule(policy.Rank.Sweep(rank.Order(admitted, in.Facts, policy.Rank)), policy)
	plan.Refused = refused
	if wanted(route.Relay) {
		plan.Missing = route.Requirement(refused)
	}
	return plan
}

// Schedule gives the first wave its slots: rank 1; the best of another class; the best of a class still missing; then
// by rank. The others follow in rank order.
func Schedule(order []rank.Ranked, policy Policy) Plan {
	policy = policy.withDefaults()
	rest := slices.Clone(order)
	var plan Plan
	classes := make(map[route.Class]bool)
	for len(rest) > 0 && len(plan.Slots) < policy.Concurrent {
		slot := len(plan.Slots)
		i := slices.IndexFunc(rest, func(r rank.Ranked) bool { return !classes[r.Class] })
		reason := [...]string{"rank 1", "best of another class", "best of a class still missing"}[min(slot, 2)]
		if i < 0 {
			i, reason = 0, "by rank"
		}
		r := rest[i]
		rest = slices.Delete(rest, i, i+1)
		classes[r.Class] = true
		plan.Slots = append(plan.Slots, Slot{Ranked: r, Wave: true, Delay: policy.Delay(slot, r.Class), Reason: reason})
	}
	for _, r := range rest {
		plan.Slots = append(plan.Slots, Slot{Ranked: r, Reason: "by rank, when a place is free"})
	}
	return plan
}

// Classes lists the classes of route in the plan, best first.
func (p Plan) Classes() []route.Class {
	return slices.DeleteFunc(slices.Clone(route.Classes), func(c route.Class) bool {
		return !slices.ContainsFunc(p.Slots, func(s Slot) bool { return s.Class == c })
	})
}

// String explains the plan, one candidate a line.
func (p Plan) String() string {
	var b strings.Builder
	for i, s := range p.Slots {
		start := "queued"
		if s.Wave {
			start = "+" + s.Delay.String()
		}
		fmt.Fprintf(&b, "%2d  %-7s %s  (%s", i, start, s.Candidate, s.Reason)
		if why := s.Why(); why != "" {
			fmt.Fprintf(&b, "; %s", why)
		}
		b.WriteString(")\n")
	}
	for _, r := range p.Refused {
		fmt.Fprintf(&b, " –  refused %s  (%v)\n", r.Candidate, r.Err)
	}
	if b.Len() == 0 {
		return "nothing to try\n"
	}
	return b.String()
}
