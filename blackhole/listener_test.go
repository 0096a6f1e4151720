package blackhole_test

import (
	"context"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/blackhole"
)

func TestListenerAndDialerPutFaultsOnEveryConnection(t *testing.T) {
	up := &blackhole.Fault{When: blackhole.AfterBytes(3), Do: blackhole.Close(), On: blackhole.Up}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	faulty, err := blackhole.Listener(l, up)
	require.NoError(t, err)
	defer faulty.Close()
	got := make(chan string, 2)
	go func() {
		for {
			c, err := faulty.Accept()
			if err != nil {
				close(got)
				return
			}
			b, _ := io.ReadAll(c)
			c.Close()
			got <- string(b)
		}
	}()
	damaged := &blackhole.Fault{When: blackhole.AfterBytes(2), Do: blackhole.Swallow(), On: blackhole.Up}
	dial, err := blackhole.Dialer(new(net.Dialer).DialContext, damaged)
	require.NoError(t, err)
	for i, d := range []blackhole.DialFunc{new(net.Dialer).DialContext, dial} {
		c, err := d(t.Context(), "tcp", l.Addr().String())
		require.NoError(t, err)
		_, err = c.Write([]byte("abcdef"))
		require.NoError(t, err)
		if i == 1 {
			c.Close()
		}
		assert.Equal(t, []string{"abc", "ab"}[i], <-got)
		if i == 0 {
			c.Close()
		}
	}
	assert.EqualValues(t, 1, up.Hits())
	assert.EqualValues(t, 4, damaged.Bytes())
	faulty.Close()
	_, open := <-got
	assert.False(t, open)
}

func TestListenerAndDialerRefuseWhatCannotBe(t *testing.T) {
	_, err := blackhole.Listener(nil)
	require.ErrorContains(t, err, "the inner listener is nil")
	_, err = blackhole.Dialer(nil)
	require.ErrorContains(t, err, "the dial function is nil")
	_, err = blackhole.Client(nil)
	require.ErrorContains(t, err, "the inner connection is nil")
	dial, err := blackhole.Dialer(func(context.Context, string, string) (net.Conn, error) { return nil, os.ErrPermission })
	require.NoError(t, err)
	_, err = dial(t.Context(), "tcp", "x:1")
	require.ErrorIs(t, err, os.ErrPermission)
}

func TestADeadlineMovesWhileARealSocketBlocks(t *testing.T) {
	for name, effect := range map[string]blackhole.Effect{"swallow": blackhole.Swallow(), "stall": blackhole.Stall()} {
		t.Run(name, func(t *testing.T) {
			c, _ := loopback(t, &blackhole.Fault{Do: effect, On: blackhole.Down})
			require.NoError(t, c.SetReadDeadline(time.Now().Add(time.Hour)))
			started, done := make(chan struct{}), make(chan error, 1)
			go func() {
				close(started)
				_, err := c.Read(make([]byte, 1))
				done <- err
			}()
			<-started
			require.NoError(t, c.SetReadDeadline(time.Now().Add(time.Millisecond)))
			require.ErrorIs(t, <-done, os.ErrDeadlineExceeded)
			require.NoError(t, c.SetReadDeadline(time.Time{}))
		})
	}
}

func TestTheLostEndOfAStreamIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := pipe(t, &blackhole.Fault{Do: blackhole.Swallow(), On: blackhole.Down})
		told := make(chan error, 1)
		c.(*blackhole.Conn).OnLostEnd(func(err error) { told <- err; c.Close() })
		s.Close()
		_, err := c.Read(make([]byte, 1))
		require.ErrorIs(t, err, net.ErrClosed)
		assert.Equal(t, io.EOF, <-told)
	})
}

func TestADelayedPieceWaitsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := pipe(t, &blackhole.Fault{Do: blackhole.Delay(time.Minute), On: blackhole.Up}, &blackhole.Fault{Do: blackhole.Slice(1, 0), On: blackhole.Up})
		got := collect(s)
		start := time.Now()
		c.Write([]byte("ab"))
		assert.Equal(t, time.Minute, time.Since(start))
		c.Write([]byte("cd"))
		assert.Equal(t, 2*time.Minute, time.Since(start))
		c.Close()
		assert.Equal(t, "abcd", <-got)
	})
}
