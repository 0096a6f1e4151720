package netsim_test

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/netsim"
)

func TestDeadHost(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b")
		echo(t, b, ":7")
		b.Crash()
		d := after(func() {
			_, err := a.Dial("tcp", "b:7")
			require.ErrorIs(t, err, syscall.ETIMEDOUT)
		})
		within(t, 127*time.Second, d)
	})
}

func TestDarkAddressIsSilent(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		n.Dark("192.0.2.9")
		d := &netsim.Dialer{Host: n.Host("a"), Timeout: 3 * time.Second}
		took := after(func() {
			_, err := d.Dial("tcp", "192.0.2.9:80")
			var ne net.Error
			require.ErrorAs(t, err, &ne)
			require.True(t, ne.Timeout())
		})
		within(t, 3*time.Second, took)
	})
}

func TestPathHealsBetweenTwoSYNs(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b")
		echo(t, b, ":7")
		n.Link(a, b).Cut()
		n.After(4*time.Second, "heal", n.Link(a, b).Heal)
		took := after(func() {
			_, err := a.Dial("tcp", "b:7")
			require.NoError(t, err)
		})
		within(t, 7*time.Second+20*ms, took) // the SYN of 7 s, not a redial
		_, ok := n.Trace().First(func(e netsim.Event) bool { return e.Flow == "a>b:7#2" })
		require.False(t, ok)
	}, tenms)
}

func TestOnlyAnswersLost(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b")
		l := listen(t, b, ":7")
		cut := n.Path(b, a).Cut()
		d := after(func() {
			_, err := a.Dial("tcp", "b:7")
			require.ErrorIs(t, err, syscall.ETIMEDOUT)
		})
		within(t, 127*time.Second, d)
		require.NoError(t, l.SetDeadline(time.Now().Add(time.Minute)))
		_, err := l.Accept()
		require.Error(t, err, "the server sees no connection")
		require.Positive(t, cut.Hits())
	})
}

func TestNoRoute(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b", netsim.Addr("2001:db8::7"))
		echo(t, b, ":7")
		d := after(func() {
			_, err := a.Dial("tcp", "[2001:db8::7]:7") // a has no IPv6
			require.ErrorIs(t, err, syscall.ENETUNREACH)
		})
		require.Zero(t, d)
	}, tenms)
}

func TestRoutersReject(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b")
		echo(t, b, ":7")
		old, err := a.Dial("tcp", "b:7")
		require.NoError(t, err)
		f := n.Link(a, b).Unreach()
		d := after(func() {
			_, err := a.Dial("tcp", "b:7")
			require.ErrorIs(t, err, syscall.EHOSTUNREACH)
		})
		within(t, 20*ms, d)
		// An established stream takes the router's word as a passing trouble.
		write(t, old, "hello")
		n.After(5*time.Second, "undo", f.Undo)
		require.Equal(t, "hello", readN(t, old, 5))
	}, tenms)
}

func TestPathRefuses(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b")
		echo(t, b, ":7")
		old, err := a.Dial("tcp", "b:7")
		require.NoError(t, err)
		n.Path(a, b).Refuse()
		d := after(func() {
			_, err := a.Dial("tcp", "b:7")
			require.ErrorIs(t, err, syscall.ECONNREFUSED)
		})
		within(t, 20*ms, d)
		write(t, old, "goes on")
		require.Equal(t, "goes on", readN(t, old, 7))
	}, tenms)
}

func TestSeveralAddressesAreTriedInTurn(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b, c := n.Host("a"), n.Host("b"), n.Host("c")
		echo(t, c, ":7")
		n.Alias("service", b, c)
		conn, err := a.Dial("tcp", "service:7") // b refuses
		require.NoError(t, err)
		require.Equal(t, c.Addr().String(), conn.RemoteAddr().(*net.TCPAddr).IP.String())

		// The time is shared out: of 10 s the silent first one gets 5.
		n.Link(a, b).Cut()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		d := after(func() {
			conn, err = a.DialContext(ctx, "tcp", "service:7")
			require.NoError(t, err)
		})
		within(t, 5*time.Second, d)
	})
}

func TestIPv6FallsBackToIPv4(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a", netsim.DualStack()), n.Host("b", netsim.DualStack())
		echo(t, b, ":7")
		c, err := a.Dial("tcp", "b:7")
		require.NoError(t, err)
		require.Nil(t, c.RemoteAddr().(*net.TCPAddr).IP.To4(), "IPv6 comes first")

		n.Apply(netsim.Rule{Match: func(p netsim.Packet) bool { return p.Src.Addr().Is6() }, Verdict: netsim.Verdict{Action: netsim.Drop}})
		took := after(func() {
			c, err = a.Dial("tcp", "b:7")
			require.NoError(t, err)
		})
		require.NotNil(t, c.RemoteAddr().(*net.TCPAddr).IP.To4())
		within(t, 320*ms, took)

		d := &netsim.Dialer{Host: a, FallbackDelay: 50 * ms}
		took = after(func() {
			_, err = d.Dial("tcp", "b:7")
			require.NoError(t, err)
		})
		within(t, 70*ms, took)
	}, tenms)
}

// TestBacklogFull: a backlog of 1 lets two wait; the dials of the others take
// one of their retries.
func TestBacklogFull(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b", netsim.HostBacklog(1))
		l := listen(t, b, ":7")
		took := make([]time.Duration, 4)
		done := make(chan int)
		for i := range took {
			n.Go("dial", func() {
				time.Sleep(time.Duration(i) * 50 * ms) // the handshakes do not overlap
				took[i] = after(func() {
					_, err := a.Dial("tcp", "b:7")
					require.NoError(t, err)
				})
				done <- i
			})
		}
		// One is accepted before the first retry, another before the second.
		n.After(500*ms, "accept", func() { l.Accept() })
		n.After(2*time.Second, "accept", func() { l.Accept() })
		for range took {
			<-done
		}
		within(t, 20*ms, took[0])
		within(t, 20*ms, took[1])
		within(t, time.Second+20*ms, min(took[2], took[3]))
		within(t, 3*time.Second+20*ms, max(took[2], took[3]))
	}, tenms)
}

func TestPortTaken(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a := n.Host("a")
		l := listen(t, a, ":7")
		_, err := a.Listen("tcp", ":7")
		require.ErrorIs(t, err, syscall.EADDRINUSE)
		_, err = a.Listen("tcp", a.Addr().String()+":7")
		require.ErrorIs(t, err, syscall.EADDRINUSE)
		_, err = a.ListenPacket("udp", ":7")
		require.NoError(t, err, "UDP has ports of its own")
		_, err = a.ListenPacket("udp", ":7")
		require.ErrorIs(t, err, syscall.EADDRINUSE)
		require.NoError(t, l.Close())
		listen(t, a, ":7")
		_, err = a.Listen("tcp", "192.0.2.1:7")
		require.ErrorIs(t, err, syscall.EADDRNOTAVAIL)
		_, err = a.ListenPacket("udp", "192.0.2.1:7")
		require.ErrorIs(t, err, syscall.EADDRNOTAVAIL)
	})
}

func TestNoPortLeft(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b")
		l := listen(t, b, ":7")
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go func() {
					io.Copy(io.Discard, c)
					c.Close()
				}()
			}
		}()
		for range 100 {
			c, err := a.Dial("tcp", "b:7")
			require.NoError(t, err)
			require.NoError(t, c.Close()) // the side that closes first keeps the port
			time.Sleep(ms)
		}
		_, err := a.Dial("tcp", "b:7")
		require.ErrorIs(t, err, syscall.EADDRNOTAVAIL)
		require.Contains(t, err.Error(), "connect: cannot assign requested address")
		listen(t, b, ":8")
		_, err = a.Dial("tcp", "b:8")
		require.NoError(t, err, "another destination has ports of its own")
		time.Sleep(60 * time.Second)
		_, err = a.Dial("tcp", "b:7")
		require.NoError(t, err)
	}, netsim.EphemeralPorts(50000, 50099))
}

func TestLocalAddressOfADial(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b")
		echo(t, b, ":7")
		d := &netsim.Dialer{Host: a, LocalAddr: &net.TCPAddr{Port: 4000}}
		c, err := d.Dial("tcp", "b:7")
		require.NoError(t, err)
		require.Equal(t, a.Addr().String()+":4000", c.LocalAddr().String())
		_, err = d.Dial("tcp", "b:7")
		require.ErrorIs(t, err, syscall.EADDRINUSE)
		for network, local := range map[string]net.Addr{
			"tcp": &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)},
			"udp": &net.UDPAddr{IP: net.IPv4(192, 0, 2, 1)},
		} {
			d = &netsim.Dialer{Host: a, LocalAddr: local}
			_, err = d.Dial(network, "b:7")
			require.ErrorIs(t, err, syscall.EADDRNOTAVAIL, network)
		}
		d = &netsim.Dialer{Host: a, LocalAddr: &net.UDPAddr{}}
		_, err = d.Dial("tcp", "b:7")
		require.ErrorContains(t, err, "mismatched local address type")
		d = &netsim.Dialer{Host: a, LocalAddr: &net.TCPAddr{}}
		_, err = d.Dial("udp", "b:7")
		require.ErrorContains(t, err, "mismatched local address type")
	})
}

func TestAcceptQueueTrouble(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b")
		l := listen(t, b, ":7")
		l.FailAccept(syscall.EMFILE)
		_, err := a.Dial("tcp", "b:7")
		require.NoError(t, err)
		_, err = l.Accept()
		require.ErrorIs(t, err, syscall.EMFILE)
		require.Contains(t, err.Error(), "accept4: too many open files")
		var ne net.Error
		require.True(t, errors.As(err, &ne) && ne.Temporary(), "as a real listener has it")
		c, err := l.Accept()
		require.NoError(t, err, "the listener goes on")
		require.NotNil(t, c)
		require.Panics(t, func() { l.FailAccept(nil) })
	})
}

func TestDelayedHandshake(t *testing.T) {
	for name, c := range map[string]struct {
		kind   netsim.Kind
		server time.Duration // when the server sees the connection
	}{
		"SYN":     {netsim.SYN, 330 * ms},
		"SYN-ACK": {netsim.SYNACK, 330 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			netsim.Run(t, func(t *testing.T, n *netsim.Network) {
				a, b := n.Host("a"), n.Host("b")
				l := listen(t, b, ":7")
				f := n.Apply(netsim.Rule{Kind: c.kind, Verdict: netsim.Verdict{Delay: 300 * ms}})
				start := time.Now()
				_, err := a.Dial("tcp", "b:7")
				require.NoError(t, err)
				within(t, 320*ms, time.Since(start))
				_, err = l.Accept()
				require.NoError(t, err)
				within(t, c.server, time.Since(start))
				require.Equal(t, 1, f.Hits())
			}, tenms)
		})
	}
}

func TestLateAccept(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b")
		l := listen(t, b, ":7")
		start := time.Now()
		c, err := a.Dial("tcp", "b:7")
		require.NoError(t, err)
		within(t, 20*ms, time.Since(start)) // established, whether or not somebody accepts
		write(t, c, "early")
		time.Sleep(5 * time.Second)
		s, err := l.Accept()
		require.NoError(t, err)
		require.Equal(t, "early", readN(t, s, 5))
		// A server that accepts and stays silent looks the same to the dial and
		// differs here: its end is there.
		require.NoError(t, c.SetReadDeadline(time.Now().Add(time.Second)))
		require.True(t, readError(t, c).(net.Error).Timeout())
		write(t, s, "late")
		require.NoError(t, c.SetReadDeadline(time.Time{}))
		require.Equal(t, "late", readN(t, c, 4))
	}, tenms)
}

func TestListenerCloses(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b")
		l := listen(t, b, ":7")
		c, err := a.Dial("tcp", "b:7")
		require.NoError(t, err)
		require.NoError(t, l.Close())
		require.ErrorIs(t, readError(t, c), syscall.ECONNRESET, "nobody had accepted it")
		_, err = l.Accept()
		require.ErrorIs(t, err, net.ErrClosed)
		require.ErrorIs(t, l.Close(), net.ErrClosed)
		require.ErrorIs(t, l.SetDeadline(time.Now()), net.ErrClosed)
		_, err = a.Dial("tcp", "b:7")
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
	})
}

func TestAcceptUnblocks(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		l := listen(t, n.Host("a"), ":7")
		require.NoError(t, l.SetDeadline(time.Now().Add(time.Hour)))
		n.After(time.Second, "move", func() { l.SetDeadline(time.Now().Add(time.Second)) })
		d := after(func() {
			_, err := l.Accept()
			var ne net.Error
			require.ErrorAs(t, err, &ne)
			require.True(t, ne.Timeout())
		})
		within(t, 2*time.Second, d)
		require.NoError(t, l.SetDeadline(time.Time{}))
		n.After(time.Second, "close", func() { l.Close() })
		_, err := l.Accept()
		require.ErrorIs(t, err, net.ErrClosed)
	})
}

func TestDialIsCancelled(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b")
		n.Link(a, b).Cut()
		ctx, cancel := context.WithCancel(t.Context())
		n.After(2*time.Second, "cancel", cancel)
		d := after(func() {
			_, err := a.DialContext(ctx, "tcp", "b:7")
			require.ErrorIs(t, err, context.Canceled)
			require.Contains(t, err.Error(), "operation was canceled")
		})
		within(t, 2*time.Second, d)
		_, err := a.DialContext(ctx, "tcp", "b:7")
		require.ErrorIs(t, err, context.Canceled, "before it begins, too")
	})
}

func TestSYNRetriesAreAnOption(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b")
		n.Link(a, b).Cut()
		d := after(func() {
			_, err := a.Dial("tcp", "b:7")
			require.ErrorIs(t, err, syscall.ETIMEDOUT)
		})
		within(t, 7*time.Second, d)
	}, netsim.SYNRetries(2))
}
