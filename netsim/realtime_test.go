package netsim_test

import (
	"context"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/net/nettest"

	"github.com/seed-5a7f77c4/deadair/netsim"
)

// TestInRealTime: the same network outside a bubble.
func TestInRealTime(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	n := netsim.New(netsim.Defaults(netsim.Conditions{Latency: ms}))
	a, b := n.Host("a"), n.Host("b")
	echo(t, b, ":7")
	var c net.Conn
	var err error
	d := after(func() { c, err = a.Dial("tcp", "b:7") })
	require.NoError(t, err)
	require.GreaterOrEqual(t, d, 2*ms)
	write(t, c, "hello")
	require.Equal(t, "hello", readN(t, c, 5))
	_, err = a.Dial("tcp", "b:8")
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	c.SetReadDeadline(time.Now().Add(5 * ms))
	require.ErrorIs(t, readError(t, c), os.ErrDeadlineExceeded)
	c.SetReadDeadline(time.Time{})
	n.Link(a, b).Reset()
	require.ErrorIs(t, readError(t, c), syscall.ECONNRESET)
	n.Link(a, b).Cut()
	ctx, cancel := context.WithTimeout(context.Background(), 10*ms)
	defer cancel()
	_, err = a.DialContext(ctx, "tcp", "b:7")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, n.Close())
}

// TestRealTimeFailures are those that need no waiting.
func TestRealTimeFailures(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	n := netsim.New()
	a, b := n.Host("a"), n.Host("b")
	wifi := a.Interface("wifi", netsim.Wireless, netsim.WhenGone(netsim.Abort))
	echo(t, b, ":7")
	dial := func() *netsim.Conn {
		c, err := a.Dial("tcp", "b:7")
		require.NoError(t, err)
		write(t, c, "x")
		require.Equal(t, "x", readN(t, c, 1))
		return c.(*netsim.Conn)
	}
	for _, fail := range []struct {
		how  func(c *netsim.Conn)
		want error
	}{
		{func(c *netsim.Conn) { n.ResetFlow(c.Flow()) }, syscall.ECONNRESET},
		{func(c *netsim.Conn) {
			n.Apply(netsim.Rule{Flow: c.Flow(), Verdict: netsim.Verdict{Action: netsim.Reset}})
			write(t, c, "y")
		}, syscall.ECONNRESET},
		{func(c *netsim.Conn) {
			n.Apply(netsim.Rule{Flow: c.Flow(), From: a, Verdict: netsim.Verdict{Action: netsim.Reject}})
			write(t, c, "y")
		}, syscall.ECONNRESET},
		{func(*netsim.Conn) { wifi.Down() }, syscall.ECONNABORTED},
		{func(c *netsim.Conn) { c.CloseRead() }, io.EOF},
		{func(c *netsim.Conn) { c.Close() }, net.ErrClosed},
		{func(*netsim.Conn) { a.Crash() }, net.ErrClosed},
	} {
		wifi.Up()
		c := dial()
		failed := make(chan error, 1)
		go func() { _, err := c.Read(make([]byte, 1)); failed <- err }()
		fail.how(c)
		require.ErrorIs(t, <-failed, fail.want)
	}
	a.Restart()
	wifi.Up()
	refuse := n.Link(a, b).Refuse()
	_, err := a.Dial("tcp", "b:7")
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	refuse.Undo()
	n.Link(a, b).Unreach()
	_, err = a.Dial("tcp", "b:7")
	require.ErrorIs(t, err, syscall.EHOSTUNREACH)
	require.NoError(t, n.Close())
}

// TestRealTimeOrder: what is near comes first, and what goes one way in order.
func TestRealTimeOrder(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	n := netsim.New()
	near, far, b := n.Host("near"), n.Host("far"), n.Host("b")
	n.Path(far, b).SetConditions(netsim.Conditions{Latency: 24 * time.Hour})
	n.Path(near, b).SetConditions(netsim.Conditions{Latency: ms})
	to := packetConn(t, b, ":9")
	first, second := packetConn(t, far, ":0"), packetConn(t, near, ":0")
	first.WriteTo([]byte("far"), udpAddr(b, 9))
	for i := range 50 {
		second.WriteTo([]byte{byte(i)}, udpAddr(b, 9))
	}
	buf := make([]byte, 9)
	for i := range 50 {
		k, _, err := to.ReadFrom(buf)
		require.NoError(t, err)
		require.Equal(t, []byte{byte(i)}, buf[:k])
	}
	release := n.Path(near, b).Hold().Undo
	second.WriteTo([]byte("held"), udpAddr(b, 9))
	to.SetReadDeadline(time.Now().Add(3 * ms))
	_, _, err := to.ReadFrom(buf)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	to.SetReadDeadline(time.Time{})
	release()
	require.Equal(t, "held", receive(t, to))
	last := time.Duration(0)
	for _, e := range n.Trace().Events() {
		require.GreaterOrEqual(t, e.At, last)
		last = e.At
	}
	require.NoError(t, n.Close()) // with a packet on its way for a day
}

// TestRealTimeCloseEndsEveryCall, and leaves no goroutine.
func TestRealTimeCloseEndsEveryCall(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	n := netsim.New(netsim.Buffers(1, 1))
	a, b := n.Host("a"), n.Host("b")
	client, server := pair(t, a, b)
	udp := packetConn(t, a, ":9")
	l := listen(t, b, ":7")
	told := make(chan netsim.Connectivity, 9)
	a.WatchConnectivity(0, func(c netsim.Connectivity) { told <- c })
	require.True(t, (<-told).Wired)
	a.SetExpensive(true)
	require.True(t, (<-told).Expensive)
	n.Link(a, b).Cut().MayMiss()
	failed := make(chan error, 6)
	for _, call := range []func() error{
		func() error { _, err := client.Read(make([]byte, 1)); return err },
		func() error { _, err := server.Read(make([]byte, 1)); return err },
		func() error { _, err := client.Write(make([]byte, 100)); return err },
		func() error { _, err := l.Accept(); return err },
		func() error { _, _, err := udp.ReadFrom(make([]byte, 1)); return err },
		func() error { _, err := a.Dial("tcp", "b:7"); return err },
	} {
		go func() { failed <- call() }()
	}
	n.After(24*time.Hour, "never", func() { t.Error("tomorrow came") })
	require.NoError(t, n.Close())
	for range 6 {
		require.ErrorIs(t, <-failed, net.ErrClosed)
	}
	require.Empty(t, told)
}

func TestNettestConformance(t *testing.T) {
	nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
		n := netsim.New(netsim.TraceLimit(0))
		l, err := n.Host("b").Listen("tcp", ":7")
		if err != nil {
			return nil, nil, nil, err
		}
		if c1, err = n.Host("a").Dial("tcp", "b:7"); err != nil {
			return nil, nil, nil, err
		}
		c2, err = l.Accept()
		return c1, c2, func() { n.Close() }, err
	})
}
