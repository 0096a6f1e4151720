package retry

import (
	"errors"
	"fmt"
	"net/http"
)

// Errors that a driver puts into Answer.Err for what it has found out itself.
var (
	// ErrFirstByte: the first byte of the body did not come in time.
	ErrFirstByte = errors.New("retry: no first byte in time")
	// ErrWhole: the exchange was not complete in time.
	ErrWhole = errors.New("retry: exchange not complete in time")
	// ErrIdle: the pause between two chunks of the body was too long.
	ErrIdle = errors.New("retry: body idle for too long")
	// ErrEmptyBody: the answer promised content and had none.
	ErrEmptyBody = errors.New("retry: empty body")
)

// ErrorEvent is an error that came as an event of a stream, after an HTTP status
// that promised success.
type ErrorEvent struct {
	Data string // the event's data, cut to what a rule needs
}

func (e *ErrorEvent) Error() string {
	return fmt.Sprintf("retry: error event in the stream: %.200q", e.Data)
}

// Answer is how one attempt ended.
type Answer struct {
	// Client is the error of the client's own context when the attempt ended;
	// nil while the client is there.
	Client error

	// Err is the error of the exchange: of the round trip when Status is 0, of
	// the body otherwise. Nil for a complete answer.
	Err error

	// Status is the HTTP status; 0 if no answer came.
	Status int

	// Text is the beginning of the body of an error, for ClientFault rules.
	Text string

	// Content says that content had been sent to the client before the
	// attempt ended.
	Content bool
}

// Rule is one line of a [Classifier]: the first that matches gives the kind.
type Rule struct {
	Name  string
	Kind  Kind
	Match func(*Answer) bool
}

// Classifier is an ordered list of rules. An answer that no rule matches is a
// Success. It holds no state.
type Classifier []Rule

// NewClassifier gives the rules in their usual order. faults say which error
// texts mean that the request itself is wrong; they are asked for statuses
// 400…499 other than 404, and for error events in a stream, never for a 5xx.
//
// The client's context comes first, because net/http reports the end of that
// context and of the proxy's own timers through one error. What has no HTTP
// answer and is not the proxy's own time-out is a system error, whatever its
// type: new error types of the network fail over rather than fail.
func NewClassifier(faults ...func(status int, text string) bool) Classifier {
	clientFault := func(a *Answer) bool {
		if a.Status >= 500 || !failed(a) {
			return false
		}
		for _, fault := range faults {
			if fault(a.Status, a.Text) {
				return true
			}
		}
		return false
	}
	return Classifier{
		{"client-abort", ClientAbort, func(a *Answer) bool { return a.Client != nil }},
		{"broken-stream", BrokenStream, func(a *Answer) bool { return a.Content && a.Err != nil }},
		{"own-timeout", OwnTimeout, func(a *Answer) bool {
			return errors.Is(a.Err, ErrFirstByte) || errors.Is(a.Err, ErrWhole)
		}},
		{"system-error", SystemError, func(a *Answer) bool { return a.Status == 0 }},
		{"not-found", NotFound, func(a *Answer) bool { return a.Status == http.StatusNotFound }},
		{"client-fault", ClientFault, clientFault},
		{"provider-error", ProviderError, failed},
	}
}

func failed(a *Answer) bool { return a.Status >= 400 || a.Err != nil }

// Classify gives the kind of an answer. It does not keep a.
func (c Classifier) Classify(a *Answer) Kind {
	for i := range c {
		if c[i].Match(a) {
			return c[i].Kind
		}
	}
	return Success
}

// First gives a classifier in which the named rule comes before all others.
// It panics if there is no such rule.
func (c Classifier) First(name string) Classifier { return c.move(name, true) }

// Last gives a classifier in which the named rule comes after all others.
// It panics if there is no such rule.
func (c Classifier) Last(name string) Classifier { return c.move(name, false) }

func (c Classifier) move(name string, first bool) Classifier {
	out := make(Classifier, 0, len(c))
	var moved Classifier
	for _, r := range c {
		if r.Name == name {
			moved = append(moved, r)
		} else {
			out = append(out, r)
		}
	}
	if moved == nil {
		panic(fmt.Sprintf("retry.Classifier: no rule %q", name))
	}
	if first {
		return append(moved, out...)
	}
	return append(out, moved...)
}
