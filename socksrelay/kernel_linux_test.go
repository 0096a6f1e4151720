package socksrelay_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/proxy"

	"github.com/seed-5a7f77c4/deadair/blackhole"
	"github.com/seed-5a7f77c4/deadair/socksrelay"
)

// readSoFar is the number of bytes that this process has read with read calls; what splice moves does not count.
func readSoFar(t *testing.T) (n int64) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/io")
	require.NoError(t, err)
	_, err = fmt.Sscanf(string(text), "rchar: %d", &n)
	require.NoError(t, err)
	return n
}

// TestDataStaysInTheKernelWhileNoFaultActs sends data up and down through faults that are switched off, and counts what
// the process reads: the receiver's share, and nothing for the relay. Once a fault acts the relay reads it, too.
func TestDataStaysInTheKernelWhileNoFaultActs(t *testing.T) {
	const size = 8 << 20
	var off, on blackhole.Switch
	faults := []*socksrelay.Fault{
		{Name: "hole", Phase: socksrelay.Data, Do: blackhole.Swallow(), Switch: &off},
		{Name: "late", Phase: socksrelay.Data, When: blackhole.AfterBytes(1 << 40), Do: blackhole.Stall()},
		{Name: "wrong", Phase: socksrelay.Data, Do: blackhole.Corrupt(1, 1<<10), Switch: &on},
	}
	relay, err := socksrelay.New(socksrelay.Config{Dial: new(net.Dialer).DialContext, Faults: faults})
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	relaying := make(chan error, 1)
	go func() { relaying <- relay.Serve(l) }()
	server, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	d, err := proxy.SOCKS5("tcp", l.Addr().String(), nil, proxy.Direct)
	require.NoError(t, err)
	near, err := d.Dial("tcp", server.Addr().String())
	require.NoError(t, err)
	far, err := server.Accept()
	require.NoError(t, err)

	move := func(from, to net.Conn) int64 {
		before := readSoFar(t)
		var sending sync.WaitGroup
		sending.Go(func() {
			_, err := from.Write(make([]byte, size))
			assert.NoError(t, err)
		})
		_, err := io.ReadFull(to, make([]byte, size))
		require.NoError(t, err)
		sending.Wait()
		return readSoFar(t) - before
	}
	assert.InDelta(t, size, move(near, far), size/10, "up: the receiver alone reads")
	assert.InDelta(t, size, move(far, near), size/10, "down: the receiver alone reads")
	on.On()
	assert.InDelta(t, 2*size, move(near, far), size/10, "with a fault the relay reads, too")
	on.Off()
	assert.InDelta(t, size, move(near, far), size/10, "and no longer when it has been switched off")

	near.Close()
	far.Close()
	require.NoError(t, relay.Close())
	require.ErrorIs(t, <-relaying, net.ErrClosed)
	server.Close()
}
