package retry

import (
	"fmt"
	"strings"
	"time"
)

// Reason is why the chain has an entry, in the words of a log.
type Reason string

const (
	RequestSuccess   Reason = "request_success" // the first attempt at the first provider
	RetrySuccess     Reason = "retry_success"   // any later one
	RetryFailed      Reason = "retry_failed"
	SystemFailed     Reason = "system_error"
	ResourceNotFound Reason = "resource_not_found"
	ClientError      Reason = "client_error"
	ClientAborted    Reason = "client_abort"
	VendorTimeout    Reason = "vendor_timeout"
)

// Entry is one attempt of a request.
type Entry struct {
	Provider string
	Endpoint string // the endpoint's ID; empty for the provider's own URL
	Attempt  int    // at this provider, from 1
	Index    int    // the candidate, by rank from 0, at which the plan stood after it
	Kind     Kind
	Reason   Reason
	Status   int   // HTTP status, 0 if no answer came
	Err      error // nil for a success
	Started  time.Time
	Ended    time.Time
}

// Chain is the attempts of one request, in order.
type Chain []Entry

// String gives one short word per attempt, such as
// "A/a1#1 system_error, A/a2#2 retry_success". It tells names and reasons only,
// no error text of an upstream.
func (c Chain) String() string {
	words := make([]string, len(c))
	for i, e := range c {
		at := e.Provider
		if e.Endpoint != "" {
			at += "/" + e.Endpoint
		}
		words[i] = fmt.Sprintf("%s#%d %s", at, e.Attempt, e.Reason)
	}
	return strings.Join(words, ", ")
}
