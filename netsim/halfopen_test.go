package netsim_test

import (
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/netsim"
)

// fixedPort is a dialer that takes a port of its own choice.
func fixedPort(h *netsim.Host, port int) *netsim.Dialer {
	return &netsim.Dialer{Host: h, LocalAddr: &net.TCPAddr{Port: port}}
}

// TestHalfOpenConnectionIsDiscovered: a host that crashed dials again from the
// same port. Its peer still holds the old connection and says so; the answer to
// that ends it, and the next SYN opens a new one (RFC 9293, 3.5.1).
func TestHalfOpenConnectionIsDiscovered(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b")
		l := listen(t, b, ":7")
		accepted := accept(l)
		first, err := fixedPort(a, 5000).Dial("tcp", "b:7")
		require.NoError(t, err)
		old := <-accepted
		write(t, first, "before")
		require.Equal(t, "before", readN(t, old, 6))
		a.Crash()
		a.Restart()
		accepted = accept(l)
		var second net.Conn
		d := after(func() { second, err = fixedPort(a, 5000).Dial("tcp", "b:7") })
		require.NoError(t, err)
		within(t, time.Second+20*ms, d)
		require.ErrorIs(t, readError(t, old), syscall.ECONNRESET)
		fresh := <-accepted
		write(t, second, "after")
		require.Equal(t, "after", readN(t, fresh, 5))
	}, tenms)
}

// TestSimultaneousOpen: two programs that dial each other at once share one
// connection, without a listener.
func TestSimultaneousOpen(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b")
		got := make(chan net.Conn, 1)
		n.Go("b", func() {
			c, _ := fixedPort(b, 6000).Dial("tcp", "a:5000")
			got <- c
		})
		var c net.Conn
		var err error
		d := after(func() { c, err = fixedPort(a, 5000).Dial("tcp", "b:6000") })
		require.NoError(t, err)
		within(t, 20*ms, d)
		other := <-got
		require.NotNil(t, other)
		write(t, c, "ping")
		require.Equal(t, "ping", readN(t, other, 4))
		write(t, other, "pong")
		require.Equal(t, "pong", readN(t, c, 4))
	}, tenms)
}

// TestSimultaneousOpenGivenUp by one side: the other is told, since its program
// waits.
func TestSimultaneousOpenGivenUp(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b")
		n.Apply(netsim.Rule{From: b, Kind: netsim.SYNACK, Verdict: drop})
		n.Go("b", func() {
			d := fixedPort(b, 6000)
			d.Timeout = 15 * ms // gives up while the handshake is under way
			_, err := d.Dial("tcp", "a:5000")
			require.Error(t, err)
		})
		_, err := fixedPort(a, 5000).Dial("tcp", "b:6000")
		require.ErrorIs(t, err, syscall.ECONNRESET)
	}, tenms)
}
