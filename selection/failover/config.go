package failover

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/seed-5a7f77c4/deadair/selection/retry"
)

// DefaultMaxBody is the default of Config.MaxBody: 32 MiB.
const DefaultMaxBody = 32 << 20

// Provider is one upstream: what the selection has to know of it, and what is
// added to its requests.
type Provider struct {
	retry.Provider

	// Header is set on every request to this provider, in place of what the
	// client sent under the same names. A name with no values is removed.
	Header http.Header
}

// Timeouts are the proxy's own timers of one attempt; 0 switches one off, which
// is the default of all three.
type Timeouts struct {
	FirstByte time.Duration // from the start to the first byte of the body
	Idle      time.Duration // between two chunks of the body
	Whole     time.Duration // from the start to the last byte
}

// Config is what a Transport needs. Only Providers is required.
type Config struct {
	// Providers in the order of preference.
	Providers []Provider

	// Policy is the figures and rules of the selection; nil means
	// retry.DefaultPolicy.
	Policy *retry.Policy

	Timeouts Timeouts

	// Base makes the calls; nil means NewBase(nil). It should not follow
	// redirects or retry by itself.
	Base http.RoundTripper

	// Conversation names the conversation of a request, which sticks to one
	// provider; nil, or an empty name, means none.
	Conversation func(*http.Request) string

	// PassThrough says which requests go to a provider's own URL only; nil
	// means none.
	PassThrough func(*http.Request) bool

	// MaxBody is the largest request body in bytes; 0 means DefaultMaxBody.
	MaxBody int64

	// AllowEmpty takes an empty body for a complete answer where one with
	// content was to be expected (a 2xx status other than 204 and 205, to a
	// method other than HEAD). By default that is a provider error.
	AllowEmpty bool

	// Inspect looks at the events of a text/event-stream; nil means
	// InspectEvent.
	Inspect func(Event) Verdict

	// Pause waits before another attempt. It must return early, with the
	// context's error, when the client goes away; nil means a timer that does.
	Pause func(ctx context.Context, d time.Duration) error

	// Logger gets one record per failed attempt (Warn), per request for which
	// all providers failed (Error) and per finished request (Debug); nil means
	// no log.
	Logger *slog.Logger

	// Done, if set, is called once per request, when its last attempt is over.
	Done func(*http.Request, retry.Chain)
}

// normalised checks the configuration and fills in the defaults.
func (c Config) normalised() (Config, error) {
	if c.MaxBody < 0 {
		return c, fmt.Errorf("Config.MaxBody is %d, want 0 or more", c.MaxBody)
	}
	if c.Timeouts.FirstByte < 0 || c.Timeouts.Idle < 0 || c.Timeouts.Whole < 0 {
		return c, fmt.Errorf("Config.Timeouts is %+v, want 0 or more each", c.Timeouts)
	}
	if c.Policy == nil {
		policy := retry.DefaultPolicy()
		c.Policy = &policy
	}
	if c.Base == nil {
		c.Base = NewBase(nil)
	}
	if c.Conversation == nil {
		c.Conversation = func(*http.Request) string { return "" }
	}
	if c.PassThrough == nil {
		c.PassThrough = func(*http.Request) bool { return false }
	}
	if c.MaxBody == 0 {
		c.MaxBody = DefaultMaxBody
	}
	if c.Inspect == nil {
		c.Inspect = InspectEvent
	}
	if c.Pause == nil {
		c.Pause = pause
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Done == nil {
		c.Done = func(*http.Request, retry.Chain) {}
	}
	return c, nil
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// target parses a base URL.
func target(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, err
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("base URL %q: want http or https and a host", raw)
	}
	return u, nil
}
