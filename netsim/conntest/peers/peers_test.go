// Package peers runs the conformance suite on connections that others publish,
// to show that it finds what is known to be wrong with them. It is a module of
// its own so that nobody else needs what it tests.
package peers

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
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
	require.Contains(t, names(conntest.Check(buffered, conntest.Stream()...)), "PastWriteDeadline")
}
