package endpointretry

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/netsim"
	"github.com/seed-5a7f77c4/deadair/scenarios"
	"github.com/seed-5a7f77c4/deadair/scenarios/ca"
	"github.com/seed-5a7f77c4/deadair/selection/breaker"
	"github.com/seed-5a7f77c4/deadair/selection/failover"
	"github.com/seed-5a7f77c4/deadair/selection/retry"
)

// Dial is one attempt as the network sees it: the proxy opens a connection.
type Dial struct {
	Host string
	At   time.Duration // since the world began
}

// World is a client, a proxy, and endpoints. All endpoints take their outcomes
// from one script, in the order in which they are called, whoever is called:
// that is how a script says what happens at which attempt. An endpoint may have
// a script of its own.
type World struct {
	*scenarios.Play
	prefix string
	protos *http.Protocols
	start  time.Time
	config failover.Config
	Proxy  Proxy
	client *http.Client
	dialer *netsim.Host // of the proxy

	mu     sync.Mutex
	script []string
	own    map[string][]string
	dials  []Dial
	calls  []Call
	chains []retry.Chain
	served []time.Duration // when the proxy was done with a request
	onCall func(n int)
}

// Layout is what a world is made of.
type Layout struct {
	Prefix    string // of host names, where a network holds several worlds
	Providers []Upstream
	Timeouts  failover.Timeouts
	Config    func(*failover.Config)
}

// Upstream is a provider with endpoints called a1, a2, … for a provider "A", whose
// own URL is host a.
type Upstream struct {
	Name      string
	Endpoints int
	Attempts  int
	Absent    []int // endpoints that have no host
	Deaf      []int // endpoints with a host where nobody listens
	Silent    []int // endpoints behind a way that is cut
	Impostors []int // endpoints with somebody else's certificate
}

// NewWorld builds a world around a subject.
func NewWorld(p *scenarios.Play, subject Subject, layout Layout) *World {
	w := &World{Play: p, prefix: layout.Prefix, protos: subject.protocols(), start: time.Now(), own: make(map[string][]string)}
	w.dialer = p.Net.Host(w.prefix + "proxy")
	base := failover.NewBase(w.dial)
	base.DisableKeepAlives = true // one connection per attempt, so that the network shows the attempts
	base.Protocols = w.protos
	w.config = failover.Config{
		Policy:   policy(),
		Timeouts: layout.Timeouts,
		Base:     base,
		Done: func(_ *http.Request, c retry.Chain) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.chains = append(w.chains, c)
		},
	}
	for _, u := range layout.Providers {
		w.config.Providers = append(w.config.Providers, w.upstream(u))
	}
	if layout.Config != nil {
		layout.Config(&w.config)
	}
	var err error
	w.Proxy, err = subject.Build(w.config)
	require.NoError(w, err)
	w.serve(w.dialer, "proxy", false, func(rw http.ResponseWriter, r *http.Request) {
		defer func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.served = append(w.served, w.elapsed())
		}()
		w.Proxy.ServeHTTP(rw, r)
	})
	phone := p.Net.Host(w.prefix + "client")
	w.client = &http.Client{Transport: &http.Transport{DialContext: phone.DialContext, DisableKeepAlives: true, Protocols: w.protos}}
	return w
}

func (w *World) elapsed() time.Duration { return time.Since(w.start) }

// dial is the proxy's way out.
func (w *World) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, _ := net.SplitHostPort(address)
	w.mu.Lock()
	w.dials = append(w.dials, Dial{Host: strings.TrimPrefix(host, w.prefix), At: w.elapsed()})
	w.mu.Unlock()
	return w.dialer.DialContext(ctx, network, address)
}

func (w *World) upstream(u Upstream) failover.Provider {
	is := func(list []int, i int) bool {
		for _, n := range list {
			if n == i {
				return true
			}
		}
		return false
	}
	name := strings.ToLower(u.Name)
	p := retry.Provider{Name: u.Name, Vendor: "vendor of " + u.Name, URL: "http://" + w.prefix + name, Attempts: u.Attempts}
	w.endpoint(name, false)
	for i := 1; i <= u.Endpoints; i++ {
		id := fmt.Sprint(name, i)
		scheme := "http"
		switch {
		case is(u.Absent, i):
		case is(u.Deaf, i):
			w.Net.Host(w.prefix + id)
		case is(u.Impostors, i):
			scheme = "https"
			w.endpoint(id, true)
		default:
			w.endpoint(id, false)
			if is(u.Silent, i) {
				w.Net.Link(w.dialer, w.Net.Lookup(w.prefix+id)).Cut()
			}
		}
		p.Endpoints = append(p.Endpoints, retry.Endpoint{ID: id, URL: scheme + "://" + w.prefix + id, Order: i})
	}
	return failover.Provider{Provider: p}
}

// endpoint makes a host that plays outcomes.
func (w *World) endpoint(name string, impostor bool) {
	w.serve(w.Net.Host(w.prefix+name), name, impostor, func(rw http.ResponseWriter, r *http.Request) {
		if version := r.ProtoMajor; version != 2 && w.protos.UnencryptedHTTP2() {
			w.Errorf("%s was asked in HTTP/%d", name, version)
		}
		body := readAll(r.Body)
		w.mu.Lock()
		w.calls = append(w.calls, Call{Host: name, Body: body})
		n, seen := len(w.calls), w.onCall
		outcome := w.take(name)
		w.mu.Unlock()
		if seen != nil {
			seen(n)
		}
		answer(rw, r, name, outcome)
	})
}

// take gives the next outcome for a host: of its own script, of the common one,
// and ok when both are at their end.
func (w *World) take(host string) string {
	if script := w.own[host]; len(script) > 0 {
		w.own[host] = script[1:]
		return script[0]
	}
	if len(w.script) > 0 {
		next := w.script[0]
		w.script = w.script[1:]
		return next
	}
	return ok
}

func (w *World) serve(h *netsim.Host, name string, tls bool, handle http.HandlerFunc) {
	port := ":80"
	if tls {
		port = ":443"
	}
	l, err := h.Listen("tcp", port)
	require.NoError(w, err)
	if tls {
		authority, err := ca.New(1, time.Now())
		require.NoError(w, err)
		certificate, err := authority.Leaf("somebody.else.test")
		require.NoError(w, err)
		l = impostor(l, certificate)
	}
	w.Cleanup(server(l, w.protos, handle))
}

// Script says what happens at the next attempts.
func (w *World) Script(outcomes ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.script = outcomes
}

// ScriptOf says what happens at the next attempts that reach one host.
func (w *World) ScriptOf(host string, outcomes ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.own[host] = outcomes
}

// Result is what the client got.
type Result struct {
	Status int
	Body   string
	Err    error // of the exchange, or of a body that broke off
	Took   time.Duration
}

// Request sends one request through the proxy. conversation may be empty.
func (w *World) Request(ctx context.Context, path, conversation, body string) Result {
	begin := time.Now()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+w.prefix+"proxy"+path, io.MultiReader(strings.NewReader(body)))
	require.NoError(w, err)
	req.Header.Set("X-Conversation", conversation)
	resp, err := w.client.Do(req)
	if err != nil {
		return Result{Err: err, Took: time.Since(begin)}
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return Result{Status: resp.StatusCode, Body: string(data), Err: err, Took: time.Since(begin)}
}

// Do is Request without conversation, and with a client that stays.
func (w *World) Do() Result { return w.Request(w.Context(), "/v1/messages", "", "a question") }

// Settle lets the proxy finish what it does after the client has got everything.
func (w *World) Settle() { time.Sleep(tick) }

// Dials gives the hosts that the proxy has dialled since the last call of Dials.
func (w *World) Dials() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var hosts []string
	for _, d := range w.dials {
		hosts = append(hosts, d.Host)
	}
	w.dials = nil
	return strings.Join(hosts, " ")
}

// Gaps gives the time between the dials so far.
func (w *World) Gaps() (gaps []time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := 1; i < len(w.dials); i++ {
		gaps = append(gaps, w.dials[i].At-w.dials[i-1].At)
	}
	return gaps
}

// Chain gives the last finished request's chain.
func (w *World) Chain() retry.Chain {
	w.Helper()
	w.Settle()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.chains) == 0 {
		return nil
	}
	return w.chains[len(w.chains)-1]
}

// Calls gives the requests that arrived at endpoints so far.
func (w *World) Calls() []Call {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]Call(nil), w.calls...)
}

// Served gives when the proxy was done with its requests.
func (w *World) Served() []time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]time.Duration(nil), w.served...)
}

// OnCall calls f at every request that arrives at an endpoint, counted from 1.
func (w *World) OnCall(f func(n int)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.onCall = f
}

// Failures checks the count of consecutive failures at a breaker that is closed.
func (w *World) Failures(level retry.Level, name string, want int) {
	w.Helper()
	h := w.health(level, name)
	assert.Equal(w, breaker.Closed, h.State, "breaker of %s", name)
	assert.Equal(w, want, h.Failures, "failures of %s", name)
}

// State checks the state of a breaker.
func (w *World) State(level retry.Level, name string, want breaker.State) {
	w.Helper()
	assert.Equal(w, want, w.health(level, name).State, "breaker of %s", name)
}

func (w *World) health(level retry.Level, name string) retry.Health {
	w.Helper()
	h, known := w.Proxy.Health(level, name)
	require.True(w, known, "no breaker of %s", name)
	return h
}

// Untouched checks that no breaker has counted or opened.
func (w *World) Untouched() {
	w.Helper()
	for _, p := range w.config.Providers {
		w.Failures(retry.ProviderLevel, p.Name, 0)
		w.Failures(retry.VendorLevel, p.Vendor, 0)
		for _, e := range p.Endpoints {
			w.Failures(retry.EndpointLevel, e.ID, 0)
		}
	}
}

// reasons are the chain's reasons.
func reasons(c retry.Chain) string {
	var words []string
	for _, e := range c {
		words = append(words, string(e.Reason))
	}
	return strings.Join(words, " ")
}
