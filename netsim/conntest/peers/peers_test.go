// Package peers runs the conformance suite on connections that others publish,
// to show that it finds what is known to be wrong with them. It is a module of
// its own so that nobody else needs what it tests.
package peers

import (
	"net"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp/fasthttputil"
	"google.golang.org/grpc/test/bufconn"

	"github.com/seed-5a7f77c4/deadair/netsim/conntest"
)

func names(failures []*conntest.Failure) []string {
	var s []string
	for _, f := range failures {
		s = append(s, f.Property.Name)
	}
	return s
}

func buffered() (a, b net.Conn, stop func(), err error) {
	l := bufconn.Listen(1 << 20)
	accepted := make(chan net.Conn, 1) // its Dial waits for Accept
	go func() {
		c, _ := l.Accept()
		accepted <- c
	}()
	if a, err = l.Dial(); err != nil {
		return nil, nil, nil, err
	}
	b = <-accepted
	return a, b, func() { a.Close(); b.Close(); l.Close() }, nil
}

// TestBufconn: a write looks at its deadline only when it has to wait for room.
func TestBufconn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		require.Contains(t, names(conntest.Check(buffered, conntest.Stream()...)), "PastWriteDeadline")
	})
}

func fast() (a, b net.Conn, stop func(), err error) {
	pipe := fasthttputil.NewPipeConns()
	return pipe.Conn1(), pipe.Conn2(), func() { pipe.Close() }, nil
}

// TestFasthttp: of the release in which valyala/fasthttp#1357 was reported, a
// read that waits does not hear of a deadline set meanwhile, nor does a call
// look at one that has passed before it has to wait, and the error is no
// net.Error.
func TestFasthttp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failures := conntest.Check(fast, conntest.Stream()...)
		require.Subset(t, names(failures), []string{"PastReadDeadline", "PastWriteDeadline", "DeadlineIsNetError"})
		require.NotContains(t, names(failures), "DeliversInOrder")
		i := slices.Index(names(failures), "DeadlineSet")
		require.GreaterOrEqual(t, i, 0)
		require.ErrorContains(t, failures[i], "it hangs")
	})
}
