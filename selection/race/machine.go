package race

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/seed-5a7f77c4/deadair/selection/route"
)

// Errors with which a race, or one of its candidates, ends. Those about time are os.ErrDeadlineExceeded.
var (
	// ErrNoCandidates ends a race that has nobody to try.
	ErrNoCandidates = errors.New("race: no candidates")
	// ErrBudget ends a race that had no winner in its time, and no failure either.
	ErrBudget = fmt.Errorf("race: no winner within the budget: %w", os.ErrDeadlineExceeded)
	// ErrOpen fails a candidate whose socket did not open in its time.
	ErrOpen = fmt.Errorf("race: socket did not open in time: %w", os.ErrDeadlineExceeded)
	// ErrSilent fails a candidate whose socket opened and that stayed silent to the end of the budget.
	ErrSilent = fmt.Errorf("race: no hello within the budget: %w", os.ErrDeadlineExceeded)
)

// Op is what a race wants done with a candidate.
type Op uint8

// The operations of a race.
const (
	// Dial starts the candidate's attempt.
	Dial Op = iota
	// Cancel ends an attempt that is under way; whatever it still yields is to be closed.
	Cancel
	// Take makes the candidate's connection the race's result.
	Take
	// Discard closes the connection of a candidate that came too late.
	Discard
)

// Action is an operation on the slot of that index.
type Action struct {
	Op   Op
	Slot int
}

// Lane is what became of one slot, for pictures and for explanations. Times are since the start of the race.
type Lane struct {
	State                  State
	Started, Opened, Ended time.Duration
	Err                    error
}

// State is where a candidate stands.
type State uint8

// The states of a candidate, in the order in which it can pass through them.
const (
	Waiting State = iota
	Opening
	Greeting
	Won
	Failed
	Lost
)

func (s State) String() string {
	return [...]string{"waiting", "opening", "greeting", "won", "failed", "lost"}[s]
}

// Result is how a race ended.
type Result struct {
	// Winner is the winning slot's index, -1 without one.
	Winner int
	// Err says why there is no winner: the requirement of a missing relay, the last failure, or ErrBudget.
	Err error
	// Failed lists the routes to blame, each once, in the order in which they failed.
	Failed []route.Key
}

// Machine runs one race. It waits for nothing: it is told what happens, with the time, and answers with what to do.
type Machine struct {
	plan    Plan
	policy  Policy
	began   time.Time
	lanes   []Lane
	running int
	over    bool
	last    error
	result  Result
}

// NewMachine makes the machine for one run of a plan.
func NewMachine(plan Plan, policy Policy) *Machine {
	return &Machine{plan: plan, policy: policy.withDefaults(), lanes: make([]Lane, len(plan.Slots)), result: Result{Winner: -1}}
}

// Start begins the race.
func (m *Machine) Start(now time.Time) []Action {
	m.began = now
	return m.Tick(now)
}

// Tick does what has come due.
func (m *Machine) Tick(now time.Time) []Action {
	if m.over {
		return nil
	}
	at := now.Sub(m.began)
	if at >= m.policy.Budget {
		return m.expire(at)
	}
	var actions []Action
	for i := range m.lanes {
		if l := &m.lanes[i]; l.State == Opening && at >= l.Started+m.policy.OpenWindow {
			actions = append(actions, Action{Cancel, i})
			actions = append(actions, m.fail(at, i, ErrOpen)...)
		}
	}
	return append(actions, m.fill(at)...)
}

// Opened says that the candidate's socket is open.
func (m *Machine) Opened(now time.Time, slot int) {
	if l := &m.lanes[slot]; l.State == Opening {
		l.State, l.Opened = Greeting, now.Sub(m.began)
	}
}

// Fail says that the candidate's attempt has ended in an error.
func (m *Machine) Fail(now time.Time, slot int, err error) []Action {
	if s := m.lanes[slot].State; s != Opening && s != Greeting {
		return nil
	}
	at := now.Sub(m.began)
	return append(m.fail(at, slot, err), m.fill(at)...)
}

// Succeed says that the candidate's hello has succeeded. The first one wins, the others' attempts are cancelled; one
// that comes after the end is discarded.
func (m *Machine) Succeed(now time.Time, slot int) []Action {
	l := &m.lanes[slot]
	if l.State != Opening && l.State != Greeting {
		return []Action{{Discard, slot}}
	}
	at := now.Sub(m.began)
	l.State, l.Ended = Won, at
	m.result.Winner = slot
	return append([]Action{{Take, slot}}, m.end(at)...)
}

// Wake gives the time of the next Tick; false when there is nothing to wait for.
func (m *Machine) Wake() (time.Time, bool) {
	if m.over {
		return time.Time{}, false
	}
	wake := m.policy.Budget
	for i, l := range m.lanes {
		switch {
		case l.State == Opening:
			wake = min(wake, l.Started+m.policy.OpenWindow)
		case l.State == Waiting && m.plan.Slots[i].Wave:
			wake = min(wake, m.plan.Slots[i].Delay)
		}
	}
	return m.began.Add(wake), true
}

// Result gives the end of the race; false while it runs.
func (m *Machine) Result() (Result, bool) { return m.result, m.over }

// Lanes gives what has become of each slot so far.
func (m *Machine) Lanes() []Lane { return append([]Lane(nil), m.lanes...) }

// fill starts whoever may start now: the first wave by its times, the others as soon as a place is free and no one of
// the first wave is still waiting. Without anybody left the race is over.
func (m *Machine) fill(at time.Duration) []Action {
	var actions []Action
	waiting := false
	for i := range m.lanes {
		if m.lanes[i].State != Waiting {
			continue
		}
		// Who is not due, has no place, or stands behind one of the first wave that is not due, waits on.
		if s := m.plan.Slots[i]; m.running >= m.policy.Concurrent || s.Wave && at < s.Delay || !s.Wave && waiting {
			waiting = true
			continue
		}
		actions = append(actions, m.dial(at, i))
	}
	if !waiting && m.running == 0 {
		return append(actions, m.end(at)...)
	}
	return actions
}

// fail ends a candidate and pulls the next waiting one of the first wave forward.
func (m *Machine) fail(at time.Duration, slot int, err error) []Action {
	m.strike(at, slot, err)
	m.running--
	for i := range m.lanes {
		if m.policy.PullsForward && m.lanes[i].State == Waiting && m.plan.Slots[i].Wave {
			return []Action{m.dial(at, i)}
		}
	}
	return nil
}

func (m *Machine) dial(at time.Duration, slot int) Action {
	m.lanes[slot] = Lane{State: Opening, Started: at}
	m.running++
	return Action{Dial, slot}
}

// expire ends the race at the end of its budget. Who opened and stayed silent is to blame.
func (m *Machine) expire(at time.Duration) []Action {
	var actions []Action
	for i, l := range m.lanes {
		if l.State == Greeting {
			m.strike(at, i, ErrSilent)
			actions = append(actions, Action{Cancel, i})
		}
	}
	if m.last == nil {
		m.last = ErrBudget
	}
	return append(actions, m.end(at)...)
}

// strike notes a failure, and blames the route once.
func (m *Machine) strike(at time.Duration, slot int, err error) {
	l := &m.lanes[slot]
	l.State, l.Ended, l.Err = Failed, at, err
	m.last = err
	key := m.plan.Slots[slot].Key
	if !m.policy.Blames(err) {
		return
	}
	for _, k := range m.result.Failed {
		if k == key {
			return
		}
	}
	m.result.Failed = append(m.result.Failed, key)
}

func (m *Machine) end(at time.Duration) []Action {
	m.over = true
	var actions []Action
	for i := range m.lanes {
		if l := &m.lanes[i]; l.State == Opening || l.State == Greeting {
			l.State, l.Ended = Lost, at
			actions = append(actions, Action{Cancel, i})
		}
	}
	m.running = 0
	if m.result.Winner < 0 {
		m.result.Err = m.verdict()
	}
	return actions
}

// verdict is the error of a race without a winner.
func (m *Machine) verdict() error {
	switch {
	case m.plan.Missing != nil && m.last != nil:
		return fmt.Errorf("%w (last failure: %w)", m.plan.Missing, m.last)
	case m.plan.Missing != nil:
		return m.plan.Missing
	case m.last != nil:
		return m.last
	}
	return ErrNoCandidates
}
