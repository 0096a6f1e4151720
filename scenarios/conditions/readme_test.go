package conditions_test

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/proxy"

	"github.com/seed-5a7f77c4/deadair/blackhole"
	"github.com/seed-5a7f77c4/deadair/netsim"
	"github.com/seed-5a7f77c4/deadair/socksrelay"
)

// The lines of the README on a proxy that passes the handshakes and then goes silent.
func TestReadmeRelay(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		app, relayHost, server := n.Host("app"), n.Host("proxy"), n.Host("server")
		echo(t, listen(t, server, ":7000"))

		relay, err := socksrelay.New(socksrelay.Config{Dial: relayHost.DialContext})
		require.NoError(t, err)
		defer relay.Close()
		entrance, err := relayHost.Listen("tcp", ":1080")
		require.NoError(t, err)
		go relay.Serve(entrance)
		require.NoError(t, relay.Missed())
		hole := socksrelay.BlackHole(blackhole.AfterBytes(10))
		require.NoError(t, relay.Add(hole))
		require.ErrorContains(t, relay.Missed(), "never took effect, on 0 connections so far")

		dialer, err := proxy.SOCKS5("tcp", "proxy:1080", nil, app)
		require.NoError(t, err)
		c, err := dialer.Dial("tcp", "server:7000")
		require.NoError(t, err, "the handshake passes")
		defer c.Close()
		c.SetDeadline(time.Now().Add(time.Hour))
		c.Write([]byte("hello"))
		b := make([]byte, 5)
		_, err = io.ReadFull(c, b)
		require.NoError(t, err, "ten bytes pass, there and back")
		_, err = c.Write([]byte("hello"))
		require.NoError(t, err)
		_, err = c.Read(b)
		require.ErrorContains(t, err, "i/o timeout")
		require.NoError(t, relay.Missed())
	})
}
