package netsim_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/netsim"
	"github.com/seed-5a7f77c4/deadair/netsim/dnsserver"
)

// dialer is what net.Dialer and netsim.Dialer have in common.
type dialer interface {
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
}

// knobs are the fields that both have and that the tests turn.
type knobs struct {
	Timeout   time.Duration
	Deadline  time.Time
	LocalAddr net.Addr
	Resolver  *net.Resolver
}

func (k knobs) real() dialer {
	return &net.Dialer{Timeout: k.Timeout, Deadline: k.Deadline, LocalAddr: k.LocalAddr, Resolver: k.Resolver}
}

func (k knobs) on(h *netsim.Host) dialer {
	return &netsim.Dialer{Host: h, Timeout: k.Timeout, Deadline: k.Deadline, LocalAddr: k.LocalAddr, Resolver: k.Resolver}
}

// ephemeral is a port of which no two sockets have the same.
var ephemeral = regexp.MustCompile(`:\d+->`)

// same says that two errors are the same to a program: their text, and what it
// can ask them.
func same(t *testing.T, want, got error) {
	t.Helper()
	require.Error(t, want)
	require.Error(t, got)
	require.Equal(t, ephemeral.ReplaceAllString(want.Error(), "->"), ephemeral.ReplaceAllString(got.Error(), "->"))
	for _, is := range []error{
		context.Canceled, context.DeadlineExceeded, syscall.ECONNREFUSED, syscall.EADDRINUSE, syscall.EADDRNOTAVAIL, syscall.ENETUNREACH,
	} {
		require.Equal(t, errors.Is(want, is), errors.Is(got, is), is)
	}
	var w, g *net.OpError
	require.ErrorAs(t, want, &w)
	require.ErrorAs(t, got, &g)
	require.Equal(t, fmt.Sprintf("%s %s %v %v %t %t", w.Op, w.Net, w.Source, w.Addr, w.Timeout(), w.Temporary()),
		fmt.Sprintf("%s %s %v %v %t %t", g.Op, g.Net, g.Source, g.Addr, g.Timeout(), g.Temporary()))
	var call, ours *os.SyscallError
	require.Equal(t, errors.As(want, &call), errors.As(got, &ours))
	require.Equal(t, call, ours)
}

// TestDialErrorsAreThoseOfNetDialer dials on this machine's loopback and on a
// simulated one.
func TestDialErrorsAreThoseOfNetDialer(t *testing.T) {
	taken, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	closed, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	nobody, somebody := closed.Addr().String(), taken.Addr().String()
	bound, err := net.ListenPacket("udp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer bound.Close()

	n := netsim.New()
	defer n.Close()
	h := n.Host("h")
	_, err = h.Listen("tcp4", somebody)
	require.NoError(t, err)
	_, err = h.ListenPacket("udp4", bound.LocalAddr().String())
	require.NoError(t, err)

	background := context.Background()
	canceled, cancel := context.WithCancel(background)
	cancel()
	late, cancel := context.WithDeadline(background, time.Now().Add(-time.Second))
	defer cancel()
	for name, c := range map[string]struct {
		knobs
		ctx              context.Context
		network, address string
	}{
		"closed port":              {knobs{}, background, "tcp", nobody},
		"closed port, tcp4":        {knobs{}, background, "tcp4", nobody},
		"from an address":          {knobs{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}}, background, "tcp", nobody},
		"cancelled before":         {knobs{}, canceled, "tcp", somebody},
		"context's deadline":       {knobs{}, late, "tcp", somebody},
		"deadline":                 {knobs{Deadline: time.Now().Add(-time.Second)}, background, "tcp", somebody},
		"negative time-out":        {knobs{Timeout: -1}, background, "tcp", somebody},
		"datagrams, cancelled":     {knobs{}, canceled, "udp", somebody},
		"unknown network":          {knobs{}, background, "tcp5", somebody},
		"no port":                  {knobs{}, background, "tcp", "127.0.0.1"},
		"no such port":             {knobs{}, background, "tcp", "127.0.0.1:no-such-port"},
		"port too high":            {knobs{}, background, "tcp", "127.0.0.1:65536"},
		"other family":             {knobs{}, background, "tcp6", somebody},
		"source of another kind":   {knobs{LocalAddr: &net.UDPAddr{}}, background, "tcp", somebody},
		"source of another family": {knobs{LocalAddr: &net.TCPAddr{IP: net.IPv6loopback}}, background, "tcp", somebody},
		"source is not ours":       {knobs{LocalAddr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)}}, background, "tcp", somebody},
		"source is taken":          {knobs{LocalAddr: taken.Addr()}, background, "tcp", nobody},
		"datagrams, not ours":      {knobs{LocalAddr: &net.UDPAddr{IP: net.IPv4(192, 0, 2, 1)}}, background, "udp", nobody},
		"datagrams, source taken":  {knobs{LocalAddr: bound.LocalAddr()}, background, "udp", nobody},
	} {
		t.Run(name, func(t *testing.T) {
			_, want := c.real().DialContext(c.ctx, c.network, c.address)
			_, got := c.on(h).DialContext(c.ctx, c.network, c.address)
			same(t, want, got)
		})
	}
}

// TestNamesThatDoNotResolve: net.Dialer with the same resolver, which gets no
// further than to ask it, says the same, as late.
func TestNamesThatDoNotResolve(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		app, dns := n.Host("app"), n.Host("dns")
		srv := dnsserver.New(dnsserver.Zone{"app.example.": dnsserver.Addr("192.0.2.1", "2001:db8::1")})
		srv.Start(packetConn(t, dns, ":53"), listen(t, dns, ":53"))
		defer srv.Close()
		r := dnsserver.Resolver(app.DialContext, dns.Addr().String())
		for _, c := range []struct {
			name  string
			fault *dnsserver.Fault
			knobs
			takes                        time.Duration
			notFound, timeout, temporary bool
		}{
			{"nobody.example.", nil, knobs{}, 20 * ms, true, false, false},
			{"app.example.", &dnsserver.ServFail, knobs{}, 40 * ms, false, false, true},
			{"app.example.", &dnsserver.Refused, knobs{}, 40 * ms, false, false, false},
			{"app.example.", &dnsserver.Empty, knobs{}, 20 * ms, true, false, false},
			{"app.example.", &dnsserver.Silent, knobs{}, 10 * time.Second, false, true, true},
			{"app.example.", &dnsserver.Silent, knobs{Timeout: time.Second}, time.Second, false, true, true},
		} {
			if c.fault != nil {
				srv.On("*", dnsserver.Any, *c.fault)
			}
			c.Resolver = r
			var want, got error
			within(t, c.takes, after(func() { _, want = c.real().DialContext(t.Context(), "tcp", c.name+":7") }))
			within(t, c.takes, after(func() { _, got = c.on(app).DialContext(t.Context(), "tcp", c.name+":7") }))
			same(t, want, got)
			var e *net.DNSError
			require.ErrorAs(t, got, &e)
			require.Equal(t, []bool{c.notFound, c.timeout, c.temporary}, []bool{e.IsNotFound, e.IsTimeout, e.IsTemporary}, c.name)
		}
		time.Sleep(10 * time.Second) // nobody waits for the last question any more
		require.Empty(t, app.Sockets(), "the questions' sockets are closed")
	}, tenms)
}

// TestNamesAsInEtcHosts: without a resolver, the names of hosts and aliases.
func TestNamesAsInEtcHosts(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a", netsim.DualStack()), n.Host("b", netsim.DualStack())
		n.Alias("Service.example", b)
		echo(t, b, ":7")
		for _, name := range []string{"b", "B", "b.", "service.example", "SERVICE.example."} {
			for network, is6 := range map[string]bool{"tcp": true, "tcp6": true, "tcp4": false} {
				c, err := a.Dial(network, name+":7")
				require.NoError(t, err, name)
				require.Equal(t, is6, netip.MustParseAddrPort(c.RemoteAddr().String()).Addr().Is6())
				c.Close()
			}
		}
		require.Same(t, b, n.Lookup("B."))
		d := netsim.Dialer{Host: a, LocalAddr: &net.TCPAddr{IP: a.Addrs()[0].AsSlice()}}
		c, err := d.Dial("tcp", "b:7")
		require.NoError(t, err)
		require.NotNil(t, c.RemoteAddr().(*net.TCPAddr).IP.To4(), "of the source's family")
	})
}

// fate is what a host does to a dial.
type fate int

const (
	answers fate = iota
	refuses
	silent
)

// TestSeveralAddresses: who wins, when, and which error it is when all fail: the
// first address's, unless the time ran out before the turn of another.
func TestSeveralAddresses(t *testing.T) {
	six, four := 6, 4
	for name, c := range map[string]struct {
		fates   []fate // of the IPv6 and the IPv4 addresses, in this order
		serial  bool   // FallbackDelay is negative
		timeout time.Duration
		wins    int // the family; 0: all fail
		takes   time.Duration
		err     error
	}{
		"IPv6":                           {[]fate{answers, answers}, false, 0, six, 20 * ms, nil},
		"IPv6 refuses, IPv4 at once":     {[]fate{refuses, answers}, false, 0, four, 40 * ms, nil},
		"IPv6 silent, IPv4 after 300 ms": {[]fate{silent, answers}, false, 0, four, 320 * ms, nil},
		"IPv6 silent, IPv4 refuses":      {[]fate{silent, refuses}, false, 10 * time.Second, 0, 10 * time.Second, os.ErrDeadlineExceeded},
		"both refuse":                    {[]fate{refuses, refuses}, false, 0, 0, 40 * ms, syscall.ECONNREFUSED},
		"both silent":                    {[]fate{silent, silent}, false, 10 * time.Second, 0, 10 * time.Second, os.ErrDeadlineExceeded},
		"both silent, no time-out":       {[]fate{silent, silent}, false, 0, 0, 127*time.Second + 300*ms, syscall.ETIMEDOUT},
		"one after the other":            {[]fate{silent, answers}, true, 10 * time.Second, four, 5*time.Second + 20*ms, nil},
		"one after the other, short":     {[]fate{silent, answers}, true, time.Second, 0, time.Second, os.ErrDeadlineExceeded},
		"at least 2 s each":              {[]fate{silent, answers}, true, 3 * time.Second, four, 2*time.Second + 20*ms, nil},
	} {
		t.Run(name, func(t *testing.T) {
			netsim.Run(t, func(t *testing.T, n *netsim.Network) {
				a := n.Host("a", netsim.DualStack())
				hosts := []*netsim.Host{n.Host("six", netsim.Addr("2001:db8::6")), n.Host("four", netsim.Addr("192.0.2.4"))}
				n.Alias("service", hosts...)
				for i, h := range hosts {
					switch c.fates[i] {
					case answers:
						listen(t, h, ":7")
					case silent:
						n.Link(a, h).Cut().MayMiss()
					}
				}
				d := &netsim.Dialer{Host: a, Timeout: c.timeout}
				if c.serial {
					d.FallbackDelay = -1
				}
				start := time.Now()
				conn, err := d.Dial("tcp", "service:7")
				within(t, c.takes, time.Since(start))
				if c.wins == 0 {
					require.ErrorIs(t, err, c.err)
					first := "[2001:db8::6]:7"
					if c.serial {
						first = "192.0.2.4:7" // which it had no time for
					}
					require.Equal(t, first, err.(*net.OpError).Addr.String())
				} else {
					require.NoError(t, err)
					require.Equal(t, c.wins == six, conn.RemoteAddr().(*net.TCPAddr).IP.To4() == nil)
					require.NoError(t, conn.Close())
				}
				time.Sleep(time.Second)
				for _, s := range n.Sockets() {
					require.NotContains(t, []string{"SYN-SENT", "SYN-RECV"}, s.State, "the loser is gone")
				}
			}, tenms)
		})
	}
}

// TestDatagramsToSeveralAddresses: the first that there is a way to.
func TestDatagramsToSeveralAddresses(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a := n.Host("a")
		n.Alias("service", n.Host("six", netsim.Addr("2001:db8::6")), n.Host("four", netsim.Addr("192.0.2.4")))
		c, err := (&netsim.Dialer{Host: a, LocalAddr: &net.UDPAddr{Port: 9}}).Dial("udp", "service:7")
		require.NoError(t, err)
		require.Equal(t, "192.0.2.4:7", c.RemoteAddr().String())
		_, err = a.Dial("udp6", "service:7")
		require.ErrorIs(t, err, syscall.ENETUNREACH)
	})
}

// TestCancelledDialLeavesNothing, in whichever millisecond the dial is: while the
// name is asked for, before the fallback, between SYN and SYN-ACK, after.
func TestCancelledDialLeavesNothing(t *testing.T) {
	for at := time.Duration(0); at < 420*ms; at += 7 * ms {
		t.Run(at.String(), func(t *testing.T) {
			netsim.Run(t, func(t *testing.T, n *netsim.Network) {
				app, dns := n.Host("app", netsim.DualStack()), n.Host("dns")
				six, four := n.Host("six", netsim.Addr("2001:db8::6")), n.Host("four", netsim.Addr("192.0.2.4"))
				srv := dnsserver.New(dnsserver.Zone{"app.example.": dnsserver.Addr("2001:db8::6", "192.0.2.4")})
				srv.Start(packetConn(t, dns, ":53"), nil)
				defer srv.Close()
				app.SetResolver(dnsserver.Resolver(app.DialContext, dns.Addr().String()))
				listen(t, six, ":7")
				l := listen(t, four, ":7")
				n.Path(six, app).Cut().MayMiss()
				n.Apply(netsim.Rule{From: four, Kind: netsim.SYNACK, Verdict: netsim.Verdict{Delay: 40 * ms}, MayMiss: true})
				ctx, cancel := context.WithCancel(t.Context())
				n.After(at, "cancel", cancel)
				c, err := app.DialContext(ctx, "tcp", "app.example.:7")
				// 20 ms for the name, 300 for IPv6, 60 for IPv4.
				if at > 380*ms {
					require.NoError(t, err)
					require.NoError(t, c.Close())
				} else {
					var e *net.DNSError // does not wrap what ended it
					require.True(t, errors.As(err, &e) || errors.Is(err, context.Canceled), err)
					require.Contains(t, err.Error(), "operation was canceled")
				}
				require.NoError(t, l.Close()) // takes what was established with it
				time.Sleep(4 * time.Minute)
				require.Empty(t, app.Sockets())
				require.Empty(t, four.Sockets())
				require.Len(t, six.Sockets(), 1, "the listener: its handshake has timed out")
			}, tenms)
		})
	}
}

// TestDialOfACrashedOrPausedHost.
func TestDialOfACrashedOrPausedHost(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b")
		echo(t, b, ":7")
		a.Pause()
		n.After(time.Minute, "resume", a.Resume)
		within(t, time.Minute+20*ms, after(func() {
			_, err := a.Dial("tcp", "b:7")
			require.NoError(t, err)
		}))
		n.After(5*ms, "crash", a.Crash)
		_, err := a.Dial("tcp", "b:7")
		require.ErrorIs(t, err, net.ErrClosed)
		for _, network := range []string{"tcp", "udp"} {
			_, err = a.Dial(network, "b:7")
			require.ErrorIs(t, err, syscall.ENETDOWN)
		}
		_, err = a.Listen("tcp", ":7")
		require.ErrorIs(t, err, syscall.ENETDOWN)
		a.Restart()
		_, err = a.Dial("tcp", "b:7")
		require.NoError(t, err)
	}, tenms)
}
