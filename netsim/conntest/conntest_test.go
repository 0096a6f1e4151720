package conntest_test

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/netsim"
	"github.com/seed-5a7f77c4/deadair/netsim/conntest"
)

type stack struct {
	dial         func(network, address string) (net.Conn, error)
	listen       func(network, address string) (net.Listener, error)
	listenPacket func(network, address string) (net.PacketConn, error)
}

var loopback = stack{net.Dial, net.Listen, net.ListenPacket}

func simulated(n *netsim.Network) stack {
	h := n.Host("host")
	return stack{h.Dial, h.Listen, h.ListenPacket}
}

// everything is the whole suite on one stack, over its loopback.
func (s stack) everything(t *testing.T) {
	pair := func() (a, b net.Conn, stop func(), err error) {
		l, err := s.listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, nil, nil, err
		}
		defer l.Close()
		if a, err = s.dial("tcp", l.Addr().String()); err != nil {
			return nil, nil, nil, err
		}
		if b, err = l.Accept(); err != nil {
			return nil, nil, nil, err
		}
		return a, b, func() { a.Close(); b.Close() }, nil
	}
	conntest.Run(t, pair, append(conntest.Stream(), conntest.HalfClose()...)...)
	for _, err := range conntest.CheckListener(func() (net.Listener, func() (net.Conn, error), error) {
		l, err := s.listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, nil, err
		}
		return l, func() (net.Conn, error) { return s.dial("tcp", l.Addr().String()) }, nil
	}, conntest.Listener()...) {
		t.Error(err)
	}
	for _, err := range conntest.CheckPacket(func() (a, b net.PacketConn, err error) {
		if a, err = s.listenPacket("udp", "127.0.0.1:0"); err != nil {
			return nil, nil, err
		}
		b, err = s.listenPacket("udp", "127.0.0.1:0")
		return a, b, err
	}, conntest.Packet()...) {
		t.Error(err)
	}
}

func TestSimulatedInABubble(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) { simulated(n).everything(t) })
}

func TestSimulatedInRealTime(t *testing.T) {
	n := netsim.New()
	defer func() { require.NoError(t, n.Close()) }()
	simulated(n).everything(t)
}

func TestLoopback(t *testing.T) { loopback.everything(t) }

// TestPipe: net.Pipe keeps all but what it does not claim to have.
func TestPipe(t *testing.T) {
	pipe := func() (a, b net.Conn, stop func(), err error) {
		a, b = net.Pipe()
		return a, b, func() { a.Close(); b.Close() }, nil
	}
	conntest.Run(t, pipe, conntest.Stream()...)
	failures := conntest.Check(pipe, conntest.HalfClose()...)
	require.Len(t, failures, 3)
	require.ErrorContains(t, failures[0], "CloseWrite: *net.pipe has no CloseWrite and CloseRead")
}
