package socksrelay

import (
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/proxy"
	"golang.org/x/sys/unix"
)

// TestSendBuffersOnLoopbackDoNotGrow asks the kernel for the buffers of both connections of a session.
func TestSendBuffersOnLoopbackDoNotGrow(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer server.Close()
	r, err := New(Config{Dial: new(net.Dialer).DialContext})
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- r.Serve(l) }()
	d, err := proxy.SOCKS5("tcp", l.Addr().String(), nil, proxy.Direct)
	require.NoError(t, err)
	c, err := d.Dial("tcp", server.Addr().String())
	require.NoError(t, err)
	defer c.Close()

	r.mu.Lock()
	sessions := r.ordered()
	r.mu.Unlock()
	require.Len(t, sessions, 1)
	s := sessions[0]
	s.mu.Lock()
	conns := map[string]net.Conn{"client": s.client.(interface{ NetConn() net.Conn }).NetConn(), "destination": s.target}
	s.mu.Unlock()
	for name, conn := range conns {
		raw, err := conn.(*net.TCPConn).SyscallConn()
		require.NoError(t, err)
		require.NoError(t, raw.Control(func(fd uintptr) {
			size, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUF)
			assert.NoError(t, err)
			assert.Equal(t, 2*loopbackSendBuffer, size, "%s: the kernel doubles what it is told, for its own use", name)
		}))
	}
	require.NoError(t, r.Close())
	require.ErrorIs(t, <-served, net.ErrClosed)
}
