//go:build linux

package netsim_test

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// socket is what *net.UDPConn and *netsim.PacketConn have in common.
type socket interface {
	net.PacketConn
	net.Conn
}

// datagramStage is what a program about datagrams plays on.
type datagramStage struct {
	t *testing.T
	s parityStack
}

func (d datagramStage) bound(network, address string) socket {
	c, err := d.s.listenPacket(network, address)
	require.NoError(d.t, err)
	d.t.Cleanup(func() { c.Close() })
	return c.(socket)
}

func (d datagramStage) dialled(to net.Addr) socket {
	c, err := d.s.dial("udp", to.String())
	require.NoError(d.t, err)
	d.t.Cleanup(func() { c.Close() })
	return c.(socket)
}

// nobody is an address with a port that is closed. Nobody else uses that address
// of the loopback, so that the port stays closed.
func (d datagramStage) nobody() net.Addr {
	c, err := d.s.listenPacket("udp", "127.0.0.77:0")
	require.NoError(d.t, err)
	require.NoError(d.t, c.Close())
	return c.LocalAddr()
}

// withHost is an address with another host.
func withHost(a net.Addr, host string) *net.UDPAddr {
	return &net.UDPAddr{IP: net.ParseIP(host), Port: a.(*net.UDPAddr).Port}
}

// short is how long a program waits to see that nothing comes.
const short = 10 * time.Millisecond

var datagramPrograms = map[string]func(log func(call string, result ...any), d datagramStage){
	"closed port, connected": func(log func(string, ...any), d datagramStage) {
		c := d.dialled(d.nobody())
		b := make([]byte, 10)
		for range 2 {
			_, err := c.Write([]byte("x"))
			log("write", err)
			d.s.arrived(c, anError)
			_, err = c.Write([]byte("x"))
			log("next write", err)
			_, err = c.Write([]byte("x"))
			log("write after the error", err)
			d.s.arrived(c, anError)
			_, err = c.Read(b)
			log("read", err)
			_, err = c.Write([]byte("x"))
			log("write", err)
			d.s.arrived(c, anError)
			_, _, err = c.ReadFrom(b)
			log("read from", err)
		}
		c.SetReadDeadline(time.Now().Add(short))
		_, err := c.Read(b)
		log("the error is given once", err)
	},
	"closed port, and a deadline": func(log func(string, ...any), d datagramStage) {
		c := d.dialled(d.nobody())
		_, err := c.Write([]byte("x"))
		log("write", err)
		d.s.arrived(c, anError)
		c.SetDeadline(time.Now().Add(-1))
		_, err = c.Read(make([]byte, 1))
		log("read", err)
		_, err = c.Write([]byte("x"))
		log("write", err)
		c.SetDeadline(time.Time{})
		_, err = c.Read(make([]byte, 1))
		log("read", err)
	},
	"closed port, unconnected": func(log func(string, ...any), d datagramStage) {
		c := d.bound("udp", "127.0.0.1:0")
		to := d.nobody()
		for range 3 {
			_, err := c.WriteTo([]byte("x"), to)
			log("write", err)
		}
		c.SetReadDeadline(time.Now().Add(short))
		_, _, err := c.ReadFrom(make([]byte, 1))
		log("read", err)
	},
	"small buffer": func(log func(string, ...any), d datagramStage) {
		a, b := d.bound("udp", "127.0.0.1:0"), d.bound("udp", "127.0.0.1:0")
		for _, s := range []string{"truncated", "whole", "", "last"} {
			k, err := a.WriteTo([]byte(s), b.LocalAddr())
			log("write", k, err)
		}
		buf := make([]byte, 5)
		for range 4 {
			k, from, err := b.ReadFrom(buf)
			log("read", string(buf[:k]), from, err)
		}
		a.WriteTo([]byte("gone"), b.LocalAddr())
		a.WriteTo([]byte("next"), b.LocalAddr())
		k, from, err := b.ReadFrom(nil)
		log("read from into nothing", k, from, err)
		k, err = b.Read(nil)
		log("read into nothing", k, err)
		k, err = b.Read(buf)
		log("read", string(buf[:k]), err)
	},
	"empty datagrams": func(log func(string, ...any), d datagramStage) {
		b := d.bound("udp", "127.0.0.1:0")
		a := d.dialled(b.LocalAddr())
		k, err := a.Write(nil)
		log("write", k, err)
		k, from, err := b.ReadFrom(make([]byte, 5))
		log("read", k, from, err)
		b.WriteTo([]byte{}, from)
		k, err = a.Read(make([]byte, 5))
		log("read", k, err)
	},
	"too large": func(log func(string, ...any), d datagramStage) {
		b := d.bound("udp", "127.0.0.1:0")
		a := d.dialled(b.LocalAddr())
		for _, size := range []int{65507, 65508} {
			k, err := a.Write(make([]byte, size))
			log("write", k, err)
			k, err = b.WriteTo(make([]byte, size), a.LocalAddr())
			log("write to", k, err)
		}
	},
	"deadlines": func(log func(string, ...any), d datagramStage) {
		b := d.bound("udp", "127.0.0.1:0")
		a := d.dialled(b.LocalAddr())
		a.Write([]byte("there"))
		d.s.arrived(b, aDatagram)
		buf := make([]byte, 10)
		log("set", b.SetDeadline(time.Now().Add(-time.Second)))
		_, _, err := b.ReadFrom(buf)
		log("read", err)
		_, err = b.WriteTo([]byte("x"), a.LocalAddr())
		log("write", err)
		log("set", b.SetReadDeadline(time.Time{}))
		k, _, err := b.ReadFrom(buf)
		log("read", string(buf[:k]), err)
		_, err = b.WriteTo([]byte("x"), a.LocalAddr())
		log("write", err)
		log("set", b.SetWriteDeadline(time.Now().Add(time.Hour)))
		_, err = b.WriteTo([]byte("x"), a.LocalAddr())
		log("write", err)
		log("set", b.SetReadDeadline(time.Now().Add(short)))
		_, _, err = b.ReadFrom(buf)
		log("read", err)
		log("set", a.SetWriteDeadline(time.Now().Add(-1)))
		_, err = a.Write([]byte("x"))
		log("write", err)
	},
	"closed during a read": func(log func(string, ...any), d datagramStage) {
		a := d.bound("udp", "127.0.0.1:0")
		go a.Close()
		_, _, err := a.ReadFrom(make([]byte, 1))
		log("read from", err)
		b := d.dialled(d.bound("udp", "127.0.0.1:0").LocalAddr())
		go b.Close()
		_, err = b.Read(make([]byte, 1))
		log("read", err)
	},
	"use after close": func(log func(string, ...any), d datagramStage) {
		peer := d.bound("udp", "127.0.0.1:0")
		for _, c := range []socket{d.bound("udp", "127.0.0.1:0"), d.dialled(peer.LocalAddr())} {
			log("close", c.Close())
			_, _, err := c.ReadFrom(make([]byte, 1))
			log("read from", err)
			_, err = c.Read(make([]byte, 1))
			log("read", err)
			_, err = c.Read(nil)
			log("read nothing", err)
			_, err = c.WriteTo([]byte("x"), peer.LocalAddr())
			log("write to", err)
			_, err = c.Write([]byte("x"))
			log("write", err)
			log("set", c.SetDeadline(time.Time{}))
			log("close", c.Close())
			log("addresses", c.LocalAddr(), c.RemoteAddr() != nil)
		}
	},
	"wrong calls": func(log func(string, ...any), d datagramStage) {
		b := d.bound("udp", "127.0.0.1:0")
		a := d.dialled(b.LocalAddr())
		_, err := a.WriteTo([]byte("x"), b.LocalAddr())
		log("write to on a connected socket", err)
		_, err = b.Write([]byte("x"))
		log("write on an unconnected socket", err)
		_, err = b.WriteTo([]byte("x"), &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9})
		log("write to an address of TCP", err)
		_, err = b.WriteTo([]byte("x"), withHost(a.LocalAddr(), "::1"))
		log("write to the other family", err)
		_, err = b.WriteTo([]byte("x"), withHost(a.LocalAddr(), "::"))
		log("write to all of the other family", err)
		_, err = d.s.listenPacket("udp", b.LocalAddr().String())
		log("listen where somebody does", err)
		_, err = d.s.listenPacket("tcp", "127.0.0.1:0")
		log("listen for datagrams of TCP", err)
		_, err = d.s.listen("udp", "127.0.0.1:0")
		log("listen for streams of UDP", err)
		_, err = d.s.listenPacket("udp", "192.0.2.1:0")
		log("listen at another's address", err)
		_, err = d.s.listenPacket("udp6", "127.0.0.1:0")
		log("listen at the other family's address", err)
	},
	"only the peer is heard": func(log func(string, ...any), d datagramStage) {
		peer, stranger := d.bound("udp", "127.0.0.1:0"), d.bound("udp", "127.0.0.1:0")
		c := d.dialled(peer.LocalAddr())
		_, err := stranger.WriteTo([]byte("stranger"), c.LocalAddr())
		log("stranger's write", err)
		_, err = peer.WriteTo([]byte("peer"), c.LocalAddr())
		log("peer's write", err)
		buf := make([]byte, 10)
		k, from, err := c.ReadFrom(buf)
		log("read", string(buf[:k]), from, err)
		_, err = stranger.WriteTo([]byte("again"), c.LocalAddr())
		log("the stranger is told nothing", err)
	},
	"to all addresses": func(log func(string, ...any), d datagramStage) {
		buf := make([]byte, 10)
		for _, network := range []string{"udp", "udp4", "udp6"} {
			for _, host := range []string{"", "0.0.0.0", "[::]", "127.0.0.1", "[::1]"} {
				c, err := d.s.listenPacket(network, host+":0")
				log("listen "+network+" "+host, err)
				if err != nil {
					continue
				}
				log("local", c.LocalAddr())
				tos := []net.Addr{c.LocalAddr(), &net.UDPAddr{Port: c.LocalAddr().(*net.UDPAddr).Port}}
				for _, to := range []string{"0.0.0.0", "::", "127.0.0.1", "::1"} {
					tos = append(tos, withHost(c.LocalAddr(), to))
				}
				for i, to := range tos {
					_, err := c.WriteTo(fmt.Append(nil, i), to)
					log("write to", to, err)
					if err != nil {
						continue
					}
					heard := d.s.heard(c.(net.Conn))
					log("heard", heard)
					if heard {
						k, from, err := c.ReadFrom(buf)
						log("read", string(buf[:k]), from, err)
					}
				}
				c.Close()
			}
		}
	},
	"dial all addresses": func(log func(string, ...any), d datagramStage) {
		buf := make([]byte, 10)
		for _, listens := range []string{"udp", "udp4", "udp6"} {
			b := d.bound(listens, ":0")
			_, port, err := net.SplitHostPort(b.LocalAddr().String())
			require.NoError(d.t, err)
			for _, host := range []string{"", "0.0.0.0", "[::]", "127.0.0.1", "[::1]"} {
				for _, network := range []string{"udp", "udp4", "udp6"} {
					c, err := d.s.dial(network, host+":"+port)
					log(listens+": "+network+" "+host, err)
					if err != nil {
						continue
					}
					log("addresses", c.LocalAddr(), c.RemoteAddr())
					_, err = c.Write([]byte("x"))
					log("write", err)
					heard := d.s.heard(b)
					log("heard", heard)
					if heard {
						k, from, err := b.ReadFrom(buf)
						log("read", string(buf[:k]), from, err)
					} else {
						_, err = c.Write([]byte("x"))
						log("next write", err)
					}
					c.Close()
				}
			}
		}
	},
	"both families share a port": func(log func(string, ...any), d datagramStage) {
		for _, network := range []string{"udp4", "udp6"} {
			a := d.bound(network, ":0")
			_, port, _ := net.SplitHostPort(a.LocalAddr().String())
			for _, other := range []string{"udp4 0.0.0.0", "udp4 127.0.0.1", "udp6 [::]", "udp6 [::1]", "udp [::]"} {
				var n, host string
				fmt.Sscan(other, &n, &host)
				c, err := d.s.listenPacket(n, host+":"+port)
				log(network+" and "+other, err)
				if err == nil {
					c.Close()
				}
			}
			a.Close()
			l, err := d.s.listen("tcp"+network[3:], ":0")
			require.NoError(d.t, err)
			_, port, _ = net.SplitHostPort(l.Addr().String())
			for _, other := range []string{"tcp4 0.0.0.0", "tcp4 127.0.0.1", "tcp6 [::]", "tcp6 [::1]", "tcp [::]"} {
				var n, host string
				fmt.Sscan(other, &n, &host)
				c, err := d.s.listen(n, host+":"+port)
				log(l.Addr().String()[:1]+" and "+other, err)
				if err == nil {
					c.Close()
				}
			}
			l.Close()
		}
	},
}

func TestDatagramParityWithLoopback(t *testing.T) {
	for name, program := range datagramPrograms {
		t.Run(name, func(t *testing.T) {
			compare(t, name, func(t *testing.T, s parityStack, log func(string, ...any)) { program(log, datagramStage{t, s}) })
		})
	}
}
