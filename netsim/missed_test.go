package netsim_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/clock"
	"github.com/seed-5a7f77c4/deadair/netsim"
)

// Whoever reads that a fault never bit is told what may be the reason.
func TestAFaultThatMissedSaysWhy(t *testing.T) {
	drop := netsim.Verdict{Action: netsim.Drop}
	for name, c := range map[string]struct {
		apply func(n *netsim.Network, app, server *netsim.Host)
		want  []string
		not   []string

		keepAlive time.Duration // at the server
	}{
		"a host that nobody knows": {
			apply: func(n *netsim.Network, app, _ *netsim.Host) { n.Link(app, n.Host("servre")).Cut() },
			want:  []string{"cut app-servre never bit", "no connection was ever opened by host servre or to it", "call MayMiss on it"},
			not:   []string{"by host app"},
		},
		"a flow that does not exist": {
			apply: func(n *netsim.Network, _, _ *netsim.Host) {
				n.Apply(netsim.Rule{Flow: "app->server:1", Verdict: drop})
			},
			want: []string{`there was no flow "app->server:1", the flows were app>server:1#1`},
		},
		"a flow that exists": {
			apply: func(n *netsim.Network, _, _ *netsim.Host) {
				n.Apply(netsim.Rule{Flow: "app>server:1#1", Kind: netsim.RST, Verdict: drop})
			},
			want: []string{"never bit: nothing matched it. If it"},
		},
		"a NAT that probes keep awake": {
			apply: func(n *netsim.Network, app, server *netsim.Host) {
				n.Link(app, server).ForgetIdle(5*time.Minute, netsim.Silently)
				_, err := app.Dial("tcp", "server:1")
				require.NoError(t, err)
				time.Sleep(6 * time.Minute)
			},
			want: []string{"no flow was idle for longer than 15s", "keep-alive probes, every 15s"},
			not:  []string{"no connection"},
		},
		"a NAT that had too little time": {
			apply: func(n *netsim.Network, app, server *netsim.Host) {
				n.Link(app, server).ForgetIdle(5*time.Minute, netsim.Silently)
				d := netsim.Dialer{Host: app, KeepAlive: -1}
				c, err := d.DialContext(context.Background(), "tcp", "server:1")
				require.NoError(t, err)
				time.Sleep(4 * time.Minute)
				c.Write([]byte("x"))
				time.Sleep(time.Second)
			},
			want: []string{"no flow was idle for longer than 4m0s"},
			not:  []string{"keep-alive"},

			keepAlive: -1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := netsim.Bubble(t, func(t *testing.T, n *netsim.Network) {
				app, server := n.Host("app"), n.Host("server")
				lc := netsim.ListenConfig{Host: server, KeepAlive: c.keepAlive}
				l, err := lc.Listen(context.Background(), "tcp", ":1")
				require.NoError(t, err)
				_, err = app.Dial("tcp", "server:1")
				require.NoError(t, err)
				_, err = l.Accept()
				require.NoError(t, err)
				c.apply(n, app, server)
			})
			require.Error(t, err)
			for _, s := range c.want {
				require.ErrorContains(t, err, s)
			}
			for _, s := range c.not {
				require.NotContains(t, err.Error(), s)
			}
		})
	}
}

// A client that waits for ever does so while probes are answered: time moves on
// and no watchdog barks. The budget ends it, and says whose call it was.
func TestARunThatNeverEndsIsEnded(t *testing.T) {
	for name, c := range map[string]struct {
		opts []netsim.Option
		want time.Duration
	}{
		"by default":   {nil, netsim.DefaultBudget},
		"when told to": {[]netsim.Option{netsim.Clock(clock.Budget(time.Hour))}, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			err := netsim.Bubble(t, func(t *testing.T, n *netsim.Network) {
				l, err := n.Host("server").Listen("tcp", ":1")
				require.NoError(t, err)
				c, err := n.Host("app").Dial("tcp", "server:1")
				require.NoError(t, err)
				_, err = l.Accept()
				require.NoError(t, err)
				c.Read(make([]byte, 1))
			}, c.opts...)
			require.ErrorIs(t, err, clock.ErrBudget)
			require.NotErrorIs(t, err, clock.ErrFailed)
			require.ErrorContains(t, err, "after "+c.want.String())
			require.ErrorContains(t, err, "called by github.com/seed-5a7f77c4/deadair/netsim_test.TestARunThatNeverEndsIsEnded")
			require.NotContains(t, err.Error(), "testing/synctest")
		})
	}
}

func TestListenConfigSwitchesProbesOff(t *testing.T) {
	for _, off := range []bool{false, true} {
		netsim.Run(t, func(t *testing.T, n *netsim.Network) {
			app, server := n.Host("app"), n.Host("server")
			keepAlive := time.Duration(0)
			if off {
				keepAlive = -1
			}
			lc := netsim.ListenConfig{Host: server, KeepAlive: keepAlive}
			l, err := lc.Listen(t.Context(), "tcp", ":1")
			require.NoError(t, err)
			d := netsim.Dialer{Host: app, KeepAlive: keepAlive}
			_, err = d.DialContext(t.Context(), "tcp", "server:1")
			require.NoError(t, err)
			_, err = l.Accept()
			require.NoError(t, err)
			time.Sleep(time.Hour)
			probes := n.Trace().Count(func(e netsim.Event) bool { return e.Probe && e.From == "server" })
			if off {
				require.Zero(t, probes)
			} else {
				require.Greater(t, probes, 100)
			}
		})
	}
	var none netsim.ListenConfig
	_, err := none.Listen(t.Context(), "tcp", ":1")
	require.ErrorContains(t, err, "there is no Host")
}

// The summary tells a long silence in a few lines, and what was done before it.
func TestSummaryFoldsWhatRepeats(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		app, server := n.Host("app"), n.Host("server")
		l, err := server.Listen("tcp", ":1")
		require.NoError(t, err)
		c, err := app.Dial("tcp", "server:1")
		require.NoError(t, err)
		_, err = l.Accept()
		require.NoError(t, err)
		n.Link(app, server).Cut()
		c.Write([]byte("hello"))
		_, err = c.Read(make([]byte, 1))
		require.Error(t, err)
		all := n.Trace().Summary(100)
		require.Less(t, strings.Count(all, "\n"), n.Trace().Len())
		require.Contains(t, all, "-- cut app-server")
		require.Contains(t, all, "… 16 more retransmissions, probes and acknowledgements")
		require.NotContains(t, all, "events before")
		last := n.Trace().Summary(2)
		require.Contains(t, last, "-- cut app-server", "what was done to the network is shown in any case")
		require.Contains(t, last, "events before")
	})
}
