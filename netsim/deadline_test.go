package netsim_test

import (
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/netsim"
)

func TestDeadlinePast(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		client, server := pair(t, n.Host("a"), n.Host("b"))
		write(t, server, "there")
		time.Sleep(time.Second)
		require.NoError(t, client.SetDeadline(time.Now().Add(-time.Minute)))
		require.ErrorIs(t, readError(t, client), os.ErrDeadlineExceeded, "though bytes are there")
		_, err := client.Write([]byte("x"))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded, "though it need not block")
		require.NoError(t, client.SetDeadline(time.Unix(1, 0)))
		require.ErrorIs(t, readError(t, client), os.ErrDeadlineExceeded)
		require.NoError(t, client.SetDeadline(time.Time{}))
		require.Equal(t, "there", readN(t, client, 5), "usable after a deadline")
		write(t, client, "x")
		require.Equal(t, "x", readN(t, server, 1))
	})
}

func TestDeadlineMovedWhileBlocked(t *testing.T) {
	for name, c := range map[string]struct {
		first, second time.Duration // 0: none
		want          time.Duration
	}{
		"later":   {2 * time.Second, 9 * time.Second, 10 * time.Second},
		"earlier": {time.Hour, time.Second, 2 * time.Second},
		"past":    {time.Hour, -time.Second, time.Second},
		"set":     {0, 4 * time.Second, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			netsim.Run(t, func(t *testing.T, n *netsim.Network) {
				client, server := pair(t, n.Host("a"), n.Host("b"))
				defer server.Close()
				if c.first != 0 {
					client.SetDeadline(time.Now().Add(c.first))
				}
				move := func() { client.SetDeadline(time.Now().Add(c.second)) }
				n.After(time.Second, "move", move)
				d := after(func() { require.ErrorIs(t, readError(t, client), os.ErrDeadlineExceeded) })
				within(t, c.want, d)

				client.SetDeadline(time.Time{})
				if c.first != 0 {
					client.SetDeadline(time.Now().Add(c.first))
				}
				n.After(time.Second, "move", move)
				d = after(func() {
					k, err := client.Write(make([]byte, 1<<20))
					require.ErrorIs(t, err, os.ErrDeadlineExceeded)
					require.Positive(t, k)
				})
				within(t, c.want, d)
			}, netsim.Buffers(64<<10, 64<<10))
		})
	}
}

func TestDeadlineClearedWhileBlocked(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		client, server := pair(t, n.Host("a"), n.Host("b"))
		client.SetReadDeadline(time.Now().Add(2 * time.Second))
		n.After(time.Second, "clear", func() { client.SetReadDeadline(time.Time{}) })
		n.After(time.Hour, "write", func() { server.Write([]byte("x")) })
		require.Equal(t, "x", readN(t, client, 1))
	})
}

func TestCloseDuringCalls(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		client, server := pair(t, n.Host("a"), n.Host("b"))
		defer server.Close()
		errs := make(chan error, 2)
		go func() {
			_, err := client.Read(make([]byte, 1))
			errs <- err
		}()
		go func() {
			_, err := client.Write(make([]byte, 1<<20))
			errs <- err
		}()
		time.Sleep(time.Second)
		require.NoError(t, client.Close())
		for range 2 {
			err := <-errs
			require.ErrorIs(t, err, net.ErrClosed)
			require.Contains(t, err.Error(), "use of closed network connection")
		}
		for name, call := range map[string]func() error{
			"Read":       func() error { _, err := client.Read(nil); return err },
			"Write":      func() error { _, err := client.Write(nil); return err },
			"Close":      client.Close,
			"CloseRead":  client.CloseRead,
			"CloseWrite": client.CloseWrite,
			"Deadline":   func() error { return client.SetDeadline(time.Now()) },
			"Linger":     func() error { return client.SetLinger(0) },
		} {
			require.ErrorIs(t, call(), net.ErrClosed, name)
		}
	}, netsim.Buffers(64<<10, 64<<10))
}

func TestCloseWriteUnblocksAWriter(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		client, server := pair(t, n.Host("a"), n.Host("b"))
		n.After(time.Second, "shut", func() { client.CloseWrite() })
		k, err := client.Write(make([]byte, 1<<20))
		require.ErrorContains(t, err, "broken pipe")
		got, err := io.ReadAll(server)
		require.NoError(t, err)
		require.Len(t, got, k)
	}, netsim.Buffers(64<<10, 64<<10))
}

func TestCloseReadEndsReads(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		client, server := pair(t, n.Host("a"), n.Host("b"))
		n.After(time.Second, "shut", func() { client.CloseRead() })
		require.Equal(t, io.EOF, readError(t, client))
		write(t, client, "x")
		require.Equal(t, "x", readN(t, server, 1))
	})
}

func TestWritesDoNotInterleave(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		client, server := pair(t, n.Host("a"), n.Host("b"))
		const writers, size = 8, 100 << 10
		for i := range writers {
			n.Go("writer", func() {
				b := make([]byte, size)
				for k := range b {
					b[k] = byte(i)
				}
				client.Write(b)
			})
		}
		seen := map[byte]bool{}
		for range writers {
			b := []byte(readN(t, server, size))
			for _, x := range b {
				require.Equal(t, b[0], x)
			}
			require.False(t, seen[b[0]])
			seen[b[0]] = true
		}
	}, netsim.Buffers(64<<10, 64<<10))
}
