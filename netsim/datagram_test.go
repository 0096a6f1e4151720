package netsim_test

import (
	"bytes"
	"fmt"
	"math/bits"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/netsim"
)

// packetConn listens for datagrams.
func packetConn(t *testing.T, h *netsim.Host, address string) *netsim.PacketConn {
	t.Helper()
	c, err := h.ListenPacket("udp", address)
	require.NoError(t, err)
	return c.(*netsim.PacketConn)
}

// drain reads datagrams until none has come for d.
func drain(t *testing.T, c net.PacketConn, d time.Duration) (got []string) {
	t.Helper()
	b := make([]byte, 65536)
	for {
		require.NoError(t, c.SetReadDeadline(time.Now().Add(d)))
		k, _, err := c.ReadFrom(b)
		if err != nil {
			require.ErrorIs(t, err, os.ErrDeadlineExceeded)
			require.NoError(t, c.SetReadDeadline(time.Time{}))
			return got
		}
		got = append(got, string(b[:k]))
	}
}

// sendNumbers sends the numbers from 1 to k, a millisecond apart.
func sendNumbers(t *testing.T, c net.PacketConn, to net.Addr, k int) {
	for i := range k {
		_, err := c.WriteTo(fmt.Append(nil, i+1), to)
		require.NoError(t, err)
		time.Sleep(ms)
	}
}

func TestDatagramArrives(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b")
		from, to := packetConn(t, a, ":0"), packetConn(t, b, ":9")
		start := time.Now()
		k, err := from.WriteTo([]byte("hello"), udpAddr(b, 9))
		require.NoError(t, err)
		require.Equal(t, 5, k)
		buf := make([]byte, 3)
		k, addr, err := to.ReadFrom(buf)
		require.NoError(t, err, "a short buffer cuts, without an error")
		require.Equal(t, "hel", string(buf[:k]))
		require.Equal(t, a.Addr().String(), addr.(*net.UDPAddr).IP.String())
		within(t, 10*ms, time.Since(start))
		require.Empty(t, drain(t, to, time.Second), "the rest of a datagram is gone")
		_, err = from.WriteTo(nil, udpAddr(b, 9))
		require.NoError(t, err)
		require.Equal(t, []string{""}, drain(t, to, time.Second), "empty datagrams exist")
	}, tenms)
}

func TestDatagramConditions(t *testing.T) {
	const sent = 2000
	for name, c := range map[string]struct {
		conditions netsim.Conditions
		low, high  int // datagrams received
		check      func(t *testing.T, got []string)
	}{
		"lost":       {netsim.Conditions{Loss: 0.1}, 1750, 1850, nil},
		"duplicated": {netsim.Conditions{Duplicate: 0.1}, 2150, 2250, nil},
		"reordered": {netsim.Conditions{Latency: 10 * ms, Reorder: 0.1}, sent, sent, func(t *testing.T, got []string) {
			late := 0
			for i := 1; i < len(got); i++ {
				if len(got[i]) < len(got[i-1]) || len(got[i]) == len(got[i-1]) && got[i] < got[i-1] {
					late++
				}
			}
			require.InDelta(t, 200, late, 60)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			netsim.Run(t, func(t *testing.T, n *netsim.Network) {
				a, b := n.Host("a"), n.Host("b")
				from, to := packetConn(t, a, ":0"), packetConn(t, b, ":9")
				sendNumbers(t, from, udpAddr(b, 9), sent)
				got := drain(t, to, time.Second)
				require.GreaterOrEqual(t, len(got), c.low)
				require.LessOrEqual(t, len(got), c.high)
				if c.check != nil {
					c.check(t, got)
				}
			}, netsim.Defaults(c.conditions))
		})
	}
}

func TestDatagramIsCorruptedByOneBit(t *testing.T) {
	for name, arm := range map[string]func(n *netsim.Network, a, b *netsim.Host){
		"conditions": func(n *netsim.Network, a, b *netsim.Host) {
			n.Path(a, b).SetConditions(netsim.Conditions{Corrupt: 1})
		},
		"rule": func(n *netsim.Network, a, b *netsim.Host) {
			n.Apply(netsim.Rule{Proto: netsim.UDP, Verdict: netsim.Verdict{Corrupt: true}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			netsim.Run(t, func(t *testing.T, n *netsim.Network) {
				a, b := n.Host("a"), n.Host("b")
				arm(n, a, b)
				from, to := packetConn(t, a, ":0"), packetConn(t, b, ":9")
				sent := bytes.Repeat([]byte("deadair "), 20)
				for range 10 {
					from.WriteTo(sent, udpAddr(b, 9))
				}
				got := drain(t, to, time.Second)
				require.Len(t, got, 10)
				places := map[int]bool{}
				for _, g := range got {
					flipped := 0
					for i := range sent {
						if x := g[i] ^ sent[i]; x != 0 {
							flipped += bits.OnesCount8(x)
							places[i] = true
						}
					}
					require.Equal(t, 1, flipped)
				}
				require.Greater(t, len(places), 3, "not always the same")
			})
		})
	}
}

func TestDatagramTruncated(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b")
		n.Apply(netsim.Rule{Proto: netsim.UDP, Verdict: netsim.Verdict{Truncate: 4}})
		from, to := packetConn(t, a, ":0"), packetConn(t, b, ":9")
		from.WriteTo([]byte("truncated"), udpAddr(b, 9))
		from.WriteTo([]byte("abc"), udpAddr(b, 9))
		require.Equal(t, []string{"trun", "abc"}, drain(t, to, time.Second))
	})
}

func TestDatagramMTU(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b")
		wifi := a.Interface("wlan0", netsim.Wireless)
		from, to := packetConn(t, a, ":0"), packetConn(t, b, ":9")
		send := func(size int) error {
			_, err := from.WriteTo(make([]byte, size), udpAddr(b, 9))
			return err
		}
		require.NoError(t, send(65507))
		require.ErrorIs(t, send(65508), syscall.EMSGSIZE)
		require.Equal(t, 1, len(drain(t, to, time.Second)))
		wifi.SetConditions(netsim.Conditions{Latency: ms}, netsim.Conditions{})
		require.NoError(t, send(9000), "conditions without an MTU have none")
		require.Equal(t, 1, len(drain(t, to, time.Second)))
		// The host knows its own interface: an error at once.
		wifi.SetConditions(netsim.Conditions{MTU: 1260}, netsim.Conditions{})
		require.NoError(t, send(1232))
		require.ErrorIs(t, send(1233), syscall.EMSGSIZE)
		require.Contains(t, send(1233).Error(), "sendto: message too long")
		require.Equal(t, 1, len(drain(t, to, time.Second)))
		// It does not know the path: silence.
		wifi.SetConditions(netsim.Conditions{}, netsim.Conditions{})
		n.Path(a, b).SetConditions(netsim.Conditions{MTU: 1260})
		require.NoError(t, send(1232))
		require.NoError(t, send(1233))
		require.Equal(t, 1, len(drain(t, to, time.Second)))
	})
}

func TestQueueBoundDropsTheNewest(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b")
		from, to := packetConn(t, a, ":0"), packetConn(t, b, ":9")
		for i := range 50 {
			from.WriteTo(append(make([]byte, 971), byte(i)), udpAddr(b, 9)) // 1000 B with headers
		}
		got := drain(t, to, 10*time.Second)
		require.InDelta(t, 10, len(got), 1)
		for i, g := range got {
			require.Equal(t, byte(i), g[971])
		}
	}, netsim.Defaults(netsim.Conditions{Rate: 8000, Queue: 10000}))
}

func TestSocketBufferBound(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b")
		from, to := packetConn(t, a, ":0"), packetConn(t, b, ":9")
		for range 100 {
			from.WriteTo(make([]byte, 100), udpAddr(b, 9))
		}
		time.Sleep(time.Second) // nobody reads
		require.Equal(t, 10, len(drain(t, to, time.Second)))
	}, netsim.DatagramBuffer(1000))
}

func TestDatagramToAClosedPort(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b")
		c, err := a.Dial("udp", "b:9")
		require.NoError(t, err)
		write(t, c, "anybody?")
		d := after(func() { require.ErrorIs(t, readError(t, c), syscall.ECONNREFUSED) })
		within(t, 20*ms, d)
		// Once; then all is normal.
		c.SetReadDeadline(time.Now().Add(time.Second))
		require.ErrorIs(t, readError(t, c), os.ErrDeadlineExceeded)
		write(t, c, "anybody?")
		time.Sleep(time.Second)
		_, err = c.Write([]byte("x"))
		require.ErrorIs(t, err, syscall.ECONNREFUSED, "or at the next write")
		to := packetConn(t, b, ":9")
		write(t, c, "now")
		require.Equal(t, []string{"now"}, drain(t, to, time.Second))
		// An unconnected socket hears nothing.
		from := packetConn(t, a, ":0")
		from.WriteTo([]byte("x"), udpAddr(b, 10))
		require.Empty(t, drain(t, from, time.Second))
	}, tenms)
}

func TestDialledPacketConnHearsItsPeerOnly(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b, c := n.Host("a"), n.Host("b"), n.Host("c")
		peer, other := packetConn(t, b, ":9"), packetConn(t, c, ":9")
		d, err := a.Dial("udp", "b:9")
		require.NoError(t, err)
		conn := d.(*netsim.PacketConn)
		other.WriteTo([]byte("other"), conn.LocalAddr())
		peer.WriteTo([]byte("peer"), conn.LocalAddr())
		require.Equal(t, []string{"peer"}, drain(t, conn, time.Second))
		_, err = conn.WriteTo([]byte("x"), udpAddr(c, 9))
		require.ErrorIs(t, err, net.ErrWriteToConnected)
		_, err = peer.Write([]byte("x"))
		require.ErrorIs(t, err, syscall.EDESTADDRREQ)
	})
}

func TestKthDatagram(t *testing.T) {
	for k := 1; k <= 4; k++ {
		for name, c := range map[string]struct {
			verdict netsim.Verdict
			want    func(k int) string
		}{
			"lost":    {netsim.Verdict{Action: netsim.Drop}, func(k int) string { return strings.Replace("1234", fmt.Sprint(k), "", 1) }},
			"doubled": {netsim.Verdict{Duplicate: 1}, func(k int) string { return strings.Replace("1234", fmt.Sprint(k), fmt.Sprint(k, k), 1) }},
			"swapped": {netsim.Verdict{Delay: 1500 * time.Microsecond}, func(k int) string {
				b := []byte("1234")
				if k < 4 {
					b[k-1], b[k] = b[k], b[k-1]
				}
				return string(b)
			}},
		} {
			t.Run(fmt.Sprint(name, k), func(t *testing.T) {
				netsim.Run(t, func(t *testing.T, n *netsim.Network) {
					a, b := n.Host("a"), n.Host("b")
					from, to := packetConn(t, a, ":0"), packetConn(t, b, ":9")
					n.Apply(netsim.Rule{Proto: netsim.UDP, From: a, First: k, Verdict: c.verdict})
					sendNumbers(t, from, udpAddr(b, 9), 4)
					require.Equal(t, strings.ReplaceAll(c.want(k), " ", ""), strings.Join(drain(t, to, time.Second), ""))
				}, tenms)
			})
		}
	}
}

func TestOneProtocolPasses(t *testing.T) {
	for _, blocked := range []netsim.Proto{netsim.UDP, netsim.TCP} {
		t.Run("not "+blocked.String(), func(t *testing.T) {
			netsim.Run(t, func(t *testing.T, n *netsim.Network) {
				a, b := n.Host("a"), n.Host("b")
				n.Apply(netsim.Rule{Proto: blocked, Verdict: netsim.Verdict{Action: netsim.Drop}})
				echo(t, b, ":9")
				to := packetConn(t, b, ":9")
				_, err := (&netsim.Dialer{Host: a, Timeout: 5 * time.Second}).Dial("tcp", "b:9")
				require.Equal(t, blocked == netsim.UDP, err == nil)
				sendNumbers(t, packetConn(t, a, ":0"), udpAddr(b, 9), 1)
				require.Len(t, drain(t, to, time.Second), map[netsim.Proto]int{netsim.UDP: 0, netsim.TCP: 1}[blocked])
			})
		})
	}
}

func TestDatagramRejected(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b")
		packetConn(t, b, ":9")
		c, err := a.Dial("udp", "b:9")
		require.NoError(t, err)
		f := n.Path(a, b).Refuse()
		write(t, c, "x")
		require.ErrorIs(t, readError(t, c), syscall.ECONNREFUSED)
		f.Undo()
		n.Path(a, b).Unreach()
		write(t, c, "x")
		d := after(func() { require.ErrorIs(t, readError(t, c), syscall.EHOSTUNREACH) })
		within(t, 20*ms, d)
	}, tenms)
}

func TestPacketConnDeadlinesAndClose(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a := n.Host("a")
		c := packetConn(t, a, ":9")
		c.SetReadDeadline(time.Now().Add(time.Hour))
		n.After(time.Second, "move", func() { c.SetReadDeadline(time.Now().Add(time.Second)) })
		d := after(func() {
			_, _, err := c.ReadFrom(nil)
			require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		})
		within(t, 2*time.Second, d)
		c.SetWriteDeadline(time.Now().Add(-time.Second))
		_, err := c.WriteTo([]byte("x"), udpAddr(a, 9))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		c.SetDeadline(time.Time{})
		n.After(time.Second, "close", func() { c.Close() })
		_, _, err = c.ReadFrom(nil)
		require.ErrorIs(t, err, net.ErrClosed)
		_, err = c.WriteTo(nil, udpAddr(a, 9))
		require.ErrorIs(t, err, net.ErrClosed)
		require.ErrorIs(t, c.Close(), net.ErrClosed)
		require.ErrorIs(t, c.SetDeadline(time.Now()), net.ErrClosed)
	})
}
