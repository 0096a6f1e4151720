package socksrelay_test

import (
	"context"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/blackhole"
	"github.com/seed-5a7f77c4/deadair/netsim"
	"github.com/seed-5a7f77c4/deadair/socksrelay"
)

// TestAClientThatLeavesInsideTheHoleIsLetGo holds how long the relay keeps the connections of a client that has gone.
func TestAClientThatLeavesInsideTheHoleIsLetGo(t *testing.T) {
	const never = -1
	byFIN := func(c *netsim.Conn) { c.Close() }
	byRST := func(c *netsim.Conn) { c.SetLinger(0); c.Close() }
	for name, tc := range map[string]struct {
		leave   func(c *netsim.Conn)
		timeout time.Duration // Config.GoneTimeout
		after   time.Duration
	}{
		"by RST":                       {byRST, 0, 0},
		"by RST, with time for ever":   {byRST, -1, 0},
		"by FIN":                       {byFIN, 0, socksrelay.DefaultGoneTimeout},
		"by FIN, with another timeout": {byFIN, 5 * time.Second, 5 * time.Second},
		"by FIN, with time for ever":   {byFIN, -1, never},
	} {
		t.Run(name, func(t *testing.T) {
			netsim.Run(t, func(t *testing.T, n *netsim.Network) {
				client, middle, server := n.Host("client"), n.Host("relay"), n.Host("server")
				l, err := server.Listen("tcp", ":7")
				require.NoError(t, err)
				ended := make(chan time.Time, 1)
				go func() {
					if c, err := l.Accept(); err == nil {
						io.Copy(io.Discard, c)
						ended <- time.Now()
						c.Close()
					}
				}()
				_, stop := relayOn(t, middle, socksrelay.Config{GoneTimeout: tc.timeout, Faults: []*socksrelay.Fault{socksrelay.BlackHole(nil)}})
				c := through(t, client)
				left := time.Now()
				tc.leave(c)
				select {
				case at := <-ended:
					assert.InDelta(t, tc.after, at.Sub(left), float64(time.Second))
				case <-time.After(time.Hour):
					assert.EqualValues(t, never, tc.after, "the relay has kept the connection for an hour")
				}
				stop()
				l.Close()
			})
		})
	}
}

// TestAHoleThatClosesGivesAHalfClosedClientItsTimeBack holds that the time for clients that have gone does not run on.
func TestAHoleThatClosesGivesAHalfClosedClientItsTimeBack(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		client, middle, server := n.Host("client"), n.Host("relay"), n.Host("server")
		l, err := server.Listen("tcp", ":7")
		require.NoError(t, err)
		go func() {
			if c, err := l.Accept(); err == nil {
				io.Copy(io.Discard, c)
				time.Sleep(time.Hour)
				c.Write([]byte("late"))
				c.Close()
			}
		}()
		var sw blackhole.Switch
		sw.On()
		_, stop := relayOn(t, middle, socksrelay.Config{Faults: []*socksrelay.Fault{
			{Phase: socksrelay.Data, Do: blackhole.Swallow(), Switch: &sw},
		}})
		c := through(t, client)
		require.NoError(t, c.CloseWrite())
		time.AfterFunc(socksrelay.DefaultGoneTimeout/2, sw.Off)
		got, err := io.ReadAll(c)
		require.NoError(t, err)
		assert.Equal(t, "late", string(got))
		c.Close()
		stop()
		l.Close()
	})
}

func TestTheHandshakesTimeIsTheClientsNotTheFaults(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const held = 100 * time.Second
		l := serve(t, socksrelay.Config{Faults: []*socksrelay.Fault{{Phase: socksrelay.Method, Do: blackhole.Delay(held), On: blackhole.Down}}})
		c, err := l.dial(t.Context(), "", "")
		require.NoError(t, err)
		start := time.Now()
		_, err = c.Write([]byte{5, 1, 0})
		require.NoError(t, err)
		_, err = io.ReadFull(c, make([]byte, 2))
		require.NoError(t, err, "the fault may take as long as it likes")
		_, err = c.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF, "the client may not")
		took := time.Since(start)
		assert.Greater(t, took, held)
		assert.LessOrEqual(t, took, held+3*socksrelay.DefaultHandshakeTimeout)
	})
}

// openFiles is the number of this process's file descriptors.
func openFiles(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(all)
}

func TestTenThousandMalformedConnectionsOnRealSocketsLeaveNothing(t *testing.T) {
	relay, err := socksrelay.New(socksrelay.Config{Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, &socksrelay.ReplyError{Code: 1, Err: io.ErrUnexpectedEOF}
	}})
	require.NoError(t, err)
	goroutines, files := runtime.NumGoroutine(), openFiles(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	relaying := make(chan error, 1)
	go func() { relaying <- relay.Serve(l) }()

	const total, atOnce = 10_000, 32
	numbers := make(chan int)
	var clients sync.WaitGroup
	for range atOnce {
		clients.Go(func() {
			for i := range numbers {
				c, err := net.Dial("tcp", l.Addr().String())
				if !assert.NoError(t, err) {
					continue
				}
				c.SetDeadline(time.Now().Add(30 * time.Second))
				c.Write([]byte{5, byte(i), byte(i >> 3), byte(i >> 5), 1, 0, 3, byte(i)}[:1+i%8])
				c.(*net.TCPConn).CloseWrite()
				_, err = io.Copy(io.Discard, c)
				assert.NotErrorIs(t, err, os.ErrDeadlineExceeded, "connection %d hangs", i)
				c.(*net.TCPConn).SetLinger(0) // leaves no TIME_WAIT
				c.Close()
			}
		})
	}
	for i := range total {
		numbers <- i
	}
	close(numbers)
	clients.Wait()
	require.NoError(t, relay.Close())
	require.ErrorIs(t, <-relaying, net.ErrClosed)
	assert.Empty(t, relay.Connections())
	assert.LessOrEqual(t, runtime.NumGoroutine(), goroutines+1)
	assert.LessOrEqual(t, openFiles(t), files+1)
}
