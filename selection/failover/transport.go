package failover

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/seed-5a7f77c4/deadair/selection/breaker"
	"github.com/seed-5a7f77c4/deadair/selection/retry"
)

// Transport is an http.RoundTripper over several providers. It is safe for
// concurrent use. The scheme and host of a request's URL are replaced by those of
// the attempt's endpoint, its path and query are appended to the endpoint's.
//
// RoundTrip's error is an *ExhaustedError if every provider failed, a
// *BodyTooLargeError or *RequestBodyError if the body could not be buffered, and
// the context's error if the client left.
type Transport struct {
	config  Config
	targets map[string]*url.URL
	headers map[string]http.Header // by provider

	mu   sync.Mutex // around every call on pool and its plans; never across I/O
	pool *retry.Pool
}

// New checks the configuration and makes a Transport.
func New(config Config) (*Transport, error) {
	config, err := config.normalised()
	if err != nil {
		return nil, fmt.Errorf("failover.New: %w", err)
	}
	t := &Transport{config: config, targets: make(map[string]*url.URL), headers: make(map[string]http.Header)}
	var providers []retry.Provider
	for _, p := range config.Providers {
		providers = append(providers, p.Provider)
		t.headers[p.Name] = canonical(p.Header)
		urls := []string{p.URL}
		for _, e := range p.Endpoints {
			urls = append(urls, e.URL)
		}
		for _, raw := range urls {
			if raw == "" {
				continue // whether it may be empty is the pool's question
			}
			if t.targets[raw], err = target(raw); err != nil {
				return nil, fmt.Errorf("failover.New: provider %q: %w", p.Name, err)
			}
		}
	}
	if t.pool, err = retry.NewPool(*config.Policy, providers); err != nil {
		return nil, fmt.Errorf("failover.New: %w", err)
	}
	return t, nil
}

func canonical(h http.Header) http.Header {
	out := make(http.Header, len(h))
	for name, values := range h {
		out[http.CanonicalHeaderKey(name)] = values
	}
	return out
}

// CloseIdleConnections closes idle connections of the base, if it can.
func (t *Transport) CloseIdleConnections() {
	if base, ok := t.config.Base.(interface{ CloseIdleConnections() }); ok {
		base.CloseIdleConnections()
	}
}

// RecordProbe takes the result of a health probe of an endpoint; see
// retry.Pool.RecordProbe. latency 0 means unknown.
func (t *Transport) RecordProbe(endpointID string, ok bool, latency time.Duration) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	return t.pool.RecordProbe(endpointID, retry.Probe{At: now, OK: ok, Latency: latency}, now)
}

// Health shows a breaker; ok is false if there is none of that name.
func (t *Transport) Health(level retry.Level, name string) (h retry.Health, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.pool.Health(level, name, time.Now())
}

// Bound says which provider a conversation sticks to.
func (t *Transport) Bound(conversation string) (provider string, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.pool.Bound(conversation, time.Now())
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	c := &call{transport: t, req: req, client: req.Context()}
	var err error
	if c.body, c.length, err = replay(req, t.config.MaxBody); err != nil {
		if gone := c.client.Err(); gone != nil {
			return nil, gone
		}
		return nil, err
	}
	c.begin(retry.Request{Conversation: t.config.Conversation(req), PassThrough: t.config.PassThrough(req)})
	returned := false
	defer func() {
		if !returned { // the base or a hook panicked: what the plan holds of the breakers must not be lost with it
			c.end()
		}
	}()
	resp, err := c.run()
	returned = true
	return resp, err
}

// run makes attempts until one has an answer for the client.
func (c *call) run() (*http.Response, error) {
	t := c.transport
	for {
		attempt, ok := c.next()
		if !ok {
			chain := c.end()
			t.config.Logger.LogAttrs(c.client, slog.LevelError, "all providers failed",
				slog.Int("attempts", len(chain)), slog.String("chain", chain.String()))
			return nil, &ExhaustedError{Chain: chain}
		}
		x := c.open(attempt)
		answer, content := x.await()
		if content {
			c.locked(c.plan.Content)
			return x.response(c), nil
		}
		d := c.report(&answer)
		if d.Action == retry.Return && d.Kind != retry.ClientAbort && x.resp != nil {
			return x.response(c), nil
		}
		x.close()
		if d.Action == retry.Return {
			c.end()
			return nil, cmp.Or(answer.Client, answer.Err)
		}
		if d.Action == retry.Again {
			if err := t.config.Pause(c.client, d.Wait); err != nil {
				c.end()
				return nil, err
			}
		}
	}
}

// call is one request on its way through the providers.
type call struct {
	transport *Transport
	req       *http.Request
	client    context.Context
	body      func() (io.ReadCloser, error)
	length    int64
	plan      *retry.Plan
	attempt   *retry.Attempt // under way; nil once reported
}

func (c *call) locked(f func(now time.Time)) {
	c.transport.mu.Lock()
	defer c.transport.mu.Unlock()
	f(time.Now())
}

func (c *call) begin(r retry.Request) {
	c.locked(func(now time.Time) { c.plan = c.transport.pool.Plan(r, now) })
}

func (c *call) next() (a retry.Attempt, ok bool) {
	c.locked(func(now time.Time) { a, ok = c.plan.Next(now) })
	c.attempt = &a
	return a, ok
}

// report tells the plan how the attempt under way has ended.
func (c *call) report(answer *retry.Answer) (d retry.Decision) {
	attempt := c.attempt
	c.attempt = nil
	var entry retry.Entry
	c.locked(func(now time.Time) {
		d = c.plan.Report(answer, now)
		entry = c.plan.Chain()[len(c.plan.Chain())-1]
	})
	if log := c.transport.config.Logger; d.Kind != retry.Success && log.Enabled(c.client, slog.LevelWarn) {
		log.LogAttrs(c.client, slog.LevelWarn, "attempt failed",
			slog.String("provider", attempt.Provider), slog.String("endpoint", attempt.Endpoint),
			slog.Int("attempt", attempt.Number), slog.String("kind", d.Kind.String()),
			slog.String("reason", string(d.Reason)), slog.String("cause", string(retry.CauseOf(answer.Err))),
			slog.Int("status", answer.Status), slog.Any("error", answer.Err),
			slog.Duration("took", entry.Ended.Sub(entry.Started)), slog.String("then", d.Action.String()),
			slog.Bool("vendor_out", d.Vendor == breaker.Failure))
	}
	return d
}

// finish ends a call whose answer went to the client. The attempt may have been
// reported before: an answer without content, or one that is returned unchanged.
func (c *call) finish(answer *retry.Answer) {
	if c.attempt != nil {
		c.report(answer)
	}
	c.end()
}

// end closes the plan and tells the owner.
func (c *call) end() (chain retry.Chain) {
	c.locked(func(time.Time) {
		c.plan.Close()
		chain = c.plan.Chain()
	})
	if log := c.transport.config.Logger; log.Enabled(c.client, slog.LevelDebug) {
		log.LogAttrs(c.client, slog.LevelDebug, "request done", slog.String("chain", chain.String()))
	}
	c.transport.config.Done(c.req, chain)
	return chain
}
