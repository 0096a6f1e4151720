package netsim_test

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/netsim"
)

// house is a phone and a machine in one home, each in a tailnet too, and a
// server on the internet.
type house struct {
	phone, machine, web *netsim.Host
	wifi, cell, tail    *netsim.Interface
}

const (
	phoneLAN, machineLAN   = "192.168.1.23", "192.168.1.2"
	phoneTail, machineTail = "100.64.0.2", "100.64.0.3"
)

func newHouse(t *testing.T, n *netsim.Network, opts ...netsim.InterfaceOption) *house {
	h := &house{phone: n.Host("phone"), machine: n.Host("machine"), web: n.Host("web")}
	h.cell = h.phone.Interface("cell", netsim.Cellular, opts...)
	h.wifi = h.phone.Interface("wifi", netsim.Wireless, append(opts, netsim.Zone("home"), netsim.Addresses(phoneLAN))...)
	h.tail = h.phone.Interface("tail", netsim.Tailnet, append(opts, netsim.Zone("tailnet"), netsim.Addresses(phoneTail), netsim.Isolated())...)
	h.machine.Interface("lan", netsim.Wired, netsim.Zone("home"), netsim.Addresses(machineLAN))
	h.machine.Interface("tail", netsim.Tailnet, netsim.Zone("tailnet"), netsim.Addresses(machineTail), netsim.Isolated())
	echo(t, h.machine, ":7")
	echo(t, h.web, ":7")
	return h
}

// dial dials with a second's patience.
func dial(h *netsim.Host, address string) (net.Conn, error) {
	return (&netsim.Dialer{Host: h, Timeout: time.Second}).Dial("tcp", net.JoinHostPort(address, "7"))
}

// from is the address that a dial leaves from.
func from(t *testing.T, h *netsim.Host, address string) string {
	t.Helper()
	c, err := dial(h, address)
	require.NoError(t, err)
	defer c.Close()
	return netip.MustParseAddrPort(c.LocalAddr().String()).Addr().String()
}

// says sends s over an echo and reports whether it came back within a second.
func says(c net.Conn, s string) error {
	c.SetReadDeadline(time.Now().Add(time.Second))
	if _, err := c.Write([]byte(s)); err != nil {
		return err
	}
	_, err := c.Read(make([]byte, len(s)))
	return err
}

// lost are the packets of one host that vanished for a reason.
func lost(n *netsim.Network, from, why string) int {
	return n.Trace().Count(func(e netsim.Event) bool { return e.Fate == netsim.Dropped && e.From == from && e.Why == why })
}

func TestPrivateAddressIsReachableOnlyInItsZone(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		h := newHouse(t, n)
		neighbour := n.Host("neighbour")
		neighbour.Interface("lan", netsim.Wired, netsim.Zone("next door"), netsim.Addresses(machineLAN)) // the same address
		echo(t, neighbour, ":7")
		visitor := n.Host("visitor", netsim.InZone("next door"), netsim.Addr("192.168.1.9"))
		for _, c := range []struct {
			from    *netsim.Host
			address string
			to      string // whose it is; empty: nobody's
		}{
			{h.phone, machineLAN, "machine"},
			{h.phone, machineTail, "machine"},
			{h.phone, h.web.Addr().String(), "web"},
			{visitor, machineLAN, "neighbour"},
			{visitor, phoneLAN, ""},
			{h.web, machineLAN, ""},
			{h.web, machineTail, ""},
			{visitor, machineTail, ""},
		} {
			t.Log(c.from, c.address)
			conn, err := dial(c.from, c.address)
			if c.to == "" {
				require.ErrorIs(t, err, os.ErrDeadlineExceeded, "silence: nobody knows the way")
				e, _ := n.Trace().First(func(e netsim.Event) bool { return e.From == c.from.Name() && e.To == c.address })
				require.Equal(t, "nobody there", e.Why)
				continue
			}
			require.NoError(t, err)
			e, ok := n.Trace().First(func(e netsim.Event) bool {
				return e.Kind == netsim.SYN && e.From == c.from.Name() && e.Dst.String() == conn.RemoteAddr().String()
			})
			require.True(t, ok)
			require.Equal(t, c.to, e.To)
		}
		// A datagram from a private address can be answered, as through a NAT.
		server, client := packetConn(t, h.web, ":9"), packetConn(t, h.machine, ":0")
		sendNumbers(t, client, udpAddr(h.web, 9), 1)
		_, back, err := server.ReadFrom(make([]byte, 9))
		require.NoError(t, err)
		require.Equal(t, machineLAN, back.(*net.UDPAddr).IP.String())
		_, err = server.WriteTo([]byte("answer"), back)
		require.NoError(t, err)
		require.Equal(t, []string{"answer"}, drain(t, client, time.Second))
		_, err = dial(h.web, machineLAN)
		require.ErrorIs(t, err, os.ErrDeadlineExceeded, "which opens nothing to streams")
		stranger := packetConn(t, neighbour, ":0")
		stranger.WriteTo([]byte("x"), &net.UDPAddr{IP: net.ParseIP(phoneLAN), Port: 9})
		time.Sleep(ms)
		require.Equal(t, 1, lost(n, "neighbour", "nobody there"), "it answers nobody")
	})
}

func TestIsolatedInterface(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b, web := n.Host("a"), n.Host("b"), n.Host("web")
		vpn := a.Interface("vpn", netsim.Tailnet, netsim.Zone("vpn"), netsim.Isolated())
		b.Interface("vpn", netsim.Tailnet, netsim.Zone("vpn"), netsim.Isolated())
		for _, h := range []*netsim.Host{a, b, web} {
			echo(t, h, ":7")
		}
		_, err := dial(a, "b")
		require.NoError(t, err, "in the zone, by an address that is not private")
		_, err = dial(a, "web")
		require.ErrorIs(t, err, syscall.ENETUNREACH)
		_, err = dial(web, "a")
		require.ErrorIs(t, err, os.ErrDeadlineExceeded, "nor from outside")
		require.False(t, a.Connectivity().Satisfied)
		require.True(t, vpn.IsUp())
	})
}

func TestInterfaceTakesTheDefaultsPlace(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a := n.Host("a", netsim.Addr("192.0.2.1"))
		wifi := a.Interface("eth0", netsim.Wireless, netsim.Addresses("192.0.2.1", "2001:db8::1"), netsim.StartsDown())
		require.Equal(t, "eth0 wifi false [192.0.2.1 2001:db8::1]", fmt.Sprint(wifi.Name(), " ", wifi.Medium(), " ", wifi.IsUp(), " ", wifi.Addrs()))
		wired := a.Interface("wired", netsim.Wired)
		require.True(t, wired.IsUp())
		require.True(t, netip.MustParsePrefix("198.18.0.0/15").Contains(wired.Addrs()[0]))
		require.Equal(t, append(wired.Addrs(), wifi.Addrs()...), a.Addrs(), "in the order of the media")
		require.Equal(t, "wired wifi cellular tailnet unknown", fmt.Sprint(netsim.Wired, " ", netsim.Wireless, " ", netsim.Cellular, " ", netsim.Tailnet, " ", netsim.Medium(9)))

		b := n.Host("b")
		before := b.Addrs()
		for _, c := range []struct {
			f    func()
			want string
		}{
			{func() { a.Interface("eth0", netsim.Wired) }, `Host.Interface("eth0") of a: there is one of that name`},
			{func() { b.Interface("wifi", netsim.Wireless, netsim.Addresses("192.0.2.7", "192.0.2.1")) }, "192.0.2.1 of b is taken by a"},
			{func() { wifi.SetAddresses("192.0.2.8", "192.0.2.8") }, "192.0.2.8 of a is there twice"},
			{func() { wifi.SetAddresses("192.0.2.8", b.Addr().String()) }, "is taken by b"},
			{func() { wifi.Move("home", b.Addr().String()) }, "is taken by b"},
			{func() { wifi.Move("home", "localhost") }, `Move("localhost")`},
			{func() { wifi.SetAddresses("0.0.0.0") }, `SetAddresses("0.0.0.0")`},
			{func() { n.Dark("192.0.2.1") }, `Network.Dark("192.0.2.1"): it is an address of a`},
		} {
			require.Contains(t, panicText(t, c.f), c.want)
		}
		require.Equal(t, before, b.Addrs(), "a mistake changes nothing")
		require.Len(t, wifi.Addrs(), 2)
		n.Host("c", netsim.Addr("192.0.2.7", "192.0.2.8"))
	})
}

func TestRouteAndSource(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		h := newHouse(t, n)
		cell, web := h.cell.Addrs()[0].String(), h.web.Addr().String()
		require.Equal(t, phoneLAN, from(t, h.phone, web), "wifi before cellular")
		require.Equal(t, phoneLAN, from(t, h.phone, machineLAN))
		require.Equal(t, phoneTail, from(t, h.phone, machineTail), "only the tailnet leads there")
		h.wifi.Down()
		require.Equal(t, cell, from(t, h.phone, web))
		require.Equal(t, phoneTail, from(t, h.phone, machineTail))
		h.cell.Down()
		_, err := dial(h.phone, web)
		require.ErrorIs(t, err, syscall.ENETUNREACH)
		h.wifi.Up()
		h.cell.Up()
		wired := h.phone.Interface("dock", netsim.Wired, netsim.Addresses("2001:db8::9", "192.0.2.9", "192.0.2.10"))
		require.Equal(t, "192.0.2.9", from(t, h.phone, web), "the first address of the family")
		require.Equal(t, phoneLAN, from(t, h.phone, machineLAN), "the wire does not lead home")
		wired.Down()

		// Two ways to one peer: the dialer may choose.
		for _, local := range []string{phoneLAN, cell} {
			d := &netsim.Dialer{Host: h.phone, LocalAddr: &net.TCPAddr{IP: net.ParseIP(local)}}
			c, err := d.Dial("tcp", web+":7")
			require.NoError(t, err)
			require.NoError(t, says(c, "x"))
			e, _ := n.Trace().First(func(e netsim.Event) bool { return e.Flow == c.(*netsim.Conn).Flow() && e.Kind == netsim.Data })
			require.Equal(t, local, e.Src.Addr().String())
		}
		for local, want := range map[string]error{
			"192.0.2.9": syscall.ENETUNREACH,   // of an interface that is down
			"192.0.2.1": syscall.EADDRNOTAVAIL, // nobody's
			phoneTail:   syscall.ENETUNREACH,   // does not lead there
		} {
			for network, a := range map[string]net.Addr{"tcp": &net.TCPAddr{IP: net.ParseIP(local)}, "udp": &net.UDPAddr{IP: net.ParseIP(local)}} {
				_, err := (&netsim.Dialer{Host: h.phone, LocalAddr: a}).Dial(network, web+":7")
				require.ErrorIs(t, err, want, local+" "+network)
			}
		}
	})
}

// TestHostTalksToItself: no interface needs to be up for that.
func TestHostTalksToItself(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		h := newHouse(t, n)
		echo(t, h.phone, ":7")
		h.wifi.Down()
		h.cell.Down()
		h.tail.Down()
		for _, address := range []string{"localhost", "127.0.0.1", "::1", "0.0.0.0", "::", "", phoneLAN, "phone"} {
			c, err := dial(h.phone, address)
			require.NoError(t, err, address)
			require.NoError(t, says(c, "me"), address)
			c.Close()
		}
		for network, want := range map[string]string{"tcp6": "::1", "tcp4": "127.0.0.1", "tcp": "127.0.0.1"} {
			c, err := h.phone.Dial(network, "localhost:7")
			require.NoError(t, err, network)
			require.Equal(t, want, c.RemoteAddr().(*net.TCPAddr).IP.String())
			c.Close()
		}
		c, err := dial(h.phone, phoneLAN)
		require.NoError(t, err)
		h.wifi.SetAddresses("192.168.1.99")
		require.ErrorIs(t, says(c, "me"), os.ErrDeadlineExceeded, "not by an address that is gone")
	})
}

// TestDownAndUp: nothing passes meanwhile; what was lost comes again.
func TestDownAndUp(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		h := newHouse(t, n)
		c, err := dial(h.phone, machineLAN)
		require.NoError(t, err)
		server := packetConn(t, h.phone, ":9")
		out := packetConn(t, h.machine, ":0")
		out.WriteTo([]byte("on its way"), &net.UDPAddr{IP: net.ParseIP(phoneLAN), Port: 9})
		time.Sleep(5 * ms)
		h.wifi.Down()
		h.wifi.Down() // is no news
		require.False(t, h.wifi.IsUp())
		require.Empty(t, drain(t, server, time.Second))
		require.Equal(t, 1, lost(n, "machine", "interface down"))
		require.ErrorIs(t, says(c, "x"), os.ErrDeadlineExceeded)
		require.Equal(t, 3, lost(n, "phone", "interface down"), "the segment and its retransmissions")
		h.wifi.Up()
		c.SetReadDeadline(time.Time{})
		require.Equal(t, "x", readN(t, c, 1))
		var notes []string
		for _, e := range n.Trace().Find(func(e netsim.Event) bool { return e.Fate == netsim.Note }) {
			notes = append(notes, e.Why)
		}
		require.Equal(t, []string{"phone/wifi down", "phone/wifi up"}, notes)
	}, tenms)
}

// TestSocketsOfAGoneAddress: what each kind of socket does in each mode.
func TestSocketsOfAGoneAddress(t *testing.T) {
	errnos := map[netsim.GoneMode]syscall.Errno{netsim.Abort: syscall.ECONNABORTED, netsim.NetDown: syscall.ENETDOWN}
	events := map[string]func(*house){
		"down":   func(h *house) { h.wifi.Down() },
		"change": func(h *house) { h.wifi.SetAddresses("192.168.1.24") },
		"none":   func(h *house) { h.wifi.SetAddresses() },
		"move":   func(h *house) { h.wifi.Move("office", phoneLAN) },
	}
	for mode, name := range map[netsim.GoneMode]string{netsim.Vanish: "vanish", netsim.Abort: "abort", netsim.NetDown: "netdown"} {
		for event, happen := range events {
			t.Run(name+" "+event, func(t *testing.T) {
				netsim.Run(t, func(t *testing.T, n *netsim.Network) {
					h := newHouse(t, n, netsim.WhenGone(mode))
					n.Apply(netsim.Rule{To: h.machine, DstPort: 8, Verdict: drop})
					other, err := dial(h.phone, machineTail)
					require.NoError(t, err)
					stream, err := dial(h.phone, machineLAN)
					require.NoError(t, err)
					udp, err := h.phone.Dial("udp", machineLAN+":9")
					require.NoError(t, err)
					bound := packetConn(t, h.phone, phoneLAN+":10")
					unbound := packetConn(t, h.phone, ":11")
					l := listen(t, h.phone, phoneLAN+":12")
					errs := map[string]chan error{}
					call := func(what string, f func() error) {
						c := make(chan error, 1)
						errs[what] = c
						go func() { c <- f() }()
					}
					call("read", func() error { _, err := stream.Read(make([]byte, 1)); return err })
					call("dial", func() error { _, err := h.phone.Dial("tcp", machineLAN+":8"); return err })
					call("udp read", func() error { _, err := udp.Read(make([]byte, 1)); return err })
					call("bound read", func() error { _, _, err := bound.ReadFrom(make([]byte, 1)); return err })
					time.Sleep(100 * ms)
					call("dial of this instant", func() error { _, err := h.phone.Dial("tcp", machineLAN+":8"); return err })
					synctest.Wait()
					happen(h)
					time.Sleep(ms)
					unanswered := func(c <-chan error) bool { return len(c) == 0 }
					errno, fails := errnos[mode]
					for what, c := range errs {
						if fails {
							require.False(t, unanswered(c), what)
							require.ErrorIs(t, <-c, errno, what)
						} else {
							require.True(t, unanswered(c), what)
						}
					}
					if fails {
						_, err = stream.Write([]byte("x"))
						require.ErrorIs(t, err, syscall.EPIPE, "the error is given once, as on Linux")
						require.Zero(t, n.Trace().Count(func(e netsim.Event) bool { return e.Kind&(netsim.RST|netsim.FIN) != 0 }), "the peer is told nothing")
					} else {
						require.ErrorIs(t, says(stream, "x"), os.ErrDeadlineExceeded)
						require.NotZero(t, lost(n, "phone", "interface down"))
						require.Zero(t, n.Trace().Count(func(e netsim.Event) bool { return e.Kind == netsim.Data && e.Fate == netsim.Delivered }))
					}
					require.NoError(t, says(other, "x"), "sockets of other interfaces go on")
					_, err = unbound.WriteTo([]byte("x"), udpAddr(h.web, 9))
					require.NoError(t, err)
					require.NoError(t, l.SetDeadline(time.Now().Add(ms)))
					_, err = l.Accept()
					require.ErrorIs(t, err, os.ErrDeadlineExceeded, "a listener stays")
					require.NoError(t, n.Close())
				})
			})
		}
	}
}

func TestStreamGoesOnWhenItsAddressComesBack(t *testing.T) {
	for name, c := range map[string]struct{ away, back func(*house) }{
		"change": {func(h *house) { h.wifi.SetAddresses("192.168.1.24") }, func(h *house) { h.wifi.SetAddresses("192.168.1.24", phoneLAN) }},
		"move":   {func(h *house) { h.wifi.Move("office", phoneLAN) }, func(h *house) { h.wifi.Move("home", phoneLAN) }},
		"twice": {func(h *house) { h.wifi.Move("office", "10.0.0.1"); h.wifi.Move("train", phoneLAN) }, func(h *house) {
			h.wifi.Move("office", phoneLAN)
			h.wifi.Move("home", phoneLAN)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			netsim.Run(t, func(t *testing.T, n *netsim.Network) {
				h := newHouse(t, n)
				stream, err := dial(h.phone, machineLAN)
				require.NoError(t, err)
				c.away(h)
				write(t, stream, "hello")
				time.Sleep(10 * time.Second)
				require.Zero(t, n.Trace().Count(func(e netsim.Event) bool { return e.Kind == netsim.Data && e.Fate == netsim.Delivered }))
				c.back(h)
				require.Equal(t, "hello", readN(t, stream, 5))
			})
		})
	}
}

// TestMovedToAnotherZone: the same private address is another one there.
func TestMovedToAnotherZone(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		h := newHouse(t, n)
		printer := n.Host("printer", netsim.InZone("office"), netsim.Addr(machineLAN))
		echo(t, printer, ":7")
		public, err := dial(h.web, h.cell.Addrs()[0].String())
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
		require.Nil(t, public)
		h.wifi.Move("office", phoneLAN)
		c, err := dial(h.phone, machineLAN)
		require.NoError(t, err)
		require.NoError(t, says(c, "x"))
		e, _ := n.Trace().First(func(e netsim.Event) bool { return e.Kind == netsim.SYN && e.Flow == c.(*netsim.Conn).Flow() })
		require.Equal(t, "printer", e.To)
		_, err = dial(h.machine, phoneLAN)
		require.ErrorIs(t, err, os.ErrDeadlineExceeded, "gone from home")
		_, ok := n.Trace().First(func(e netsim.Event) bool { return e.Why == `phone/wifi has [192.168.1.23] in zone "office"` })
		require.True(t, ok)

		// A public address goes along, and its streams with it.
		h.cell.SetAddresses("192.0.2.5")
		echo(t, h.phone, ":7")
		d, err := dial(h.web, "192.0.2.5")
		require.NoError(t, err)
		h.cell.Move("abroad", "192.0.2.5")
		require.NoError(t, says(d, "x"))
	})
}

func TestListenerOnAGoneAddress(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		h := newHouse(t, n)
		listen(t, h.phone, phoneLAN+":7")
		echo(t, h.phone, phoneTail+":7")
		_, err := dial(h.machine, phoneLAN)
		require.NoError(t, err)
		h.wifi.SetAddresses("192.168.1.24")
		_, err = dial(h.machine, phoneLAN)
		require.ErrorIs(t, err, os.ErrDeadlineExceeded, "silent: the address was somebody's")
		_, err = dial(h.machine, "192.168.1.24")
		require.ErrorIs(t, err, syscall.ECONNREFUSED, "the listener is bound to another one")
		_, err = h.phone.Listen("tcp", phoneLAN+":8")
		require.ErrorIs(t, err, syscall.EADDRNOTAVAIL)
		h.wifi.SetAddresses(phoneLAN)
		_, err = dial(h.machine, phoneLAN)
		require.NoError(t, err)
		h.wifi.Down()
		_, err = dial(h.machine, phoneLAN)
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		_, err = dial(h.machine, phoneTail)
		require.NoError(t, err)
	})
}

// TestConditionsOfAnInterface come on top of the paths' own, and the host does
// not learn of a cut.
func TestConditionsOfAnInterface(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		h := newHouse(t, n)
		h.wifi.SetConditions(netsim.Conditions{Latency: 30 * ms}, netsim.Conditions{Latency: 40 * ms})
		var c net.Conn
		var err error
		within(t, 90*ms, after(func() { c, err = dial(h.phone, machineLAN) }))
		require.NoError(t, err)
		within(t, 20*ms, after(func() { _, err = dial(h.phone, machineTail) }))
		require.NoError(t, err)
		var told diary
		h.phone.WatchConnectivity(0, func(netsim.Connectivity) { told.add("news") })
		f := h.wifi.Cut()
		require.ErrorIs(t, says(c, "x"), os.ErrDeadlineExceeded)
		require.True(t, h.wifi.IsUp())
		require.Equal(t, []string{"news"}, told.read(), "only the present state")
		require.Positive(t, f.Hits())
		_, err = dial(h.phone, machineTail)
		require.NoError(t, err)
		h.wifi.Heal()
		c.SetReadDeadline(time.Time{})
		require.Equal(t, "x", readN(t, c, 1))
		require.Contains(t, panicText(t, func() { h.wifi.SetConditions(netsim.Conditions{}, netsim.Conditions{Loss: 2}) }), "Interface.SetConditions of phone/wifi down: netsim: Conditions.Loss is 2")
	}, tenms)
}
