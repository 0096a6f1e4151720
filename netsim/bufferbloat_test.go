package netsim_test

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/netsim"
)

// bulk sends so many bytes from a to b and says how long that took, and how
// many bytes were sent again.
func bulk(t *testing.T, n *netsim.Network, a, b *netsim.Host, bytes int) (took time.Duration, again int) {
	l := listen(t, b, ":7")
	done := make(chan int64)
	go func() {
		c, err := l.Accept()
		require.NoError(t, err)
		k, err := io.Copy(io.Discard, c)
		require.NoError(t, err)
		done <- k
	}()
	c, err := a.Dial("tcp", "b:7")
	require.NoError(t, err)
	took = after(func() {
		write(t, c, strings.Repeat("x", bytes))
		require.NoError(t, c.Close())
		require.EqualValues(t, bytes, <-done)
	})
	for _, e := range n.Trace().Find(func(e netsim.Event) bool { return e.Again }) {
		again += e.Len
	}
	return took, again
}

// TestBufferbloat: at 64 kbit/s with an endless queue the round trip grows to many
// seconds, and the time-out with it. Linux 6.18 sends one segment again, the
// first, and takes 34.2 s.
func TestBufferbloat(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		took, again := bulk(t, n, n.Host("a"), n.Host("b"), 256<<10)
		require.Equal(t, 34*time.Second, took.Round(time.Second))
		require.LessOrEqual(t, again, 1460)
	}, netsim.Defaults(netsim.Conditions{Latency: 10 * ms, Rate: 64e3}))
}

// TestDelaySpike: packets that were held up for three seconds are late, not
// lost. Each time-out meanwhile sends the first one again, and nothing is sent
// again, nor more slowly, when they arrive.
func TestDelaySpike(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		const rate, bytes = 8e6, 10 << 20
		a, b := n.Host("a"), n.Host("b")
		n.After(2*time.Second, "hold", func() { n.Link(a, b).Hold() })
		n.After(5*time.Second, "release", func() { n.Link(a, b).Release() })
		took, again := bulk(t, n, a, b, bytes)
		line := time.Duration(bytes * 8 / rate * float64(time.Second))
		require.Less(t, took, line+3*time.Second)
		require.LessOrEqual(t, again, 5*1460)
	}, netsim.Defaults(netsim.Conditions{Latency: 10 * ms, Rate: 8e6}))
}
