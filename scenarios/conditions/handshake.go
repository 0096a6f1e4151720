package conditions

import (
	"math"
	"net"
	"sync"
	"time"

	"github.com/seed-5a7f77c4/deadair/netsim"
)

// SYNsLost makes new connections to a host vanish, while those that exist go on.
// Report: cockroachdb/cockroach#84289.
func SYNsLost(n *netsim.Network, to *netsim.Host) *netsim.Fault {
	return n.Apply(netsim.Rule{Name: "SYNs lost", To: to, Kind: netsim.SYN, Verdict: drop})
}

// HelloThenSilence makes a host say the first thing of a handshake with another
// and nothing after it: a segment with data, or a datagram, passes, and the next
// vanish. Arm it before the host connects. Report: pion/dtls#618 (a second peer
// comes 1 s later and must not wait for the first).
func HelloThenSilence(n *netsim.Network, peer, to *netsim.Host) *netsim.Fault {
	return n.Apply(netsim.Rule{
		Name: "hello, then silence", From: peer, To: to, Kind: netsim.Data | netsim.Datagram | netsim.FIN | netsim.RST,
		First: 2, Last: math.MaxInt, Verdict: drop,
	})
}

// IPv6Lost makes everything that is sent to a host over IPv6 vanish. Report:
// golang/go#22225 (the dial goes on over IPv4 after the fallback delay).
func IPv6Lost(n *netsim.Network, to *netsim.Host) *netsim.Fault {
	return n.Apply(netsim.Rule{
		Name: "IPv6 lost", To: to, Verdict: drop,
		Match: func(p netsim.Packet) bool { return p.Dst.Addr().Is6() },
	})
}

// RestartStorm resets every connection between a server and the clients now, and
// refuses new ones for d. Report: gravitational/teleport#6889 (1000 clients,
// 10 s).
func RestartStorm(n *netsim.Network, server *netsim.Host, d time.Duration, clients ...*netsim.Host) *netsim.Fault {
	refused := n.Apply(netsim.Rule{
		Name: "refused", To: server, Kind: netsim.SYN,
		Verdict: netsim.Verdict{Action: netsim.Reject},
	})
	for _, c := range clients {
		n.Link(c, server).Reset().MayMiss()
	}
	n.After(d, "back", refused.Undo)
	return refused
}

// FewPorts gives every host k local ports, so that short connections use them up
// while the ports wait in TIME_WAIT for 60 s. It panics if k < 1. Report:
// golang/go#16012 (100 ports).
func FewPorts(k int) netsim.Option {
	mustBePositive("FewPorts", "k", k)
	return netsim.EphemeralPorts(40000, uint16(40000+k-1))
}

// StalledAcceptor makes a listener accept nothing for d; connections wait in its
// backlog, and SYNs beyond that are dropped. Report: dragonflydb/dragonfly#1643
// (backlog 128, 2 s).
func StalledAcceptor(l net.Listener, d time.Duration) net.Listener {
	return &stalledListener{Listener: l, until: time.Now().Add(d), closed: make(chan struct{})}
}

// stalledListener waits before it accepts, unless it is closed meanwhile.
type stalledListener struct {
	net.Listener
	until     time.Time
	closeOnce sync.Once
	closed    chan struct{}
}

func (l *stalledListener) Accept() (net.Conn, error) {
	select {
	case <-time.After(time.Until(l.until)):
	case <-l.closed:
	}
	return l.Listener.Accept()
}

func (l *stalledListener) Close() error {
	l.closeOnce.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// SlowHello makes the connections of a listener send nothing for d after they
// first have something to say: TCP connects at once, the ServerHello is late.
// Report: golang/go#44267 (12 s, which is too late for net/http's 10 s, and
// 9.9 s).
func SlowHello(l net.Listener, d time.Duration) net.Listener {
	return slowHello{Listener: l, d: d}
}

type slowHello struct {
	net.Listener
	d time.Duration
}

func (l slowHello) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &lateConn{Conn: c, d: l.d, closed: make(chan struct{})}, nil
}

// lateConn waits before its first write, unless it is closed meanwhile.
type lateConn struct {
	net.Conn
	d         time.Duration
	spoken    bool
	closeOnce sync.Once
	closed    chan struct{}
}

func (c *lateConn) Write(b []byte) (int, error) {
	if !c.spoken {
		c.spoken = true
		select {
		case <-time.After(c.d):
		case <-c.closed:
			return 0, net.ErrClosed
		}
	}
	return c.Conn.Write(b)
}

func (c *lateConn) Close() error {
	c.closeOnce.Do(func() { close(c.closed) })
	return c.Conn.Close()
}
