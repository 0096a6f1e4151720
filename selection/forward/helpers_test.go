package forward

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/selection/choice"
	"github.com/seed-5a7f77c4/deadair/selection/pick"
)

// server is a server of the user's with the proxy role.
func server(name string) pick.Server {
	return pick.Server{Name: name, Hosts: []string{name}, Operator: name, Enabled: true, Proxy: true}
}

var destination = pick.Server{Name: "r", Hosts: []string{"r"}, Operator: "other"}

// network is a Connector whose servers do what the test says. What is not set succeeds at once.
type network struct {
	mu       sync.Mutex
	connect  func(ctx context.Context, server string) error
	session  func(ctx context.Context, server string) error
	forward  func(ctx context.Context, server string, s Session) error
	command  func(ctx context.Context, server string) error
	ping     func(ctx context.Context, server string) error
	log      []string // "connect p1", "session p1", "forward p1", …
	links    []*testLink
	sessions Session
}

type testLink struct {
	net    *network
	name   string
	watch  Watch
	closed bool
}

func (n *network) note(what, server string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.log = append(n.log, what+" "+server)
}

// took returns what was done since the last call.
func (n *network) took() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	log := n.log
	n.log = nil
	return log
}

func (n *network) Connect(ctx context.Context, to Endpoint, watch Watch) (Link, error) {
	n.note("connect", to.Server.Name)
	if n.connect != nil {
		if err := n.connect(ctx, to.Server.Name); err != nil {
			return nil, err
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	l := &testLink{net: n, name: to.Server.Name, watch: watch}
	n.links = append(n.links, l)
	return l, nil
}

func (l *testLink) Session(ctx context.Context, _ pick.Server, credentials string) (Session, error) {
	l.net.note("session", l.name+credentials)
	if f := l.net.session; f != nil {
		if err := f(ctx, l.name); err != nil {
			return 0, err
		}
	}
	l.net.mu.Lock()
	defer l.net.mu.Unlock()
	l.net.sessions++
	return l.net.sessions, nil
}

func (l *testLink) Forward(ctx context.Context, s Session, command []byte) ([]byte, error) {
	l.net.note("forward", l.name)
	if f := l.net.forward; f != nil {
		if err := f(ctx, l.name, s); err != nil {
			return nil, err
		}
	}
	return append([]byte("answer to "), command...), nil
}

func (l *testLink) Command(ctx context.Context, command []byte) ([]byte, error) {
	l.net.note("command", l.name)
	if f := l.net.command; f != nil {
		if err := f(ctx, l.name); err != nil {
			return nil, err
		}
	}
	return append([]byte("direct answer to "), command...), nil
}

func (l *testLink) Ping(ctx context.Context) error {
	l.net.note("ping", l.name)
	if f := l.net.ping; f != nil {
		return f(ctx, l.name)
	}
	return nil
}

func (l *testLink) Close() error {
	l.net.note("close", l.name)
	l.net.mu.Lock()
	defer l.net.mu.Unlock()
	l.closed = true
	return nil
}

// end is the other side's end of the newest connection to a server.
func (n *network) end(server string) {
	n.mu.Lock()
	var l *testLink
	for _, other := range n.links {
		if other.name == server {
			l = other
		}
	}
	n.mu.Unlock()
	l.watch.Ended(nil)
}

// silent waits for the end of the context, as a server does that does not answer.
func silent(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// after answers with an error after a while, or gives up with the context.
func after(ctx context.Context, d time.Duration, err error) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

var (
	reported  = &Error{Origin: Proxy, Code: Timeout}
	noSession = &Error{Origin: Proxy, Code: NoSession}
	noHost    = &Error{Origin: Proxy, Code: Host}
)

// list is written by whoever is told and read by the test.
type list[T any] struct {
	mu  sync.Mutex
	all []T
}

func (l *list[T]) add(v T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, v)
}

func (l *list[T]) get() []T {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all
}

// rig is a client on a network, in a bubble.
type rig struct {
	*Client
	net     *network
	config  Config
	policy  Policy
	changes list[choice.Change]
	ended   list[string]
	start   time.Time
}

// inBubble runs a test with a client whose user has the proxies given. Set up changes the rig before the client is made.
func inBubble(t *testing.T, proxies string, setUp func(*rig), body func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{net: &network{}, policy: DefaultPolicy(), start: time.Now()}
		for _, p := range proxies {
			r.config.Servers = append(r.config.Servers, server(string(p)))
		}
		r.config.Mode = Always
		if setUp != nil {
			setUp(r)
		}
		var err error
		r.Client, err = New(Options{
			Connector: r.net, Policy: &r.policy, Rand: rand.New(rand.NewPCG(1, 1)),
			Config:  func(string) Config { return r.config },
			Changed: func(_ Key, _ choice.Event[string], c choice.Change) { r.changes.add(c) },
			Ended:   func(e Endpoint) { r.ended.add(e.Server.Name) },
		})
		require.NoError(t, err)
		body(t, r)
		require.NoError(t, r.Close())
		synctest.Wait()
	})
}

var key = Key{User: "u", Destination: "r"}

func request() Request { return Request{User: "u", Destination: destination, Command: []byte("hello")} }

func (r *rig) elapsed() time.Duration { return time.Since(r.start) }

// until sleeps until the bubble is that old, and lets everything that is due then happen.
func (r *rig) until(age time.Duration) {
	time.Sleep(age - r.elapsed())
	synctest.Wait()
}

// proxy is the proxy in force; empty if there is none.
func (r *rig) proxy() string {
	e, _ := r.Choice(key)
	return e.Proxy
}
