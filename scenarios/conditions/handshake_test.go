package conditions_test

import (
	"errors"
	"net"
	"net/http"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/netsim"
	"github.com/seed-5a7f77c4/deadair/scenarios/conditions"
)

// cockroachdb/cockroach#84289: the old connection works, a new one times out.
func TestSYNsLost(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		app, api := n.Host("app"), n.Host("api")
		echo(t, listen(t, api, ":80"))
		c := dial(t, app, "api:80")
		conditions.SYNsLost(n, api)
		assert.NoError(t, ask(c, time.Second))
		var err error
		took := after(func() {
			_, err = (&netsim.Dialer{Host: app, Timeout: 3 * time.Second}).Dial("tcp", "api:80")
		})
		var timeout net.Error
		require.True(t, errors.As(err, &timeout), "%v", err)
		assert.True(t, timeout.Timeout())
		assert.Equal(t, 3*time.Second, took.Round(ms))
	}, tenms)
}

// golang/go#16012: 100 ports for 101 short connections; it works again after
// TIME_WAIT.
func TestFewPorts(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		app, api := n.Host("app"), n.Host("api")
		echo(t, listen(t, api, ":80"))
		for range 100 {
			c, err := app.DialContext(t.Context(), "tcp", "api:80")
			require.NoError(t, err)
			c.Close()
		}
		_, err := app.DialContext(t.Context(), "tcp", "api:80")
		assert.ErrorIs(t, err, syscall.EADDRNOTAVAIL)
		time.Sleep(61 * time.Second)
		assert.NoError(t, ask(dial(t, app, "api:80"), time.Second))
	}, conditions.FewPorts(100))
}

// gravitational/teleport#6889: all are reset at once and refused for 10 s.
func TestRestartStorm(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		app, api := n.Host("app"), n.Host("api")
		echo(t, listen(t, api, ":80"))
		c := dial(t, app, "api:80")
		require.NoError(t, ask(c, time.Second))
		conditions.RestartStorm(n, api, 10*time.Second, app)
		assert.ErrorIs(t, ask(c, time.Second), syscall.ECONNRESET)
		_, err := app.DialContext(t.Context(), "tcp", "api:80")
		assert.ErrorIs(t, err, syscall.ECONNREFUSED)
		time.Sleep(10 * time.Second)
		assert.NoError(t, ask(dial(t, app, "api:80"), time.Second))
	}, tenms)
}

// golang/go#44267: net/http gives a handshake exactly 10 s.
func TestSlowHello(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		app, api := n.Host("app"), n.Host("api")
		l := conditions.SlowHello(listen(t, api, ":443"), 12*time.Second)
		echo(t, l) // what it says first is no ServerHello, and it is too late to matter
		tr := &http.Transport{DialContext: app.DialContext, TLSHandshakeTimeout: 10 * time.Second}
		defer tr.CloseIdleConnections()
		var err error
		took := after(func() { err = get(&http.Client{Transport: tr}, "https://api/") })
		assert.ErrorContains(t, err, "TLS handshake timeout")
		assert.True(t, os.IsTimeout(err) || err.(net.Error).Timeout())
		assert.Equal(t, 10*time.Second+20*ms, took.Round(ms))
		time.Sleep(10 * time.Second)
	}, tenms)
}

// dragonflydb/dragonfly#1643: dials beyond the backlog come through with SYNs
// that are sent again after 1 s and 3 s, and none is refused.
func TestStalledAcceptor(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		app, api := n.Host("app"), n.Host("api")
		echo(t, conditions.StalledAcceptor(listen(t, api, ":80"), 2*time.Second))
		took := make(chan time.Duration, 16)
		for range 16 {
			go func() {
				took <- after(func() {
					c, err := app.DialContext(t.Context(), "tcp", "api:80")
					if assert.NoError(t, err) {
						c.Close()
					}
				})
			}()
		}
		steps := map[time.Duration]int{}
		for range 16 {
			steps[(<-took).Round(time.Second)]++
		}
		assert.Positive(t, steps[0])
		assert.Positive(t, steps[3*time.Second])
		assert.Equal(t, 16, steps[0]+steps[3*time.Second])
	}, tenms, netsim.Backlog(8))
}
