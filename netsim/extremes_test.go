package netsim_test

import (
	"context"
	"io"
	"math"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/clock"
	"github.com/seed-5a7f77c4/deadair/netsim"
)

// TestFarDeadline: a deadline further away than a duration reaches is one that never comes.
func TestFarDeadline(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		far := time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC)
		a, b := n.Host("a"), n.Host("b")
		l := listen(t, b, ":7")
		require.NoError(t, l.SetDeadline(far))
		ctx, cancel := context.WithDeadline(t.Context(), far)
		defer cancel()
		n.After(time.Hour, "dial", func() {
			c, err := a.DialContext(ctx, "tcp", "b:7")
			if err == nil {
				time.Sleep(time.Hour)
				_, err = c.Write([]byte("x"))
			}
			require.NoError(t, err)
		})
		c, err := l.Accept()
		require.NoError(t, err)
		require.NoError(t, c.SetDeadline(far))
		require.Equal(t, "x", readN(t, c, 1))

		udp := packetConn(t, b, ":9")
		require.NoError(t, udp.SetDeadline(far))
		n.After(time.Hour, "datagram", func() {
			_, err := packetConn(t, a, ":9").WriteTo([]byte("y"), udpAddr(b, 9))
			require.NoError(t, err)
		})
		k, _, err := udp.ReadFrom(make([]byte, 1))
		require.NoError(t, err)
		require.Equal(t, 1, k)
		require.Equal(t, 3*time.Hour, n.Now().Round(time.Second))
	})
}

// TestLongestTimers: times as long as there are, for a connection's timers, are for ever.
func TestLongestTimers(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		client, server := pair(t, n.Host("a"), n.Host("b"))
		for _, c := range []net.Conn{client, server} {
			c := c.(*netsim.Conn)
			require.NoError(t, c.SetKeepAlivePeriod(math.MaxInt64))
			require.NoError(t, c.SetUserTimeout(math.MaxInt64))
			require.NoError(t, c.SetLinger(math.MaxInt))
		}
		write(t, client, "x")
		readN(t, server, 1)
		before := n.Trace().Len()
		time.Sleep(24 * time.Hour)
		require.LessOrEqual(t, n.Trace().Len()-before, 1) // the last acknowledgement
		write(t, client, "y")
		require.NoError(t, client.Close())
		require.Equal(t, "y", readN(t, server, 1))
	})
}

// TestLoopbackMTU: what a host sends to itself respects an MTU that was set there.
func TestLoopbackMTU(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a := n.Host("a")
		for _, mtu := range []int{1500, 0, 70000} {
			n.Path(a, a).SetConditions(netsim.Conditions{MTU: mtu})
			client, server := pair(t, a, a)
			go func() {
				client.Write(make([]byte, 200_000))
				client.Close()
			}()
			got, err := io.ReadAll(server)
			require.NoError(t, err)
			require.Len(t, got, 200_000)
			server.Close()
			time.Sleep(2 * time.Minute)
		}
	})
}

// TestTailOfNothing: no line, or less, is none.
func TestTailOfNothing(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		n.Notef("x")
		time.Sleep(time.Second)
		require.Equal(t, "  … 1 events before\n", n.Trace().Tail(0))
		require.Equal(t, n.Trace().Tail(0), n.Trace().Tail(-1))
	})
}

// TestWrongSeedInTheEnvironment: an error, not a panic, and none where a seed is given.
func TestWrongSeedInTheEnvironment(t *testing.T) {
	t.Setenv(clock.SeedVariable, "nonsense")
	body := func(*testing.T, *netsim.Network) {}
	require.ErrorContains(t, netsim.Bubble(t, body), `DEADAIR_SEED="nonsense"`)
	require.NoError(t, netsim.Bubble(t, body, netsim.Seed(3)))
	require.Contains(t, panicText(t, func() { netsim.New() }), `netsim: New: clock: DEADAIR_SEED="nonsense"`)
}
