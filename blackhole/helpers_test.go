package blackhole_test

import (
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-5a7f77c4/deadair/blackhole"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pipe is a connection in memory; faults are at the dialling end.
func pipe(t testing.TB, faults ...*blackhole.Fault) (client, server net.Conn) {
	t.Helper()
	a, b := net.Pipe()
	c, err := blackhole.Client(a, faults...)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close(); b.Close() })
	return c, b
}

// loopback is a real TCP connection; faults are at the dialling end.
func loopback(t testing.TB, faults ...*blackhole.Fault) (client, server net.Conn) {
	t.Helper()
	a, b := tcpPair(t)
	c, err := blackhole.Client(a, faults...)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c, b
}

func tcpPair(t testing.TB) (dialled, accepted net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	dialled, err = net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	accepted, err = l.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { dialled.Close(); accepted.Close() })
	return dialled, accepted
}

// collect reads everything that arrives at c.
func collect(c net.Conn) <-chan string {
	all := make(chan string, 1)
	go func() {
		b, _ := io.ReadAll(c)
		all <- string(b)
	}()
	return all
}
