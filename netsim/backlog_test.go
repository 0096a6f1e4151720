package netsim_test

import (
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/netsim"
)

// overlap dials k times at once, so that all SYNs are there before the first
// handshake ends, and gives the connections.
func overlap(t *testing.T, n *netsim.Network, k int) []*netsim.Conn {
	a := n.Host("a")
	cs := make([]*netsim.Conn, k)
	done := make(chan int)
	for i := range cs {
		n.Go("dial", func() {
			c, err := a.Dial("tcp", "b:7")
			require.NoError(t, err)
			cs[i] = c.(*netsim.Conn)
			done <- i
		})
	}
	for range cs {
		<-done
	}
	return cs
}

// ignored are the acknowledgements that found no room.
func ignored(n *netsim.Network) int {
	return n.Trace().Count(func(e netsim.Event) bool { return e.Why == "b: backlog full, ACK ignored" })
}

// TestHandshakesDoNotCount against the backlog: five SYNs are answered where one
// connection may wait, and all five clients believe after a round trip that they
// are connected.
func TestHandshakesDoNotCount(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		l := listen(t, n.Host("b"), ":7")
		within(t, 20*ms, after(func() { overlap(t, n, 5) }))
		require.Zero(t, n.Trace().Count(func(e netsim.Event) bool { return e.Why == "b: backlog full, SYN dropped" }))
		time.Sleep(100 * ms)
		require.Equal(t, 4, ignored(n))
		within(t, 0, after(func() { l.Accept() }))
		within(t, 910*ms, after(func() { l.Accept() })) // a round trip after the SYN-ACK's first repetition
	}, tenms, netsim.Backlog(0))
}

// TestACKIgnored: the server sends its SYN-ACK again, and what answers it is
// ignored too while nobody accepts. Data that the client sends meanwhile is
// sent again until there is room, and arrives.
func TestACKIgnored(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		l := listen(t, n.Host("b"), ":7")
		cs := overlap(t, n, 2)
		for _, c := range cs {
			write(t, c, c.LocalAddr().String())
		}
		time.Sleep(5 * time.Second)
		synAcks := n.Trace().Count(func(e netsim.Event) bool { return e.Kind == netsim.SYNACK && e.Again })
		require.Equal(t, 2, synAcks, "after 1 and 3 s")
		for range cs {
			c, err := l.Accept()
			require.NoError(t, err)
			want := c.RemoteAddr().String()
			require.Equal(t, want, readN(t, c, len(want)))
		}
	}, tenms, netsim.Backlog(0))
}

// TestACKIgnoredForGood: after 63 s the server has forgotten the connection, and
// the client is told when it speaks.
func TestACKIgnoredForGood(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		listen(t, n.Host("b"), ":7")
		var failed []error
		cs := overlap(t, n, 2)
		time.Sleep(64 * time.Second)
		for _, c := range cs {
			write(t, c, "x")
			c.SetReadDeadline(time.Now().Add(time.Second))
			if err := readError(t, c); !errors.Is(err, os.ErrDeadlineExceeded) {
				failed = append(failed, err)
			}
		}
		require.Len(t, failed, 1)
		require.ErrorIs(t, failed[0], syscall.ECONNRESET)
	}, tenms, netsim.Backlog(0))
}

// TestResetWhileFull: a RST ends a handshake whether or not there is room.
func TestResetWhileFull(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		b := n.Host("b")
		listen(t, b, ":7")
		cs := overlap(t, n, 2)
		for _, c := range cs {
			c.SetLinger(0)
			c.Close()
		}
		time.Sleep(time.Second / 2)
		for _, s := range b.Sockets() {
			require.NotEqual(t, "SYN-RECV", s.State)
		}
	}, tenms, netsim.Backlog(0))
}
