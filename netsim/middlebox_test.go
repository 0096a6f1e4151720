package netsim_test

import (
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/netsim"
)

func TestNATForgetsSilently(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b")
		f := n.Link(a, b).ForgetIdle(5*time.Minute, netsim.Silently)
		client, server := pair(t, a, b)
		client.SetKeepAlive(false)
		server.SetKeepAlive(false)
		time.Sleep(4 * time.Minute)
		write(t, server, "x")
		require.Equal(t, "x", readN(t, client, 1), "known")
		time.Sleep(6 * time.Minute)
		write(t, server, "y")
		client.SetReadDeadline(time.Now().Add(time.Hour))
		require.True(t, readError(t, client).(net.Error).Timeout(), "the reader stays blocked")
		require.ErrorIs(t, readError(t, server), syscall.ETIMEDOUT)
		require.Positive(t, f.Hits())
		_, err := a.Dial("tcp", "b:1")
		require.ErrorIs(t, err, syscall.ECONNREFUSED, "new flows pass")
		require.Panics(t, func() { n.Link(a, b).ForgetIdle(time.Minute, netsim.Silently) })
		f.Undo()
		n.Link(a, b).ForgetIdle(time.Minute, netsim.Silently).MayMiss()
	})
}

func TestKeepAliveKeepsAFlowKnown(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b")
		n.Link(a, b).ForgetIdle(5*time.Minute, netsim.Silently).MayMiss()
		client, server := pair(t, a, b)
		time.Sleep(400 * time.Second)
		write(t, server, "answer")
		require.Equal(t, "answer", readN(t, client, 6))
	})
}

func TestFirewallForgetsWithReset(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b")
		n.Link(a, b).ForgetIdle(5*time.Minute, netsim.WithReset)
		client, server := pair(t, a, b)
		client.SetKeepAlive(false)
		server.SetKeepAlive(false)
		time.Sleep(6 * time.Minute)
		write(t, client, "x")
		d := after(func() { require.ErrorIs(t, readError(t, client), syscall.ECONNRESET) })
		within(t, 20*ms, d)
		server.SetReadDeadline(time.Now().Add(time.Minute))
		require.True(t, readError(t, server).(net.Error).Timeout(), "the other end knows nothing")
	}, tenms)
}

func TestNATRebinds(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		phone, server := n.Host("phone"), n.Host("server")
		f := n.Link(phone, server).ForgetIdle(30*time.Second, netsim.Rebind)
		l, err := server.ListenPacket("udp", ":9")
		require.NoError(t, err)
		c, err := phone.Dial("udp", "server:9")
		require.NoError(t, err)
		say := func(text string) net.Addr {
			write(t, c, text)
			b := make([]byte, 100)
			k, from, err := l.ReadFrom(b)
			require.NoError(t, err)
			require.Equal(t, text, string(b[:k]))
			return from
		}
		hear := func(to net.Addr) error {
			_, err := l.WriteTo([]byte("pong"), to)
			require.NoError(t, err)
			c.SetReadDeadline(time.Now().Add(time.Second))
			_, err = c.Read(make([]byte, 10))
			return err
		}
		first := say("one")
		require.NoError(t, hear(first))
		require.Equal(t, first.String(), say("two").String())
		time.Sleep(40 * time.Second)
		require.Error(t, hear(first), "forgotten: nothing gets in")
		second := say("three")
		require.NotEqual(t, first.String(), second.String())
		require.NoError(t, hear(second))
		require.Error(t, hear(first), "the old port is nobody's")
		time.Sleep(40 * time.Second)
		third := say("four")
		require.NotEqual(t, second.String(), third.String())
		require.NoError(t, hear(third))
		require.Error(t, hear(second))
		require.Equal(t, 5, f.Hits())
		// An ICMP error finds its way back in.
		require.NoError(t, l.Close())
		c.SetReadDeadline(time.Now().Add(time.Second))
		write(t, c, "five")
		_, err = c.Read(make([]byte, 10))
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
	}, tenms)
}
