package race

import (
	"context"
	"io"
	"net"
	"sync"
	"time"

	"github.com/seed-5a7f77c4/deadair/selection/route"
)

// Attempt makes one connection: it opens the candidate's socket, calls opened, sends the hello and returns once the
// other end has answered it. It must end when ctx does, and close what it opened when it fails. ctx ends with the race,
// so the connection must not depend on it any longer once the attempt has returned.
type Attempt[C io.Closer] func(ctx context.Context, c route.Candidate, opened func()) (C, error)

// OpenThenHello makes an Attempt of a dial function, such as that of a net.Dialer, and a hello. The connection is closed
// when the hello fails or when ctx ends first; hello need not watch ctx, since its reads and writes then fail. What is
// dialled is the candidate's Target over "tcp": host:port, or the URL of a relay, which a net.Dialer does not understand.
func OpenThenHello[C io.Closer](
	dial func(ctx context.Context, network, address string) (net.Conn, error),
	hello func(ctx context.Context, conn net.Conn) (C, error),
) Attempt[C] {
	return func(ctx context.Context, c route.Candidate, opened func()) (C, error) {
		var none C
		conn, err := dial(ctx, "tcp", c.Target())
		if err != nil {
			return none, err
		}
		opened()
		closed := make(chan struct{})
		stop := context.AfterFunc(ctx, func() {
			defer close(closed)
			conn.Close()
		})
		made, err := hello(ctx, conn)
		if !stop() {
			// The end of ctx closes conn, whatever hello made of it.
			<-closed
			if err == nil {
				made.Close()
			}
			return none, context.Cause(ctx)
		}
		if err != nil {
			conn.Close()
			return none, err
		}
		return made, nil
	}
}

// Outcome is a finished race: its result, and the connection when it has a winner.
type Outcome[C io.Closer] struct {
	Result
	// Conn is the winner's connection. Slot is the winner's slot.
	Conn C
	Slot Slot
	// Plan is the plan that was run, Began the time at which it began, Lanes what became of each slot.
	Plan  Plan
	Began time.Time
	Lanes []Lane
}

// Racer runs races, one at a time: a new race supersedes the one that is under way. Use New, and Close at the end.
type Racer[C io.Closer] struct {
	attempt Attempt[C]
	policy  Policy

	mu      sync.Mutex // never held while anything waits
	owner   Owner
	cancel  context.CancelCauseFunc
	closed  bool
	pending sync.WaitGroup
}

// New makes a Racer over an attempt function.
func New[C io.Closer](attempt Attempt[C], policy Policy) *Racer[C] {
	return &Racer[C]{attempt: attempt, policy: policy.withDefaults()}
}

// Race runs the plan and gives the first connection whose hello succeeded; the caller owns it. Everything else is
// cancelled, and closed when it comes too late. Without a winner the error is that of Result. A race that is
// superseded ends with route.ErrSuperseded, after ctx with its cause, after Close with net.ErrClosed.
func (r *Racer[C]) Race(ctx context.Context, plan Plan) (Outcome[C], error) {
	ctx, generation, err := r.begin(ctx)
	if err != nil {
		return Outcome[C]{Result: Result{Winner: -1, Err: err}}, err
	}
	defer r.pending.Done()
	outcome := Outcome[C]{Result: Result{Winner: -1, Err: ErrNoCandidates}}
	for _, round := range r.policy.Rounds(plan) {
		failed := outcome.Failed
		outcome = r.run(ctx, round)
		outcome.Failed = append(failed, outcome.Failed...)
		if outcome.Err == nil || ctx.Err() != nil {
			break
		}
	}
	if !r.finish(generation) && outcome.Err == nil {
		outcome.Conn.Close()
		var none C
		outcome.Conn, outcome.Slot = none, Slot{}
		outcome.Winner, outcome.Err = -1, context.Cause(ctx)
	}
	return outcome, outcome.Err
}

// Close supersedes the race that is under way and waits until every attempt has ended.
func (r *Racer[C]) Close() error {
	r.mu.Lock()
	r.closed = true
	cancel := r.cancel
	r.owner.Begin()
	r.mu.Unlock()
	if cancel != nil {
		cancel(net.ErrClosed)
	}
	r.pending.Wait()
	return nil
}

func (r *Racer[C]) begin(ctx context.Context) (context.Context, Generation, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, 0, net.ErrClosed
	}
	if r.cancel != nil {
		r.cancel(route.ErrSuperseded)
	}
	ctx, r.cancel = context.WithCancelCause(ctx)
	r.pending.Add(1)
	return ctx, r.owner.Begin(), nil
}

// finish gives up the race's context and reports whether the race is still the current one.
func (r *Racer[C]) finish(g Generation) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.owner.Holds(g) {
		return false
	}
	r.cancel(context.Canceled)
	r.cancel = nil
	return true
}

type report[C io.Closer] struct {
	slot   int
	opened bool
	conn   C
	err    error
}

// run drives one Machine: it dials what the machine wants dialled and tells it what came of it.
func (r *Racer[C]) run(ctx context.Context, plan Plan) Outcome[C] {
	m := NewMachine(plan, r.policy)
	outcome := Outcome[C]{Plan: plan, Began: time.Now()}
	reports, over := make(chan report[C]), make(chan struct{})
	defer close(over)
	cancels := make([]context.CancelFunc, len(plan.Slots))
	defer func() {
		for _, cancel := range cancels {
			if cancel != nil {
				cancel()
			}
		}
	}()
	do := func(actions []Action, made C) {
		for _, a := range actions {
			switch a.Op {
			case Dial:
				var attempt context.Context
				attempt, cancels[a.Slot] = context.WithCancel(ctx)
				r.pending.Add(1)
				go r.try(attempt, plan.Slots[a.Slot].Candidate, a.Slot, reports, over)
			case Cancel:
				cancels[a.Slot]()
			case Take:
				outcome.Conn, outcome.Slot = made, plan.Slots[a.Slot]
			case Discard:
				made.Close()
			}
		}
	}
	var none C
	do(m.Start(outcome.Began), none)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		if result, done := m.Result(); done {
			outcome.Result, outcome.Lanes = result, m.Lanes()
			return outcome
		}
		wake, _ := m.Wake()
		timer.Reset(time.Until(wake))
		select {
		case <-ctx.Done():
			outcome.Result, outcome.Lanes = Result{Winner: -1, Err: context.Cause(ctx)}, m.Lanes()
			return outcome
		case <-timer.C:
			do(m.Tick(time.Now()), none)
		case rep := <-reports:
			switch now := time.Now(); {
			case rep.opened:
				m.Opened(now, rep.slot)
			case rep.err != nil:
				do(m.Fail(now, rep.slot, rep.err), none)
			default:
				do(m.Succeed(now, rep.slot), rep.conn)
			}
		}
	}
}

// try runs one attempt and hands its result over, or closes it when the race is over.
func (r *Racer[C]) try(ctx context.Context, c route.Candidate, slot int, reports chan<- report[C], over <-chan struct{}) {
	defer r.pending.Done()
	tell := func(rep report[C]) bool {
		select {
		case reports <- rep:
			return true
		case <-over:
			return false
		}
	}
	conn, err := r.attempt(ctx, c, func() { tell(report[C]{slot: slot, opened: true}) })
	if !tell(report[C]{slot: slot, conn: conn, err: err}) && err == nil {
		conn.Close()
	}
}
