package socksrelay

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type broken struct{ op string }

func (b broken) Write([]byte) (int, error) {
	return 0, &net.OpError{Op: b.op, Net: "tcp", Err: syscall.EPIPE}
}
func (b broken) Read([]byte) (int, error) {
	return 0, &net.OpError{Op: b.op, Net: "tcp", Err: syscall.ECONNRESET}
}

// crowded is a listener that runs out of file descriptors again and again before it is closed.
type crowded struct {
	refusals int
	at       []time.Time
	closed   chan struct{}
	once     sync.Once
}

func (l *crowded) Accept() (net.Conn, error) {
	l.at = append(l.at, time.Now())
	if len(l.at) <= l.refusals {
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	<-l.closed
	return nil, net.ErrClosed
}
func (l *crowded) Close() error   { l.once.Do(func() { close(l.closed) }); return nil }
func (l *crowded) Addr() net.Addr { return &net.TCPAddr{} }

// TestARelayOutlivesAShortageOfFileDescriptors holds that Serve waits, longer each time, and goes on.
func TestARelayOutlivesAShortageOfFileDescriptors(t *testing.T) {
	dial := func(context.Context, string, string) (net.Conn, error) { return nil, io.EOF }
	synctest.Test(t, func(t *testing.T) {
		r, err := New(Config{Dial: dial})
		require.NoError(t, err)
		l := &crowded{refusals: 12, closed: make(chan struct{})}
		served := make(chan error, 1)
		go func() { served <- r.Serve(l) }()
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Len(t, l.at, 13)
		assert.Less(t, l.at[1].Sub(l.at[0]), 10*time.Millisecond)
		assert.LessOrEqual(t, l.at[12].Sub(l.at[11]), time.Second)
		assert.Greater(t, l.at[12].Sub(l.at[11]), l.at[1].Sub(l.at[0]))
		require.NoError(t, r.Close())
		require.ErrorIs(t, <-served, net.ErrClosed)
	})
	synctest.Test(t, func(t *testing.T) {
		r, err := New(Config{Dial: dial})
		require.NoError(t, err)
		served := make(chan error, 1)
		go func() { served <- r.Serve(&crowded{refusals: 1 << 20, closed: make(chan struct{})}) }()
		time.Sleep(time.Minute)
		start := time.Now()
		require.NoError(t, r.Close())
		require.ErrorIs(t, <-served, net.ErrClosed)
		assert.Zero(t, time.Since(start), "Close does not wait for the end of a pause")
	})
}

// TestAnErrorInWritingEndsOneDirectionOnly: go-socks5 closes both connections at the first error that a copy returns.
func TestAnErrorInWritingEndsOneDirectionOnly(t *testing.T) {
	_, err := carry(broken{"write"}, strings.NewReader("x"))
	require.NoError(t, err)
	_, err = carry(io.Discard, broken{"read"})
	assert.True(t, errors.Is(err, syscall.ECONNRESET), "a sender that has gone ends both")
}
