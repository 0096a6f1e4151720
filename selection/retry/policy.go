package retry

import (
	"fmt"
	"time"

	"github.com/seed-5a7f77c4/deadair/selection/affinity"
	"github.com/seed-5a7f77c4/deadair/selection/breaker"
)

// Count says when a kind of failure counts at a breaker.
type Count uint8

const (
	Never        Count = iota
	EachAttempt        // every attempt that ends so
	EachEndpoint       // once per request and endpoint, however often the last endpoint is hit
	OnExhaustion       // once, when the provider has used up its attempts
)

// Action is what follows an attempt.
type Action uint8

const (
	Return       Action = iota // the request is over; the answer goes to the client as it is
	Again                      // another attempt at the same provider, after Decision.Wait
	NextProvider               // the provider has used up its attempts
)

func (a Action) String() string {
	switch a {
	case Return:
		return "return"
	case Again:
		return "again"
	case NextProvider:
		return "next provider"
	}
	return fmt.Sprintf("Action(%d)", uint8(a))
}

// Row is what follows from one kind of outcome.
type Row struct {
	Retry    bool   // another attempt, while there are any; then the next provider
	Advance  bool   // the next attempt goes to the next endpoint
	Endpoint Count  // at the endpoint's breaker
	Provider Count  // at the provider's breaker
	Vendor   bool   // may open the vendor's breaker, which then spares the provider's
	Bind     bool   // binds the conversation to the provider
	Reason   Reason // in the chain
}

// Table has a row for every kind.
type Table [Kinds]Row

// DefaultTable is the table of the package's documentation.
func DefaultTable() Table {
	return Table{
		Success:       {Endpoint: EachAttempt, Provider: EachAttempt, Bind: true, Reason: RetrySuccess},
		ClientAbort:   {Reason: ClientAborted},
		SystemError:   {Retry: true, Advance: true, Endpoint: EachEndpoint, Reason: SystemFailed},
		ProviderError: {Retry: true, Provider: OnExhaustion, Reason: RetryFailed},
		OwnTimeout:    {Retry: true, Advance: true, Endpoint: EachEndpoint, Provider: OnExhaustion, Vendor: true, Reason: RetryFailed},
		NotFound:      {Retry: true, Reason: ResourceNotFound},
		ClientFault:   {Reason: ClientError},
		BrokenStream:  {Provider: EachAttempt, Reason: RetryFailed},
	}
}

// Limits of a policy.
const (
	MaxAttempts  = 10 // per provider, the first one included
	MaxProviders = 20 // per request
)

// Policy is every figure and rule of the selection. Take DefaultPolicy and change
// what differs; each rule is consulted at one place only.
type Policy struct {
	// Attempts is how many attempts a provider gets, the first one included;
	// clamped to 1…MaxAttempts. Default 2. A Provider may have its own.
	Attempts int

	// Wait is the pause before another attempt at the same provider. There is
	// none before the first attempt and when the provider changes. Default
	// 100 ms.
	Wait time.Duration

	// Table says what follows from which kind.
	Table Table

	// Classifier gives the kind of an answer.
	Classifier Classifier

	// Moves says whether the endpoint index moves after an attempt (counted
	// from 1) of max that ended with a row's kind. Default: the row says so
	// and an attempt is left.
	Moves func(row Row, attempt, max int) bool

	// Place gives the candidate of an attempt from the index, the attempt's
	// number and the number of candidates. Default: the index, clamped to the
	// last candidate.
	Place func(index, attempt, candidates int) int

	// VendorOut says whether the attempts at a provider show that its vendor
	// does not answer at all. Default: the turn is over and every endpoint of
	// the candidate list timed out.
	VendorOut func(t *Turn) bool

	// Compare orders the endpoints of a provider, best first. Default Compare.
	Compare func(a, b Standing) int

	// Breakers. Defaults: an endpoint opens after 3 failures for 300 s and
	// closes after 1 success; a provider 5, 1800 s, 2; a vendor opens at once
	// for 60 s and closes by itself.
	EndpointBreaker breaker.Settings
	ProviderBreaker breaker.Settings
	VendorBreaker   breaker.Settings

	// Affinity is how long a conversation sticks to a provider after its last
	// success, and how many conversations are remembered. Defaults 300 s and
	// 10 000.
	Affinity         time.Duration
	AffinityCapacity int
}

// DefaultPolicy is the documented policy.
func DefaultPolicy() Policy {
	return Policy{
		Attempts:         2,
		Wait:             100 * time.Millisecond,
		Table:            DefaultTable(),
		Classifier:       NewClassifier(),
		Moves:            func(row Row, attempt, max int) bool { return row.Advance && attempt < max },
		Place:            func(index, _, candidates int) int { return min(index, candidates-1) },
		VendorOut:        func(t *Turn) bool { return t.Exhausted() && t.AllTimedOut() },
		Compare:          Compare,
		EndpointBreaker:  breaker.Settings{Failures: 3, OpenFor: 300 * time.Second, Successes: 1},
		ProviderBreaker:  breaker.Settings{Failures: 5, OpenFor: 1800 * time.Second, Successes: 2},
		VendorBreaker:    breaker.Settings{Failures: 1, OpenFor: 60 * time.Second},
		Affinity:         affinity.DefaultTTL,
		AffinityCapacity: affinity.DefaultCapacity,
	}
}

// Validate names the first setting that makes no sense, or returns nil.
func (p *Policy) Validate() error {
	switch {
	case p.Wait < 0:
		return fmt.Errorf("retry: Policy.Wait is %v, want 0 or more", p.Wait)
	case p.Moves == nil, p.Place == nil, p.VendorOut == nil, p.Compare == nil:
		return fmt.Errorf("retry: Policy has a rule that is nil; start from DefaultPolicy")
	case p.Affinity <= 0 || p.AffinityCapacity <= 0:
		return fmt.Errorf("retry: Policy.Affinity is %v for %d conversations, want more than 0", p.Affinity, p.AffinityCapacity)
	}
	for _, b := range []struct {
		name     string
		settings breaker.Settings
	}{{"EndpointBreaker", p.EndpointBreaker}, {"ProviderBreaker", p.ProviderBreaker}, {"VendorBreaker", p.VendorBreaker}} {
		if err := b.settings.Validate(); err != nil {
			return fmt.Errorf("retry: Policy.%s: %w", b.name, err)
		}
	}
	return nil
}

// CountSystemErrors lets system errors count at the provider's breaker, once per
// request when the attempts are used up. Off by default: an unreachable endpoint
// says little about the provider behind it.
func (p *Policy) CountSystemErrors() { p.Table[SystemError].Provider = OnExhaustion }
