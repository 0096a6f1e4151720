package conditions_test

import (
	"errors"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/netsim"
	"github.com/seed-5a7f77c4/deadair/scenarios/conditions"
	"github.com/seed-5a7f77c4/deadair/selection/breaker"
)

// A chooser sends requests through the first of its proxies that no breaker
// forbids. Its two rules can be switched off.
type chooser struct {
	app     *netsim.Host
	proxies []string
	scores  []*breaker.Breaker
	used    []int // requests by proxy
	// connectIsSuccess lets a connection that opens count for the proxy.
	connectIsSuccess bool
	// localIsFailure lets an error of the own network count against the proxy.
	localIsFailure bool
}

func newChooser(app *netsim.Host, proxies ...string) *chooser {
	c := &chooser{app: app, proxies: proxies, used: make([]int, len(proxies))}
	for range proxies {
		c.scores = append(c.scores, breaker.New(breaker.Settings{Failures: 3, OpenFor: 10 * time.Minute, Successes: 1}))
	}
	return c
}

var errAllBad = errors.New("all proxies are thought bad")

// do sends some requests over one connection and waits 2 s for each answer.
// However many of them fail, it is one incident.
func (c *chooser) do(requests int) error {
	for i, s := range c.scores {
		permit, ok := s.Acquire(time.Now())
		if !ok {
			continue
		}
		c.used[i]++
		err := c.through(i, &permit, requests)
		switch {
		case err == nil:
			s.Done(&permit, breaker.Success, time.Now())
		case errors.Is(err, syscall.ENETUNREACH) && !c.localIsFailure:
			s.Done(&permit, breaker.Abandoned, time.Now())
		default:
			s.Done(&permit, breaker.Failure, time.Now())
		}
		return err
	}
	return errAllBad
}

func (c *chooser) through(i int, permit *breaker.Permit, requests int) error {
	conn, err := (&netsim.Dialer{Host: c.app, Timeout: 2 * time.Second}).Dial("tcp", c.proxies[i])
	if err != nil {
		return err
	}
	defer conn.Close()
	if c.connectIsSuccess {
		c.scores[i].Done(permit, breaker.Success, time.Now())
	}
	results := make(chan error, requests)
	for range requests {
		go func() { results <- answered(conn) }()
	}
	var failed error
	for range requests {
		failed = errors.Join(failed, <-results)
	}
	return failed
}

func answered(c net.Conn) error {
	c.SetReadDeadline(time.Now().Add(2 * time.Second))
	if _, err := c.Write([]byte("?")); err != nil {
		return err
	}
	_, err := c.Read(make([]byte, 1))
	return err
}

// getlantern/lantern#4967: the proxy that connects fastest falls silent after the
// connect, another is slower and good. A chooser that counts answers leaves the
// first after three incidents, of which each counts once, be it one request or
// five; one that counts connections stays with it.
func TestStallOfTheFastest(t *testing.T) {
	for _, tc := range []struct {
		name             string
		connectIsSuccess bool
		requests         int
		used             []int
	}{
		{"answers count", false, 1, []int{3, 7}},
		{"answers count, five at a time", false, 5, []int{3, 7}},
		{"connections count", true, 1, []int{10, 0}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			netsim.Run(t, func(t *testing.T, n *netsim.Network) {
				app, fast, slow := n.Host("app"), n.Host("fast"), n.Host("slow")
				n.Link(app, slow).SetConditions(netsim.Conditions{Latency: 80 * ms})
				echo(t, listen(t, fast, ":443"))
				echo(t, listen(t, slow, ":443"))
				c := newChooser(app, "fast:443", "slow:443")
				c.connectIsSuccess = tc.connectIsSuccess
				require.NoError(t, c.do(tc.requests))
				c.used = make([]int, 2)
				conditions.StallAfter(n, fast, 443, 0)
				failed := 0
				for range 10 {
					if c.do(tc.requests) != nil {
						failed++
					}
				}
				assert.Equal(t, tc.used, c.used)
				assert.Equal(t, tc.used[0], failed)
			}, tenms)
		})
	}
}

// getlantern/lantern#2588: no network at all for 30 s, which each dial is told at
// once. A chooser that knows whose fault that is changes no score, and the first
// request afterwards succeeds with one dial; one that does not thinks all its
// proxies bad by then.
func TestNoNetworkFor(t *testing.T) {
	for _, tc := range []struct {
		name           string
		localIsFailure bool
		states         []breaker.State
		err            error
		dials          int
	}{
		{"the own network's fault", false, []breaker.State{breaker.Closed, breaker.Closed}, nil, 1},
		{"the proxy's fault", true, []breaker.State{breaker.Open, breaker.Open}, errAllBad, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			netsim.Run(t, func(t *testing.T, n *netsim.Network) {
				phone := n.Host("phone")
				wifi := phone.Interface("wifi", netsim.Wireless)
				for _, name := range []string{"p1", "p2"} {
					echo(t, listen(t, n.Host(name), ":443"))
				}
				c := newChooser(phone, "p1:443", "p2:443")
				c.localIsFailure = tc.localIsFailure
				conditions.NoNetworkFor(n, wifi, 30*time.Second)
				for range 10 {
					took := after(func() {
						if err := c.do(1); err != errAllBad {
							assert.ErrorIs(t, err, syscall.ENETUNREACH)
						}
					})
					assert.Less(t, took, ms)
					time.Sleep(3 * time.Second)
				}
				time.Sleep(ms)
				for i, s := range c.scores {
					assert.Equal(t, tc.states[i], s.State(time.Now()))
					if !tc.localIsFailure {
						assert.Zero(t, s.Failures())
					}
				}
				assert.Zero(t, dials(n, 443))
				assert.ErrorIs(t, c.do(1), tc.err)
				assert.Equal(t, tc.dials, dials(n, 443))
			}, tenms)
		})
	}
}
