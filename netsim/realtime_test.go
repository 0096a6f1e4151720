package netsim_test

import (
	"context"
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
