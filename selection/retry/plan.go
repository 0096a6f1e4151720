package retry

import (
	"time"

	"github.com/seed-5a7f77c4/deadair/selection/breaker"
)

// Request is what a plan has to know of a request.
type Request struct {
	// Conversation sticks to one provider; empty for none.
	Conversation string

	// PassThrough sends the request to the provider's own URL; endpoints are
	// not looked at.
	PassThrough bool
}

// Attempt is one call to make.
type Attempt struct {
	Provider string
	Endpoint string // the endpoint's ID; empty for the provider's own URL
	URL      string // base URL
	Number   int    // at this provider, from 1
}

// Plan is the way of one request through a pool: Next, Report, Next, Report, …
// until Report says Return or Next has nothing left. Close it in every case.
type Plan struct {
	pool    *Pool
	request Request
	now     time.Time // of the last call, for Close

	order   []*provider // still to be tried
	visited int
	current *provider // nil between providers
	self    grant     // of the current provider's breaker
	vendor  grant     // of its vendor's
	turn    Turn
	list    []candidate
	place   int // of the attempt under way
	started time.Time

	first bool // no provider has been left yet
	chain Chain
}

// Plan starts a request: the bound provider first, then the others in their
// order.
func (p *Pool) Plan(r Request, now time.Time) *Plan {
	order := make([]*provider, 0, len(p.providers))
	bound, _ := p.Bound(r.Conversation, now)
	for _, candidate := range p.providers {
		if candidate.Disabled {
			continue
		}
		order = append(order, candidate)
		if candidate.Name == bound {
			copy(order[1:], order)
			order[0] = candidate
		}
	}
	return &Plan{pool: p, request: r, now: now, order: order, first: true}
}

// Next starts the next attempt; ok is false when no provider is left.
func (p *Plan) Next(now time.Time) (a Attempt, ok bool) {
	p.now = now
	for p.current == nil {
		if len(p.order) == 0 || p.visited == MaxProviders {
			return Attempt{}, false
		}
		next := p.order[0]
		p.order = p.order[1:]
		p.enter(next)
	}
	p.place = p.turn.Begin()
	p.started = now
	c := &p.list[p.place]
	a = Attempt{Provider: p.current.Name, URL: c.url, Number: p.turn.Attempt()}
	if c.endpoint != nil {
		a.Endpoint = c.endpoint.ID
	}
	return a, true
}

// enter makes next the current provider if its breakers let it and it has a
// candidate.
func (p *Plan) enter(next *provider) {
	if next.vendor != nil && !next.vendor.Ready(p.now) || !next.breaker.Ready(p.now) {
		return
	}
	attempts := next.Attempts
	if attempts == 0 {
		attempts = p.pool.policy.Attempts
	}
	attempts = ClampAttempts(attempts)
	list := p.pool.candidates(next, p.request.PassThrough, attempts, p.now)
	if len(list) == 0 {
		return
	}
	p.current, p.list = next, list
	p.self, _ = acquire(next.breaker, p.now)
	p.vendor, _ = acquire(next.vendor, p.now)
	p.turn = NewTurn(&p.pool.policy, len(list), next.vendor != nil && list[0].endpoint != nil, attempts)
	p.visited++
}

// Content says that the first content of the answer is on its way to the client.
// The endpoint has proved itself; half-open endpoints that were held in reserve
// are free for other requests. The attempt goes on until Report.
func (p *Plan) Content(now time.Time) {
	p.now = now
	if p.current == nil {
		return
	}
	p.list[p.place].grant.report(breaker.Success, now)
	p.vendor.report(breaker.Success, now)
	p.release()
}

// Report ends the attempt under way and says what follows. It does not keep a.
func (p *Plan) Report(a *Answer, now time.Time) Decision {
	p.now = now
	if p.current == nil {
		return Decision{Action: Return}
	}
	d := p.turn.Report(p.pool.policy.Classifier.Classify(a))
	p.list[p.place].grant.report(d.Endpoint, now)
	p.self.report(d.Provider, now)
	p.vendor.report(d.Vendor, now)
	if d.Bind {
		p.pool.bindings.Bind(p.request.Conversation, p.current.Name, now)
	}
	p.record(a, &d)
	if d.Action != Again {
		p.leave()
	}
	return d
}

// release gives back what is held of the endpoints and of the vendor.
func (p *Plan) release() {
	for i := range p.list {
		p.list[i].grant.release(p.now)
	}
	p.vendor.release(p.now)
}

func (p *Plan) leave() {
	if p.current == nil {
		return
	}
	p.release()
	p.self.release(p.now)
	p.current = nil
	p.first = false
}

// Close gives back the permits of a plan that is not carried to its end, for
// instance because the client left during a wait. It is harmless afterwards.
func (p *Plan) Close() {
	p.leave()
	p.order = nil
}

// Chain is the attempts reported so far. The plan goes on appending to it; it
// belongs to the caller after Close.
func (p *Plan) Chain() Chain { return p.chain }

func (p *Plan) record(a *Answer, d *Decision) {
	if d.Kind == Success && p.first && p.turn.Attempt() == 1 {
		d.Reason = RequestSuccess
	}
	e := Entry{
		Provider: p.current.Name,
		Attempt:  p.turn.Attempt(),
		Index:    d.Index,
		Kind:     d.Kind,
		Reason:   d.Reason,
		Status:   a.Status,
		Err:      a.Err,
		Started:  p.started,
		Ended:    p.now,
	}
	if endpoint := p.list[p.place].endpoint; endpoint != nil {
		e.Endpoint = endpoint.ID
	}
	p.chain = append(p.chain, e)
}
