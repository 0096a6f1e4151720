package netsim_test

import (
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/netsim"
)

// TestNagle: with SetNoDelay(false) a small write waits for the acknowledgement of
// the one before.
func TestNagle(t *testing.T) {
	for _, noDelay := range []bool{true, false} {
		netsim.Run(t, func(t *testing.T, n *netsim.Network) {
			client, server := pair(t, n.Host("a"), n.Host("b"))
			require.NoError(t, client.SetNoDelay(noDelay))
			write(t, client, "a")
			time.Sleep(ms)
			write(t, client, "b")
			require.Equal(t, "ab", readN(t, server, 2))
			at := sentAt(n, isData("a"))
			require.Len(t, at, 2)
			wait := ms
			if !noDelay {
				wait = 60 * ms // there, 40 ms until it is acknowledged for want of company, and back
			}
			require.Equal(t, wait, (at[1] - at[0]).Round(ms))
		}, tenms)
	}
}

// TestKeepAlivePeriod is idle time and interval.
func TestKeepAlivePeriod(t *testing.T) {
	for period, want := range map[time.Duration]time.Duration{time.Second: 10 * time.Second, 20 * time.Second: 200 * time.Second} {
		netsim.Run(t, func(t *testing.T, n *netsim.Network) {
			a, b := n.Host("a"), n.Host("b")
			client, _ := pair(t, a, b)
			require.NoError(t, client.SetKeepAlivePeriod(period))
			n.Link(a, b).Cut()
			within(t, want, after(func() { require.ErrorIs(t, readError(t, client), syscall.ETIMEDOUT) }))
		})
	}
}

// TestBuffersOfAStream: a writer stops when the buffers of both ends are full.
func TestBuffersOfAStream(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		client, server := pair(t, n.Host("a"), n.Host("b"))
		require.NoError(t, client.SetWriteBuffer(3000))
		require.NoError(t, server.SetReadBuffer(8000))
		time.Sleep(ms)
		client.SetWriteDeadline(time.Now().Add(time.Minute))
		k, err := client.Write(make([]byte, 1<<20))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.Equal(t, 11000, k)
		require.NoError(t, client.Close())
		require.ErrorContains(t, client.SetWriteBuffer(1), "use of closed network connection")
	}, netsim.Buffers(4000, 5000))
}
