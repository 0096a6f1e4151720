package netsim_test

import (
	"bytes"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/netsim"
)

// exchange is a whole life of a stream: hello, its echo, and both ends close.
func exchange(t *testing.T, a *netsim.Host, address string) {
	t.Helper()
	c, err := a.Dial("tcp", address)
	require.NoError(t, err)
	write(t, c, "hello")
	require.Equal(t, "hello", readN(t, c, 5))
	require.NoError(t, c.(*netsim.Conn).CloseWrite())
	_, err = io.ReadAll(c)
	require.NoError(t, err)
	require.NoError(t, c.Close())
	time.Sleep(10 * time.Second)
}

// TestVerdictHitsTheKindThatItIsFor: one packet of the kind, no other packet, and
// the stream makes up for it.
func TestVerdictHitsTheKindThatItIsFor(t *testing.T) {
	for _, kind := range []netsim.Kind{netsim.SYN, netsim.SYNACK, netsim.ACK, netsim.Data, netsim.FIN} {
		for name, c := range map[string]struct {
			verdict netsim.Verdict
			changed func(netsim.Event) bool
		}{
			"drop":     {drop, func(e netsim.Event) bool { return e.Fate == netsim.Dropped && e.Why == "dropped by rule the" }},
			"why":      {netsim.Verdict{Action: netsim.Drop, Why: "bad luck"}, func(e netsim.Event) bool { return e.Why == "bad luck" }},
			"corrupt":  {netsim.Verdict{Corrupt: true}, func(e netsim.Event) bool { return e.Fate == netsim.Dropped && e.Why == "bad checksum" }},
			"delay":    {netsim.Verdict{Delay: 50 * ms}, func(e netsim.Event) bool { return e.Fate == netsim.Delivered && (e.At-e.Sent).Round(ms) == 60*ms }},
			"double":   {netsim.Verdict{Duplicate: 1}, func(e netsim.Event) bool { return e.Copy }},
			"truncate": {netsim.Verdict{Truncate: 4}, func(e netsim.Event) bool { return e.Why == "bad checksum" }},
			"unreach":  {netsim.Verdict{Action: netsim.Unreach}, func(e netsim.Event) bool { return e.Fate == netsim.Dropped && e.Why == "rejected by rule the" }},
		} {
			if name == "unreach" && kind == netsim.SYN || name == "truncate" && kind != netsim.Data {
				continue // it ends the dial; it cuts nothing
			}
			t.Run(kind.String()+" "+name, func(t *testing.T) {
				netsim.Run(t, func(t *testing.T, n *netsim.Network) {
					a, b := n.Host("a"), n.Host("b")
					echo(t, b, ":7")
					f := n.Apply(netsim.Rule{Name: "the", Kind: kind, First: 2, Verdict: c.verdict})
					for range 3 {
						exchange(t, a, "b:7")
					}
					changed := n.Trace().Find(c.changed)
					require.Len(t, changed, 1)
					require.NotZero(t, changed[0].Kind&kind)
					require.Equal(t, 1, f.Hits())
					require.Zero(t, n.Trace().Count(func(e netsim.Event) bool {
						return e.Fate == netsim.Dropped && !c.changed(e) ||
							e.Fate == netsim.Delivered && !c.changed(e) && e.Proto == netsim.TCP && (e.At-e.Sent).Round(ms) != 10*ms
					}), "nothing else")
				}, tenms)
			})
		}
	}
}

// TestVerdictOnAReset: the end that it was for does not learn of it.
func TestVerdictOnAReset(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		client, server := pair(t, n.Host("a"), n.Host("b"))
		f := n.Apply(netsim.Rule{Kind: netsim.RST, Verdict: drop})
		require.NoError(t, client.SetLinger(0))
		require.NoError(t, client.Close())
		server.SetReadDeadline(time.Now().Add(time.Second))
		require.True(t, readError(t, server).(net.Error).Timeout())
		require.Equal(t, 1, f.Hits())
	}, tenms)
}

// TestVerdictsAddUp: every rule that lets a packet pass has its say, until one
// does not.
func TestVerdictsAddUp(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b")
		from, to := packetConn(t, a, ":0"), packetConn(t, b, ":9")
		first := n.Apply(netsim.Rule{Verdict: netsim.Verdict{Delay: 20 * ms, Duplicate: 1}})
		second := n.Apply(netsim.Rule{Verdict: netsim.Verdict{Delay: 30 * ms, Duplicate: 2, Truncate: 3}})
		third := n.Apply(netsim.Rule{First: 2, Verdict: drop})
		fourth := n.Apply(netsim.Rule{Verdict: netsim.Verdict{Delay: 40 * ms}})
		from.WriteTo([]byte("first"), udpAddr(b, 9))
		from.WriteTo([]byte("second"), udpAddr(b, 9))
		require.Equal(t, []string{"fir", "fir", "fir", "fir"}, drain(t, to, time.Second))
		for _, e := range n.Trace().Find(func(e netsim.Event) bool { return e.Fate == netsim.Delivered }) {
			require.Equal(t, 100*ms, (e.At - e.Sent).Round(ms))
		}
		require.Equal(t, []int{2, 2, 1, 1}, []int{first.Hits(), second.Hits(), third.Hits(), fourth.Hits()})
		second.Undo()
		first.Undo()
		from.WriteTo([]byte("third"), udpAddr(b, 9))
		within(t, 50*ms, after(func() { require.Equal(t, "third", receive(t, to)) }))
	}, tenms)
}

func receive(t *testing.T, c net.PacketConn) string {
	t.Helper()
	b := make([]byte, 100)
	c.SetReadDeadline(time.Time{})
	k, _, err := c.ReadFrom(b)
	require.NoError(t, err)
	return string(b[:k])
}

// TestRuleOnOneOfManyStreams: each selector finds its stream among six, from two
// hosts to two ports.
func TestRuleOnOneOfManyStreams(t *testing.T) {
	for name, c := range map[string]struct {
		rule func(n *netsim.Network, a, c, b *netsim.Host) netsim.Rule
		hit  string
	}{
		"flow":    {func(n *netsim.Network, a, c, b *netsim.Host) netsim.Rule { return netsim.Rule{Flow: "a>b:7#2"} }, "a>b:7#2"},
		"conn":    {func(n *netsim.Network, a, c, b *netsim.Host) netsim.Rule { return netsim.Rule{Conn: 2} }, "a>b:7#2 c>b:7#2"},
		"from":    {func(n *netsim.Network, a, c, b *netsim.Host) netsim.Rule { return netsim.Rule{From: c} }, "c>b:7#1 c>b:7#2 c>b:8#1"},
		"between": {func(n *netsim.Network, a, c, b *netsim.Host) netsim.Rule { return netsim.Rule{Between: n.Link(c, b)} }, "c>b:7#1 c>b:7#2 c>b:8#1"},
		"to":      {func(n *netsim.Network, a, c, b *netsim.Host) netsim.Rule { return netsim.Rule{To: a} }, "a>b:7#1 a>b:7#2 a>b:8#1"},
		"port":    {func(n *netsim.Network, a, c, b *netsim.Host) netsim.Rule { return netsim.Rule{Port: 8} }, "a>b:8#1 c>b:8#1"},
		"dst":     {func(n *netsim.Network, a, c, b *netsim.Host) netsim.Rule { return netsim.Rule{From: a, DstPort: 8} }, "a>b:8#1"},
		"src":     {func(n *netsim.Network, a, c, b *netsim.Host) netsim.Rule { return netsim.Rule{To: a, SrcPort: 8} }, "a>b:8#1"},
		"payload": {func(n *netsim.Network, a, c, b *netsim.Host) netsim.Rule {
			return netsim.Rule{Match: func(p netsim.Packet) bool { return bytes.Contains(p.Payload, []byte("c>b:7#1")) }}
		}, "c>b:7#1"},
		"small": {func(n *netsim.Network, a, c, b *netsim.Host) netsim.Rule {
			return netsim.Rule{Kind: netsim.Data, MaxSize: 40 + 1000}
		}, "a>b:8#1 c>b:8#1"},
		"large": {func(n *netsim.Network, a, c, b *netsim.Host) netsim.Rule { return netsim.Rule{MinSize: 40 + 1001} }, "a>b:7#1 a>b:7#2 c>b:7#1 c>b:7#2"},
		"proto": {func(n *netsim.Network, a, c, b *netsim.Host) netsim.Rule {
			return netsim.Rule{Proto: netsim.UDP, MayMiss: true}
		}, ""},
		"young": {func(n *netsim.Network, a, c, b *netsim.Host) netsim.Rule {
			return netsim.Rule{Match: func(p netsim.Packet) bool { return p.Age > 10*time.Second && p.Conn == 1 }}
		}, "a>b:7#1 a>b:8#1 c>b:7#1 c>b:8#1"},
	} {
		t.Run(name, func(t *testing.T) {
			netsim.Run(t, func(t *testing.T, n *netsim.Network) {
				a, other, b := n.Host("a"), n.Host("c"), n.Host("b")
				echo(t, b, ":7")
				echo(t, b, ":8")
				var conns []*netsim.Conn
				for _, h := range []*netsim.Host{a, other} {
					for _, address := range []string{"b:7", "b:7", "b:8"} {
						c, err := h.Dial("tcp", address)
						require.NoError(t, err)
						conns = append(conns, c.(*netsim.Conn))
					}
				}
				time.Sleep(time.Minute)
				r := c.rule(n, a, other, b)
				r.Verdict = drop
				f := n.Apply(r)
				try := func() string {
					var silent []string
					for _, c := range conns {
						size := 1200
						if strings.HasPrefix(c.Flow()[2:], "b:8") {
							size = 1000
						}
						if says(c, c.Flow()+strings.Repeat(".", size-len(c.Flow()))) != nil {
							silent = append(silent, c.Flow())
						}
					}
					return strings.Join(silent, " ")
				}
				require.Equal(t, c.hit, try())
				require.Equal(t, c.hit != "", f.Hits() > 0)
				dropped := n.Trace().Count(func(e netsim.Event) bool { return e.Fate == netsim.Dropped })
				require.Equal(t, dropped, f.Hits())
				f.Undo()
				time.Sleep(time.Minute)
				require.Empty(t, try())
			}, tenms)
		})
	}
}

// TestRuleOpensWithTime: After counts from when the network was made.
func TestRuleOpensWithTime(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b")
		n.Apply(netsim.Rule{After: 3 * time.Second, Verdict: drop})
		client, _ := pair(t, a, b)
		write(t, client, "x")
		time.Sleep(3 * time.Second)
		write(t, client, "y")
		time.Sleep(ms)
		require.Len(t, n.Trace().Find(func(e netsim.Event) bool { return e.Fate == netsim.Dropped }), 1)
	})
}

// TestCutsCatchWhatIsOnItsWay, whatever is cut, wherever the packet is by then.
func TestCutsCatchWhatIsOnItsWay(t *testing.T) {
	for name, cut := range map[string]func(n *netsim.Network, wifi *netsim.Interface, a, b *netsim.Host) *netsim.Fault{
		"path": func(n *netsim.Network, _ *netsim.Interface, a, b *netsim.Host) *netsim.Fault {
			return n.Path(a, b).Cut()
		},
		"link": func(n *netsim.Network, _ *netsim.Interface, a, b *netsim.Host) *netsim.Fault {
			return n.Link(b, a).Cut()
		},
		"wifi": func(_ *netsim.Network, wifi *netsim.Interface, _, _ *netsim.Host) *netsim.Fault { return wifi.Cut() },
		"partition": func(n *netsim.Network, _ *netsim.Interface, _, _ *netsim.Host) *netsim.Fault {
			return n.Partition(map[string][]string{"b": {"a"}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			netsim.Run(t, func(t *testing.T, n *netsim.Network) {
				a, b, other := n.Host("a"), n.Host("b"), n.Host("c")
				wifi := a.Interface("wifi", netsim.Wireless)
				wifi.SetConditions(netsim.Conditions{Latency: 10 * ms}, netsim.Conditions{})
				from, bystander, to := packetConn(t, a, ":0"), packetConn(t, other, ":0"), packetConn(t, b, ":9")
				for _, x := range []string{"1", "2", "3"} {
					from.WriteTo([]byte(x), udpAddr(b, 9))
					bystander.WriteTo([]byte("c"+x), udpAddr(b, 9))
					time.Sleep(9 * ms)
				}
				f := cut(n, wifi, a, b) // 1 has arrived, 2 and 3 are on their way
				from.WriteTo([]byte("4"), udpAddr(b, 9))
				time.Sleep(ms)
				f.Undo()
				from.WriteTo([]byte("5"), udpAddr(b, 9))
				require.Equal(t, "c1 c2 1 c3 5", strings.Join(drain(t, to, time.Second), " "))
				require.Equal(t, 3, f.Hits())
			}, tenms)
		})
	}
}

// busy is a stream with data on its way in both directions at all times, until
// an end fails; the errors come by the channels.
func busy(t *testing.T, a, b *netsim.Host) (c *netsim.Conn, atA, atB <-chan error) {
	t.Helper()
	client, server := pair(t, a, b)
	run := func(c *netsim.Conn) <-chan error {
		failed := make(chan error, 1)
		go func() {
			b := make([]byte, 8000)
			for {
				if _, err := c.Write(b); err != nil {
					return
				}
				time.Sleep(ms)
			}
		}()
		go func() {
			_, err := io.Copy(io.Discard, c)
			failed <- err
			c.Close()
		}()
		return failed
	}
	return client, run(client), run(server)
}

// TestResetsOfABusyStream: a RST made of the packet at hand is stale to the
// end for which more is on its way; those that know the numbers count.
func TestResetsOfABusyStream(t *testing.T) {
	for name, reset := range map[string]func(n *netsim.Network, c *netsim.Conn) *netsim.Fault{
		"link": func(n *netsim.Network, c *netsim.Conn) *netsim.Fault {
			return n.Link(n.Lookup("a"), n.Lookup("b")).Reset()
		},
		"flow": func(n *netsim.Network, c *netsim.Conn) *netsim.Fault { return n.ResetFlow(c.Flow()) },
		"rule": func(n *netsim.Network, c *netsim.Conn) *netsim.Fault {
			return n.Apply(netsim.Rule{Flow: c.Flow(), First: 1, Verdict: netsim.Verdict{Action: netsim.Reset}})
		},
		"rule on both": func(n *netsim.Network, c *netsim.Conn) *netsim.Fault {
			return n.Apply(netsim.Rule{Kind: netsim.Data, Established: true, Verdict: netsim.Verdict{Action: netsim.Reset}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			netsim.Run(t, func(t *testing.T, n *netsim.Network) {
				a, b := n.Host("a"), n.Host("b")
				other, _ := pair(t, a, n.Host("c"))
				c, atA, atB := busy(t, a, b)
				time.Sleep(time.Second)
				start := time.Now()
				f := reset(n, c)
				require.ErrorIs(t, <-atA, syscall.ECONNRESET)
				require.ErrorIs(t, <-atB, syscall.ECONNRESET)
				require.LessOrEqual(t, time.Since(start), 22*ms)
				require.Positive(t, f.Hits())
				time.Sleep(time.Second)
				require.Len(t, n.Sockets(), 2, "only the other one is left")
				write(t, other, "x")
			}, tenms)
		})
	}
	t.Run("reject", func(t *testing.T) {
		netsim.Run(t, func(t *testing.T, n *netsim.Network) {
			c, atA, atB := busy(t, n.Host("a"), n.Host("b"))
			time.Sleep(time.Second)
			f := n.Apply(netsim.Rule{Flow: c.Flow(), First: 1, Verdict: netsim.Verdict{Action: netsim.Reject}})
			select {
			case err := <-atA:
				t.Fatal(err)
			case err := <-atB:
				t.Fatal(err)
			case <-time.After(10 * time.Second):
			}
			require.Equal(t, 1, f.Hits())
		}, tenms)
	})
}

// TestResetAfterSoManyBytes is a reset by what passes.
func TestResetAfterSoManyBytes(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b")
		client, server := pair(t, a, b)
		n.Apply(netsim.Rule{
			From: b, Kind: netsim.Data, Match: func(p netsim.Packet) bool { return p.Seq-1 > 100_000 },
			Verdict: netsim.Verdict{Action: netsim.Reset, Why: "quota"},
		})
		go server.Write(make([]byte, 1<<20))
		got, err := io.Copy(io.Discard, client)
		require.ErrorIs(t, err, syscall.ECONNRESET)
		require.InDelta(t, 100_000, got, 2*1460, "what was on its way arrived before")
		require.ErrorIs(t, readError(t, server), syscall.ECONNRESET)
		_, ok := n.Trace().First(func(e netsim.Event) bool { return e.Fate == netsim.Dropped && e.Why == "quota" })
		require.True(t, ok)
	}, tenms)
}

// TestResetOfWhatIsNotEstablished: a dial is refused, TIME_WAIT does not mind, and
// a reset that finds nothing never bit.
func TestResetOfWhatIsNotEstablished(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b")
		echo(t, b, ":7")
		done := make(chan error, 1)
		go func() { _, err := a.Dial("tcp", "b:7"); done <- err }()
		synctest.Wait()
		n.Link(a, b).Reset() // before the SYN has left
		require.ErrorIs(t, <-done, syscall.ECONNREFUSED)
		time.Sleep(time.Second)
		for _, reset := range []func() *netsim.Fault{n.Link(a, b).Reset, func() *netsim.Fault { return n.Path(b, a).Reset() }} {
			var f *netsim.Fault
			n.After(5*ms, "reset", func() { f = reset() })
			d := after(func() {
				_, err := a.Dial("tcp", "b:7")
				require.ErrorIs(t, err, syscall.ECONNREFUSED)
			})
			within(t, 5*ms, d)
			require.Equal(t, 1, f.Hits())
			time.Sleep(time.Second)
			require.Len(t, n.Sockets(), 1, "the listener")
		}
		exchange(t, a, "b:7")
		require.Len(t, n.Sockets(), 2, "TIME-WAIT")
		require.Zero(t, n.Link(a, b).Reset().MayMiss().Hits())
		require.Len(t, n.Sockets(), 2)
	}, tenms)
	err := netsim.Bubble(t, func(t *testing.T, n *netsim.Network) {
		n.Link(n.Host("a"), n.Host("b")).Reset()
		n.ResetFlow("a>b:7#1")
	})
	require.ErrorContains(t, err, "reset a-b never bit")
	require.ErrorContains(t, err, "reset a>b:7#1 never bit")
}

// TestWhatWasHeldDoesNotSlipThroughACut, whichever came first.
func TestWhatWasHeldDoesNotSlipThroughACut(t *testing.T) {
	for _, first := range []string{"cut", "hold"} {
		for name, hold := range map[string]func(n *netsim.Network, a, b *netsim.Host) *netsim.Fault{
			"rule": func(n *netsim.Network, a, b *netsim.Host) *netsim.Fault {
				return n.Apply(netsim.Rule{To: b, Verdict: netsim.Verdict{Action: netsim.Hold}})
			},
			"path": func(n *netsim.Network, a, b *netsim.Host) *netsim.Fault { return n.Path(a, b).Hold() },
		} {
			t.Run(first+" "+name, func(t *testing.T) {
				netsim.Run(t, func(t *testing.T, n *netsim.Network) {
					a, b := n.Host("a"), n.Host("b")
					wifi := b.Interface("wifi", netsim.Wireless)
					from, to := packetConn(t, a, ":0"), packetConn(t, b, ":9")
					send := func(x string) {
						from.WriteTo([]byte(x), udpAddr(b, 9))
						time.Sleep(ms)
					}
					var cut *netsim.Fault
					if first == "cut" {
						cut = wifi.Cut()
					}
					held := hold(n, a, b)
					send("1")
					if first == "hold" {
						cut = wifi.Cut()
					}
					held.Undo()
					require.Empty(t, drain(t, to, time.Second))
					require.Equal(t, []int{1, 1}, []int{held.Hits(), cut.Hits()})
					cut.Undo()
					send("2")
					require.Equal(t, []string{"2"}, drain(t, to, time.Second))
				}, tenms)
			})
		}
	}
}
