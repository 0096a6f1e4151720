package forward

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"sync"

	"github.com/seed-5a7f77c4/deadair/clock"
	"github.com/seed-5a7f77c4/deadair/selection/choice"
	"github.com/seed-5a7f77c4/deadair/selection/pick"
	"github.com/seed-5a7f77c4/deadair/selection/share"
)

// Key is what a choice is kept by. Entity is empty unless the user keeps entities apart.
type Key struct{ User, Destination, Entity string }

func (k Key) compare(other Key) int {
	return cmp.Or(cmp.Compare(k.User, other.User), cmp.Compare(k.Destination, other.Destination), cmp.Compare(k.Entity, other.Entity))
}

// Request is one command for a destination.
type Request struct {
	User, Entity string
	Destination  pick.Server
	Command      []byte
	Urgency      Urgency
}

// Result is what a call has to say besides its error.
type Result struct {
	// Answer is the destination's.
	Answer []byte
	// Proxy is the proxy that was asked last; empty if none was.
	Proxy string
	// Direct: the command went to the destination itself.
	Direct bool
	// Change is what the call's outcome did to its choice.
	Change choice.Change
}

// Options are what a client is made of. Connector, Config and Rand are required.
type Options struct {
	Connector Connector
	// Config returns a user's configuration. It is called once for each call.
	Config func(user string) Config
	// Rand draws the picks.
	Rand *rand.Rand
	// Clock measures limits and streaks; clock.System if nil.
	Clock clock.Clock
	// Policy is the set of rules; DefaultPolicy() if nil.
	Policy *Policy
	// Choices is the table to begin with; a new one, without any choice, if nil. The client empties it on Close.
	Choices *choice.Table[Key, string]
	// Changed, if set, is told of every event that changed a choice. It must not call the client.
	Changed func(Key, choice.Event[string], choice.Change)
	// Ended, if set, is told of every connection that ended other than by Close.
	Ended func(Endpoint)
}

// Client sends commands to destinations, through proxies where the user wants it. Its methods may be called from many
// goroutines.
type Client struct {
	o       Options
	policy  Policy
	choices *choice.Table[Key, string]
	conns   *share.Group[connKey, *link]

	mu         sync.Mutex // guards what follows
	rng        *rand.Rand
	candidates []pick.Server // a buffer
	probes     map[Key]probe
	closed     bool
}

type connKey struct{ user, server, entity string }

// ErrNoProxy is returned when a command is to be proxied and the user has no server at all.
var ErrNoProxy = errors.New("forward: no server to use as a proxy")

// New returns a client, or an error that names the option that is missing.
func New(o Options) (*Client, error) {
	switch {
	case o.Connector == nil:
		return nil, errors.New("forward: New: no Connector")
	case o.Config == nil:
		return nil, errors.New("forward: New: no Config")
	case o.Rand == nil:
		return nil, errors.New("forward: New: no Rand")
	}
	if o.Clock == nil {
		o.Clock = clock.System
	}
	policy := DefaultPolicy()
	if o.Policy != nil {
		policy = *o.Policy
	}
	choices := o.Choices
	if choices == nil {
		choices = choice.NewTable[Key, string](policy.Choice)
	}
	return &Client{
		o: o, policy: policy, rng: o.Rand,
		choices: choices,
		conns:   share.NewGroup[connKey, *link](policy.Connects, o.Clock),
		probes:  map[Key]probe{},
	}, nil
}

// Do sends a command once: through a proxy or directly, as the user's configuration says. It waits for the answer as
// long as the limits allow. A failure is an *Error, unless ctx ended first or the client is closed (net.ErrClosed).
func (c *Client) Do(ctx context.Context, r Request) (Result, error) {
	if err := c.usable(); err != nil {
		return Result{}, err
	}
	config := c.o.Config(r.User)
	if !c.policy.Proxied(config, r.Destination) {
		return c.direct(ctx, config, r)
	}
	res, err := c.proxied(ctx, config, r)
	if e := AsError(err); e != nil && c.policy.FallsBack(e) && config.MayFallBack() {
		direct, err := c.direct(ctx, config, r)
		direct.Proxy, direct.Change = res.Proxy, res.Change
		return direct, err
	}
	return res, err
}

// Direct sends a command to one of the user's own servers. It shares the connection that proxied commands use.
func (c *Client) Direct(ctx context.Context, r Request) (Result, error) {
	if err := c.usable(); err != nil {
		return Result{Direct: true}, err
	}
	return c.direct(ctx, c.o.Config(r.User), r)
}

func (c *Client) direct(ctx context.Context, config Config, r Request) (Result, error) {
	limits := c.policy.Times.For(r.Urgency, config.SlowNetwork)
	got, err := c.connect(ctx, config, r, r.Destination, limits)
	if err != nil {
		return Result{Direct: true}, err
	}
	answer, err := got.Value.command(ctx, r.Command, limits)
	return Result{Answer: answer, Direct: true}, err
}

// proxied picks, looks up or inserts, and sends.
func (c *Client) proxied(ctx context.Context, config Config, r Request) (Result, error) {
	key := c.key(config, r)
	offered, ok := c.pick(config, r.Destination, c.cascade(key)...)
	if !ok {
		return Result{}, fmt.Errorf("%w for user %q", ErrNoProxy, r.User)
	}
	chosen, _ := c.choices.Choose(key, offered.Name)
	if second, ok := c.probe(config, r, key, chosen); ok {
		return c.race(ctx, config, r, key, chosen, second)
	}
	return c.through(ctx, config, r, key, chosen)
}

func (c *Client) key(config Config, r Request) Key {
	k := Key{User: r.User, Destination: r.Destination.Name}
	if config.PerEntity {
		k.Entity = r.Entity
	}
	return k
}

func (c *Client) cascade(key Key) []pick.Filter {
	if failed, ok := c.choices.LastForgotten(key); ok && c.policy.ExcludeFailed {
		return append(c.policy.Cascade[:len(c.policy.Cascade):len(c.policy.Cascade)], pick.Not(failed))
	}
	return c.policy.Cascade
}

func (c *Client) pick(config Config, destination pick.Server, cascade ...pick.Filter) (pick.Server, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.candidates = pick.AppendCandidates(c.candidates[:0], config.Servers, destination, cascade...)
	return pick.One(c.rng, c.candidates)
}

// through sends a command by a choice. When the proxy does not know the session it asks the same proxy again, without
// a look at the table: the choice may have been forgotten meanwhile, and is not put back.
func (c *Client) through(ctx context.Context, config Config, r Request, key Key, chosen choice.Choice[string]) (Result, error) {
	for try := 0; ; try++ {
		res, unknown, err := c.once(ctx, config, r, key, chosen)
		if !unknown || try >= c.policy.NoSession.Retries {
			return res, err
		}
		if c.policy.NoSession.Record {
			c.choices.Choose(key, chosen.Proxy)
		}
	}
}

// once is one connect, session, forward. It tells the table what came of it, and reports whether the proxy did not know
// the session.
func (c *Client) once(ctx context.Context, config Config, r Request, key Key, chosen choice.Choice[string]) (Result, bool, error) {
	limits := c.policy.Times.For(r.Urgency, config.SlowNetwork)
	kind, counts, answer, err := c.steps(ctx, config, r, key, chosen, limits)
	res := Result{Answer: answer, Proxy: chosen.Proxy}
	if counts {
		res.Change = c.apply(key, choice.Event[string]{Kind: kind, Choice: chosen})
	}
	return res, counts && kind == choice.SessionUnknown, err
}

// steps takes a command as far as it gets, and says which event that is; counts is false if it says nothing about the
// proxy, as when the caller gave up.
func (c *Client) steps(ctx context.Context, config Config, r Request, key Key, chosen choice.Choice[string],
	limits Limits) (kind choice.Kind, counts bool, answer []byte, err error) {
	conn, err := c.connect(ctx, config, r, named(config, chosen.Proxy), limits)
	if err != nil {
		kind, counts = connectEvent(conn.How)
		return kind, counts, nil, err
	}
	l := conn.Value
	if !l.use(key, chosen) {
		return choice.ConnectionEnded, true, nil, &Error{Code: Network, Detail: "the connection ended"}
	}
	session, err := l.session(ctx, r.Destination, config.Credentials[chosen.Proxy], limits)
	if err != nil {
		kind, counts = sessionEvent(session.How, AsError(err))
		return kind, counts, nil, err
	}
	answer, err = l.forward(ctx, session.Value, r.Command, limits)
	e := AsError(err)
	if err != nil && e == nil {
		return kind, false, nil, err
	}
	kind, counts = forwardEvent(e)
	if drop := c.policy.NoSession.Drop; kind == choice.SessionUnknown && drop != nil {
		drop(l.sessions, r.Destination.Name, session.Attempt)
	}
	return kind, counts, answer, err
}

// named finds a proxy by its name. One that the user has removed since it was chosen is still used under its name.
func named(config Config, name string) pick.Server {
	for _, s := range config.Servers {
		if s.Name == name {
			return s
		}
	}
	return pick.Server{Name: name}
}

func (c *Client) apply(key Key, ev choice.Event[string]) choice.Change {
	change := c.choices.Apply(key, ev, c.o.Clock.Now())
	if change != choice.Kept && c.o.Changed != nil {
		c.o.Changed(key, ev, change)
	}
	return change
}

// connect is create-or-wait for a connection.
func (c *Client) connect(ctx context.Context, config Config, r Request, server pick.Server, limits Limits) (share.Got[*link], error) {
	to := Endpoint{User: r.User, Server: server}
	if config.PerEntity {
		to.Entity = r.Entity
	}
	key := connKey{user: to.User, server: server.Name, entity: to.Entity}
	got, err := c.conns.Get(ctx, key, limits.Connect, func(own context.Context, a share.Attempt) (*link, error) {
		if err := c.usable(); err != nil { // closed while the request was on its way here
			return nil, &Error{Code: Network, Err: err}
		}
		l := &link{
			clock: c.o.Clock, rule: c.policy.Idle, limits: limits, used: map[Key]choice.Choice[string]{},
			sessions: share.NewGroup[string, Session](c.policy.Sessions, c.o.Clock),
		}
		l.ended = func(used map[Key]choice.Choice[string]) { c.connectionEnded(key, a, to, used) }
		conn, err := c.o.Connector.Connect(own, to, Watch{Received: l.received, Ended: func(error) { l.end() }})
		if err != nil {
			return nil, asBroker(ctx, err)
		}
		l.start(conn)
		return l, nil
	})
	if err != nil {
		return got, asBroker(ctx, err)
	}
	if in, found := c.conns.Peek(key); !found || in.Attempt != got.Attempt {
		got.Value.close() // taken out while it was made: by its own end, or by Reconnect, which does not see it
	}
	return got, nil
}

// connectionEnded forgets, for every destination that the connection was used for, the choice that used it.
func (c *Client) connectionEnded(key connKey, a share.Attempt, to Endpoint, used map[Key]choice.Choice[string]) {
	c.conns.Remove(key, a)
	for _, k := range slices.SortedFunc(maps.Keys(used), Key.compare) {
		c.apply(k, choice.Event[string]{Kind: choice.ConnectionEnded, Choice: used[k]})
	}
	if c.o.Ended != nil {
		c.o.Ended(to)
	}
}

// Choice returns the choice in force towards a destination, with its streak.
func (c *Client) Choice(key Key) (choice.Entry[string], bool) { return c.choices.Lookup(key) }

// Forget drops the choice towards a destination, whatever became of it so far, as for a user who asks for another proxy.
// Connections and sessions stay, and so do requests on their way; what becomes of them touches no later choice. It
// reports whether there was a choice.
func (c *Client) Forget(key Key) bool { return c.choices.Forget(key) }

// Choices is the number of choices in force.
func (c *Client) Choices() int { return c.choices.Len() }

// Reconnect is what a changed network configuration does: every connection is closed, one that is being made as soon as
// it is there, and every choice forgotten.
func (c *Client) Reconnect() {
	c.choices.Reset()
	for _, l := range c.conns.Clear() {
		l.close()
	}
}

// Close ends every connection, as Reconnect does. Nothing of the client's state outlives it, and calls that come later
// fail with net.ErrClosed.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	clear(c.probes)
	c.mu.Unlock()
	c.Reconnect()
	return nil
}

func (c *Client) usable() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return fmt.Errorf("forward: the client is closed: %w", net.ErrClosed)
	}
	return nil
}

// asBroker gives an error of a call its class: an *Error is one already; the end of the caller's context is the
// caller's; a limit that ran out is BROKER TIMEOUT; the rest is BROKER NETWORK.
func asBroker(ctx context.Context, err error) error {
	switch {
	case err == nil, AsError(err) != nil:
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, context.DeadlineExceeded):
		return &Error{Code: Timeout, Err: err}
	}
	return &Error{Code: Network, Err: err}
}
