// Package rank puts the candidates of a connect into the order in which they are worth trying.
//
//	ordered := rank.Order(admitted, rank.Facts{
//		Path:        path,
//		Failing:     func(k route.Key) bool { return mem.Failing(now, k) },
//		LastSuccess: func(k route.Key) time.Time { return mem.Endpoint(k).LastSuccessAt },
//		Remembered:  mem.Remembered(path.Fingerprint()),
//		LastGood:    mem.LastGood(),
//	}, rank.DefaultPolicy())
//
// Nothing is added and nothing is lost: the result is a permutation of the input.
package rank

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/seed-5a7f77c4/deadair/selection/route"
)

// Facts is what the order depends on besides the candidates.
type Facts struct {
	// Path is the phone's network; nil means that there is no snapshot yet, and counts as having a local link.
	Path *route.Path
	// Failing reports whether an endpoint is failing recently. Nil: none is.
	Failing func(route.Key) bool
	// LastSuccess gives the time of an endpoint's last success, zero for none. Nil: none has one.
	LastSuccess func(route.Key) time.Time
	// Remembered is the endpoint that worked last on this network, LastGood the one that worked last on any.
	Remembered, LastGood route.Key
}

// Policy holds the rules of ranking. A rule that is nil is the default one.
type Policy struct {
	// Keeps reports whether a candidate stays in the plan. Default: every one does, since demotion never removes.
	Keeps func(Ranked) bool
	// LocalLinkOnly reports whether an address can work only on the same link. Default: route.LocalLinkOnly.
	LocalLinkOnly func(address string) bool
	// Hoists lists the endpoints to bring to the front, the foremost first. Default: the network's, then the last good.
	Hoists func(Facts) []route.Key
	// Hoist brings one endpoint to the front of the order. Default: Hoist.
	Hoist func(order []Ranked, key route.Key) []Ranked
	// Sweep adds the alternate ports to the order. Default: Sweep.
	Sweep func(order []Ranked) []Ranked
}

// DefaultPolicy gives the rules as they should be.
func DefaultPolicy() Policy {
	return Policy{
		Keeps:         func(Ranked) bool { return true },
		LocalLinkOnly: route.LocalLinkOnly,
		Hoists:        func(f Facts) []route.Key { return []route.Key{f.Remembered, f.LastGood} },
		Hoist:         Hoist,
		Sweep:         Sweep,
	}
}

// WithDefaults puts the default in the place of every rule that is nil.
func (p Policy) WithDefaults() Policy {
	d := DefaultPolicy()
	if p.Keeps == nil {
		p.Keeps = d.Keeps
	}
	if p.LocalLinkOnly == nil {
		p.LocalLinkOnly = d.LocalLinkOnly
	}
	if p.Hoists == nil {
		p.Hoists = d.Hoists
	}
	if p.Hoist == nil {
		p.Hoist = d.Hoist
	}
	if p.Sweep == nil {
		p.Sweep = d.Sweep
	}
	return p
}

// Ranked is a candidate and why it stands where it stands.
type Ranked struct {
	route.Candidate
	// Class and Key are the candidate's, worked out once.
	Class route.Class
	Key   route.Key
	// Failing says that it is demoted for failing recently, OffLink for being local-link only without a local link.
	Failing, OffLink bool
	// Hoisted says that a memory brought it to the front.
	Hoisted bool
	// Alternate says that this is another port of a route that has been tried on its first.
	Alternate bool
	// LastSuccess is the time of its last success: zero for never, the Unix epoch for the bare last-good.
	LastSuccess time.Time
}

// Demoted reports whether the candidate is at the back of the order.
func (r Ranked) Demoted() bool { return r.Failing || r.OffLink }

// Why explains the rank in a few words.
func (r Ranked) Why() string {
	var why []string
	for _, s := range []struct {
		on   bool
		text string
	}{
		{r.Hoisted, "remembered"}, {r.Failing, "failing"}, {r.OffLink, "no local link"},
		{r.Live, "discovered"}, {r.Alternate, "alternate port"},
	} {
		if s.on {
			why = append(why, s.text)
		}
	}
	return strings.Join(why, ", ")
}

// Order ranks the candidates: those not demoted first, then those seen live in discovery, then by class, then by most
// recent success, then as they came. The memories' endpoints are then hoisted.
func Order(candidates []route.Candidate, facts Facts, policy Policy) []Ranked {
	policy = policy.WithDefaults()
	offLink := facts.Path != nil && !facts.Path.LocalLink()
	order := make([]Ranked, 0, len(candidates))
	for _, c := range candidates {
		r := Ranked{Candidate: c, Class: c.Class(), Key: c.Key()}
		r.OffLink = offLink && policy.LocalLinkOnly(c.Address)
		r.Failing = facts.Failing != nil && facts.Failing(r.Key)
		if facts.LastSuccess != nil {
			r.LastSuccess = facts.LastSuccess(r.Key)
		}
		if r.LastSuccess.IsZero() && r.Key == facts.LastGood {
			r.LastSuccess = time.Unix(0, 0)
		}
		if policy.Keeps(r) {
			order = append(order, r)
		}
	}
	slices.SortStableFunc(order, func(a, b Ranked) int {
		return cmp.Or(
			before(!a.Demoted(), !b.Demoted()),
			before(a.Live, b.Live),
			cmp.Compare(a.Class, b.Class),
			b.LastSuccess.Compare(a.LastSuccess),
		)
	})
	for _, key := range slices.Backward(policy.Hoists(facts)) {
		order = policy.Hoist(order, key)
	}
	return order
}

// Hoist brings the endpoint to the front of the order, if it is there and not demoted.
func Hoist(order []Ranked, key route.Key) []Ranked {
	i := slices.IndexFunc(order, func(r Ranked) bool { return r.Key == key && !r.Demoted() })
	if i < 0 {
		return order
	}
	chosen := order[i]
	chosen.Hoisted = true
	copy(order[1:i+1], order[:i])
	order[0] = chosen
	return order
}

// Sweep adds the alternate ports of direct routes behind the order: every route gets one try before any alternate, and
// every route its second port before any its third.
func Sweep(order []Ranked) []Ranked {
	swept := slices.Clone(order)
	ports := make([][]uint16, len(order))
	for i, r := range order {
		if r.Class != route.Relay {
			ports[i] = route.Ports(r.Port)
		}
	}
	for round := 1; ; round++ {
		added := false
		for i, r := range order {
			if round < len(ports[i]) {
				r.Port, r.Alternate, r.Hoisted = ports[i][round], true, false
				swept = append(swept, r)
				added = true
			}
		}
		if !added {
			return swept
		}
	}
}

// before orders true before false.
func before(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}
