package netsim_test

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/netsim"
)

// tenms is a link of 10 ms each way.
var tenms = netsim.Defaults(netsim.Conditions{Latency: 10 * ms})

// listen listens and gives the listener's own type.
func listen(t *testing.T, h *netsim.Host, address string) *netsim.Listener {
	t.Helper()
	l, err := h.Listen("tcp", address)
	require.NoError(t, err)
	return l.(*netsim.Listener)
}

// accept accepts in the background; the connection comes by the channel.
func accept(l net.Listener) <-chan net.Conn {
	got := make(chan net.Conn, 1)
	go func() {
		if c, err := l.Accept(); err == nil {
			got <- c
		}
	}()
	return got
}

// after says how long f took in the test's time.
func after(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}

// sentAt are the times at which packets of a kind were sent, to the millisecond.
func sentAt(n *netsim.Network, match func(netsim.Event) bool) []time.Duration {
	var at []time.Duration
	for _, e := range n.Trace().Find(func(e netsim.Event) bool { return e.Fate != netsim.Note && match(e) }) {
		at = append(at, e.Sent.Round(ms))
	}
	return at
}

// readN reads k bytes.
func readN(t *testing.T, c net.Conn, k int) string {
	t.Helper()
	b := make([]byte, k)
	for got := 0; got < k; {
		m, err := c.Read(b[got:])
		require.NoError(t, err)
		got += m
	}
	return string(b)
}

// write writes it all.
func write(t *testing.T, c net.Conn, s string) {
	t.Helper()
	k, err := c.Write([]byte(s))
	require.NoError(t, err)
	require.Equal(t, len(s), k)
}

// readError is the error of a read that has nothing to give.
func readError(t *testing.T, c net.Conn) error {
	t.Helper()
	k, err := c.Read(make([]byte, 1))
	require.Zero(t, k)
	require.Error(t, err)
	return err
}

// udpAddr is where to send a datagram for a host.
func udpAddr(h *netsim.Host, port int) *net.UDPAddr {
	return &net.UDPAddr{IP: h.Addr().AsSlice(), Port: port}
}
