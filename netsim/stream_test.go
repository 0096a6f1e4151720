package netsim_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/netsim"
)

// echo serves on a host until the network closes.
func echo(t *testing.T, h *netsim.Host, address string) *netsim.Listener {
	l, err := h.Listen("tcp", address)
	require.NoError(t, err)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				io.Copy(c, c)
				c.Close()
			}()
		}
	}()
	return l.(*netsim.Listener)
}

// pair gives both ends of a connection from a to b.
func pair(t *testing.T, a, b *netsim.Host) (client, server *netsim.Conn) {
	l, err := b.Listen("tcp", ":0")
	require.NoError(t, err)
	defer l.Close()
	accepted := make(chan net.Conn, 1)
	go func() {
		c, err := l.Accept()
		if err == nil {
			accepted <- c
		}
	}()
	c, err := a.Dial("tcp", net.JoinHostPort(b.Name(), portOf(l.Addr())))
	require.NoError(t, err)
	return c.(*netsim.Conn), (<-accepted).(*netsim.Conn)
}

func portOf(a net.Addr) string {
	_, port, _ := net.SplitHostPort(a.String())
	return port
}

// within says that d is want, up to the nanoseconds that ties cost.
func within(t *testing.T, want, d time.Duration) {
	t.Helper()
	require.InDelta(t, float64(want), float64(d), float64(10*time.Microsecond), "want %v, have %v", want, d)
}

const ms = time.Millisecond

func TestListenerThere(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b")
		echo(t, b, ":7")
		start := time.Now()
		c, err := a.DialContext(t.Context(), "tcp", "b:7")
		require.NoError(t, err)
		within(t, 20*ms, time.Since(start))
		_, err = c.Write([]byte("hello"))
		require.NoError(t, err)
		got := make([]byte, 5)
		_, err = io.ReadFull(c, got)
		require.NoError(t, err)
		require.Equal(t, "hello", string(got))
		within(t, 40*ms, time.Since(start))
		require.IsType(t, &net.TCPAddr{}, c.LocalAddr())
		require.NoError(t, c.Close())
	}, netsim.Defaults(netsim.Conditions{Latency: 10 * ms}))
}

func TestClosedPort(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a := n.Host("a")
		n.Host("b")
		start := time.Now()
		_, err := a.Dial("tcp", "b:7")
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
		var op *net.OpError
		require.ErrorAs(t, err, &op)
		require.Equal(t, "dial", op.Op)
		within(t, 20*ms, time.Since(start))
	}, netsim.Defaults(netsim.Conditions{Latency: 10 * ms}))
}

func TestSilentPath(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b")
		echo(t, b, ":7")
		n.Link(a, b).Cut()
		start := time.Now()
		_, err := a.Dial("tcp", "b:7")
		require.ErrorIs(t, err, syscall.ETIMEDOUT)
		within(t, 127*time.Second, time.Since(start))
		var at []time.Duration
		for _, e := range n.Trace().Find(func(e netsim.Event) bool { return e.Kind == netsim.SYN }) {
			require.Equal(t, netsim.Dropped, e.Fate)
			at = append(at, e.At.Round(ms))
		}
		s := time.Second
		require.Equal(t, []time.Duration{0, s, 3 * s, 7 * s, 15 * s, 31 * s, 63 * s}, at)

		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		start = time.Now()
		_, err = a.DialContext(ctx, "tcp", "b:7")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		var ne net.Error
		require.True(t, errors.As(err, &ne) && ne.Timeout())
		within(t, 5*time.Second, time.Since(start))
	})
}

func TestSilenceWithDataInFlight(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b")
		client, server := pair(t, a, b)
		defer server.Close()
		n.Link(a, b).Cut()
		start := time.Now()
		_, err := client.Write([]byte("hello"))
		require.NoError(t, err)
		_, err = client.Read(make([]byte, 1))
		require.ErrorIs(t, err, syscall.ETIMEDOUT)
		within(t, 924600*ms, time.Since(start))
	})
}

func TestSilenceHealsBeforeTheBudgetIsSpent(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b")
		client, server := pair(t, a, b)
		n.Link(a, b).Cut()
		start := time.Now()
		_, err := client.Write([]byte("hello"))
		require.NoError(t, err)
		time.Sleep(100 * time.Second)
		n.Link(a, b).Heal()
		got := make([]byte, 10)
		k, err := server.Read(got)
		require.NoError(t, err)
		require.Equal(t, "hello", string(got[:k]))
		within(t, 102200*ms, time.Since(start)) // 0.2·(2⁹−1): the next time-out
	})
}

func TestSilenceWhileIdle(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b")
		client, server := pair(t, a, b)
		defer server.Close()
		n.Link(a, b).Cut()
		start := time.Now()
		_, err := client.Read(make([]byte, 1))
		require.ErrorIs(t, err, syscall.ETIMEDOUT)
		within(t, 150*time.Second, time.Since(start))
	})
}

func TestPeerCloses(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b")
		client, server := pair(t, a, b)
		server.Write([]byte("bye"))
		require.NoError(t, server.Close())
		all, err := io.ReadAll(client)
		require.NoError(t, err)
		require.Equal(t, "bye", string(all))
		_, err = client.Write([]byte("x"))
		require.NoError(t, err, "the first write succeeds")
		time.Sleep(time.Second)
		_, err = client.Write([]byte("x"))
		require.ErrorIs(t, err, syscall.EPIPE)
		_, err = server.Read(nil)
		require.ErrorIs(t, err, net.ErrClosed)
	})
}

func TestPeerClosesWithUnreadData(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		client, server := pair(t, n.Host("a"), n.Host("b"))
		client.Write([]byte("unread"))
		time.Sleep(time.Second)
		server.Close()
		_, err := client.Read(make([]byte, 1))
		require.ErrorIs(t, err, syscall.ECONNRESET)
		_, err = client.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF, "the error is given once")
	})
}

func TestHalfClose(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		client, server := pair(t, n.Host("a"), n.Host("b"))
		client.Write([]byte("question"))
		require.NoError(t, client.CloseWrite())
		q, err := io.ReadAll(server)
		require.NoError(t, err)
		require.Equal(t, "question", string(q))
		server.Write([]byte("answer"))
		server.Close()
		a, err := io.ReadAll(client)
		require.NoError(t, err)
		require.Equal(t, "answer", string(a))
		_, err = client.Write([]byte("x"))
		require.ErrorIs(t, err, syscall.EPIPE)
	})
}

func TestBulkThroughBadWeather(t *testing.T) {
	for name, c := range map[string]netsim.Conditions{
		"perfect": {},
		"loss":    {Latency: 5 * ms, Loss: 0.05},
		"jitter":  {Latency: 5 * ms, Jitter: 4 * ms},
		"queue":   {Latency: 5 * ms, Rate: 20e6, Queue: 64 << 10},
		"all":     {Latency: 5 * ms, Jitter: 4 * ms, Loss: 0.02, Duplicate: 0.05, Corrupt: 0.02, Reorder: 0.1, Rate: 50e6, Queue: 128 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			netsim.Run(t, func(t *testing.T, n *netsim.Network) {
				client, server := pair(t, n.Host("a"), n.Host("b"))
				data := make([]byte, 3<<20)
				rand.Read(data)
				var wg sync.WaitGroup
				wg.Go(func() {
					_, err := client.Write(data)
					require.NoError(t, err)
					client.CloseWrite()
				})
				start := time.Now()
				got, err := io.ReadAll(server)
				require.NoError(t, err)
				require.True(t, bytes.Equal(data, got), "%d bytes of %d", len(got), len(data))
				wg.Wait()
				t.Logf("3 MiB in %v", time.Since(start))
			}, netsim.Defaults(c))
		})
	}
}

func TestReadDeadline(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		client, server := pair(t, n.Host("a"), n.Host("b"))
		start := time.Now()
		client.SetReadDeadline(start.Add(time.Second))
		_, err := client.Read(make([]byte, 1))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		within(t, time.Second, time.Since(start))
		client.SetReadDeadline(time.Time{})
		server.Write([]byte("x"))
		_, err = client.Read(make([]byte, 1))
		require.NoError(t, err)
	})
}

func TestCrashAndRestart(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b")
		client, server := pair(t, a, b)
		b.Crash()
		_, err := server.Read(make([]byte, 1))
		require.ErrorIs(t, err, net.ErrClosed)
		b.Restart()
		client.Write([]byte("x"))
		_, err = client.Read(make([]byte, 1))
		require.ErrorIs(t, err, syscall.ECONNRESET)
	})
}
