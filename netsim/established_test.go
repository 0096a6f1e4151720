package netsim_test

import (
	"bytes"
	"io"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/netsim"
)

func isData(flow string) func(netsim.Event) bool {
	return func(e netsim.Event) bool { return e.Kind&netsim.Data != 0 && (flow == "" || e.From == flow) }
}

func TestJitterKeepsOrder(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		client, server := pair(t, n.Host("a"), n.Host("b"))
		var want bytes.Buffer
		for i := range 200 {
			b := bytes.Repeat([]byte{byte(i)}, 1+i%7)
			want.Write(b)
			d := after(func() { write(t, client, string(b)) })
			require.Zero(t, d, "a write returns at once")
			time.Sleep(ms)
		}
		client.CloseWrite()
		got, err := io.ReadAll(server)
		require.NoError(t, err)
		require.Equal(t, want.Bytes(), got)
	}, netsim.Defaults(netsim.Conditions{Latency: 20 * ms, Jitter: 15 * ms}))
}

func TestFastRetransmitAfterARoundTrip(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		client, server := pair(t, n.Host("a"), n.Host("b"))
		n.Apply(netsim.Rule{Kind: netsim.Data, First: 1, Verdict: netsim.Verdict{Action: netsim.Drop}})
		start := time.Now()
		for range 5 { // later data flows
			write(t, client, "x")
			time.Sleep(ms)
		}
		readN(t, server, 5)
		d := time.Since(start)
		require.Greater(t, d, 25*ms)
		require.Less(t, d, 60*ms, "a round trip, not a time-out")
	}, tenms)
}

func TestLossOfTheLastSegmentCostsAnRTO(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		client, server := pair(t, n.Host("a"), n.Host("b"))
		n.Apply(netsim.Rule{Kind: netsim.Data, First: 1, Verdict: netsim.Verdict{Action: netsim.Drop}})
		start := time.Now()
		write(t, client, "x")
		readN(t, server, 1)
		d := time.Since(start)
		require.Greater(t, d, 200*ms)
		require.Less(t, d, 300*ms)
	}, tenms)
}

func TestRTODoubles(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b")
		client, server := pair(t, a, b)
		defer server.Close()
		n.Link(a, b).Cut()
		write(t, client, "x")
		time.Sleep(10 * time.Minute)
		at := sentAt(n, isData("a"))
		for i := range at[1:] {
			want := min(200*ms<<i, 120*time.Second)
			require.InDelta(t, want.Seconds(), (at[i+1] - at[i]).Seconds(), 0.01, "wait %d", i)
		}
		require.Equal(t, 120*time.Second, at[len(at)-1]-at[len(at)-2])
	})
}

func TestRateIsSerialisationDelay(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		client, server := pair(t, n.Host("a"), n.Host("b"))
		start := time.Now()
		const size = 1 << 20
		go client.Write(make([]byte, size))
		_, err := io.ReadFull(server, make([]byte, size))
		require.NoError(t, err)
		want := float64(size) * 8 / 8e6 * 1500 / 1460 // with headers
		require.InEpsilon(t, want, time.Since(start).Seconds(), 0.1)
	}, netsim.Defaults(netsim.Conditions{Latency: 10 * ms, Rate: 8e6}))
}

func TestQueueDelaysOthers(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b")
		bulk, sink := pair(t, a, b)
		ping, pong := pair(t, a, b)
		go io.Copy(io.Discard, sink)
		go io.Copy(pong, pong)
		roundTrip := func() time.Duration {
			return after(func() {
				write(t, ping, "p")
				readN(t, ping, 1)
			})
		}
		require.Less(t, roundTrip(), 25*ms)
		go func() {
			for {
				if _, err := bulk.Write(make([]byte, 1<<20)); err != nil {
					return
				}
			}
		}()
		time.Sleep(5 * time.Second)
		require.Greater(t, roundTrip(), 500*ms, "a full queue of 256 KiB at 2 Mbit/s is a second")
		require.Positive(t, n.Trace().Count(func(e netsim.Event) bool { return e.Fate == netsim.Dropped }), "tail drop")
		bulk.Close()
	}, netsim.Defaults(netsim.Conditions{Latency: 10 * ms, Rate: 2e6, Queue: 256 << 10}))
}

func TestThroughputIsWindowByRoundTrip(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		client, server := pair(t, n.Host("a"), n.Host("b"))
		const size = 4 << 20
		start := time.Now()
		go client.Write(make([]byte, size))
		_, err := io.ReadFull(server, make([]byte, size))
		require.NoError(t, err)
		speed := float64(size) / time.Since(start).Seconds()
		limit := 64 * 1024 / 0.1
		require.Less(t, speed, limit*1.05)
		require.Greater(t, speed, limit*0.4)
	}, netsim.Buffers(1<<20, 64<<10), netsim.Defaults(netsim.Conditions{Latency: 50 * ms}))
}

func TestReaderThatStopsStopsTheWriter(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		client, server := pair(t, n.Host("a"), n.Host("b"))
		client.SetWriteDeadline(time.Now().Add(time.Minute))
		sent, err := client.Write(make([]byte, 1<<20))
		require.True(t, err.(net.Error).Timeout())
		require.InDelta(t, 128<<10, sent, 64<<10/3, "both buffers are full, but for the third that wakes a writer")
		// An hour later the reader goes on, and nothing is missing.
		time.Sleep(time.Hour)
		client.SetWriteDeadline(time.Time{})
		done := make(chan int)
		go func() {
			k, err := client.Write(make([]byte, 1<<20))
			require.NoError(t, err)
			client.Close()
			done <- k
		}()
		got, err := io.ReadAll(server)
		require.NoError(t, err)
		require.Len(t, got, sent+<-done)
	}, netsim.Buffers(64<<10, 64<<10), tenms)
}

func TestSilenceBlocksTheWriterWhenTheBufferIsFull(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b")
		client, server := pair(t, a, b)
		defer server.Close()
		n.Link(a, b).Cut()
		d := after(func() { write(t, client, string(make([]byte, 64<<10))) })
		require.Zero(t, d)
		d = after(func() {
			k, err := client.Write([]byte("more"))
			require.Zero(t, k)
			require.ErrorIs(t, err, syscall.ETIMEDOUT)
		})
		within(t, 924600*ms, d)
		_, err := client.Write([]byte("more"))
		require.ErrorIs(t, err, syscall.EPIPE, "the error is given once")
	}, netsim.Buffers(64<<10, 64<<10))
}

func TestUserTimeout(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b")
		client, server := pair(t, a, b)
		defer server.Close()
		require.NoError(t, client.SetUserTimeout(20*time.Second))
		n.Link(a, b).Cut()
		write(t, client, "x")
		d := after(func() { require.ErrorIs(t, readError(t, client), syscall.ETIMEDOUT) })
		within(t, 20*time.Second, d)
	})
}

func TestRetriesAreAnOption(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b")
		client, server := pair(t, a, b)
		defer server.Close()
		n.Link(a, b).Cut()
		write(t, client, "x")
		d := after(func() { require.ErrorIs(t, readError(t, client), syscall.ETIMEDOUT) })
		within(t, (200+400+800+1600)*ms, d)
	}, netsim.Retries(3))
}

func TestOneLostKeepAliveProbeDoesNotKill(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b")
		client, server := pair(t, a, b)
		require.NoError(t, server.SetKeepAlive(false))
		f := n.Apply(netsim.Rule{First: 1, Match: func(p netsim.Packet) bool { return p.Probe }, Verdict: netsim.Verdict{Action: netsim.Drop}})
		client.SetReadDeadline(time.Now().Add(time.Hour))
		require.True(t, readError(t, client).(net.Error).Timeout(), "alive")
		require.Equal(t, 1, f.Hits())
		write(t, server, "x")
		client.SetReadDeadline(time.Time{})
		require.Equal(t, "x", readN(t, client, 1))
	}, tenms)
}

func TestKeepAliveAsSetOnTheConnection(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b")
		client, server := pair(t, a, b)
		n.Link(a, b).Cut()
		require.NoError(t, client.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: time.Minute, Interval: 5 * time.Second, Count: 3}))
		require.NoError(t, server.SetKeepAlive(false))
		d := after(func() { require.ErrorIs(t, readError(t, client), syscall.ETIMEDOUT) })
		within(t, 75*time.Second, d)
		server.SetReadDeadline(time.Now().Add(24 * time.Hour))
		require.True(t, readError(t, server).(net.Error).Timeout(), "without probes nobody notices")
	})
}

func TestPathMTUBlackHole(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b")
		hole := n.Apply(netsim.Rule{From: b, To: a, Proto: netsim.TCP, MinSize: 1481, Verdict: netsim.Verdict{Action: netsim.Drop}})
		client, server := pair(t, a, b)
		write(t, server, "small") // passes
		require.Equal(t, "small", readN(t, client, 5))
		write(t, client, string(make([]byte, 5000))) // the other direction is clean
		readN(t, server, 5000)
		write(t, server, string(make([]byte, 5000)))
		client.SetReadDeadline(time.Now().Add(time.Minute))
		_, err := io.ReadFull(client, make([]byte, 1461))
		require.True(t, err.(net.Error).Timeout(), "a full segment stalls the stream")
		hole.Undo()
		client.SetReadDeadline(time.Time{})
		_, err = io.ReadFull(client, make([]byte, 5000))
		require.NoError(t, err)
	}, tenms)
}

func TestHealingDeliversEverythingOnceInOrder(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b")
		client, server := pair(t, a, b)
		var want bytes.Buffer
		done := make(chan struct{})
		go func() {
			defer close(done)
			for i := range 100 {
				line := bytes.Repeat([]byte{byte(i)}, 3000)
				want.Write(line)
				client.Write(line)
				time.Sleep(100 * ms)
			}
			client.CloseWrite()
		}()
		n.After(2*time.Second, "cut", func() { n.Link(a, b).Cut() })
		n.After(7*time.Second, "heal", n.Link(a, b).Heal)
		got, err := io.ReadAll(server)
		require.NoError(t, err)
		<-done
		require.True(t, bytes.Equal(want.Bytes(), got))
	}, tenms)
}

func TestBothEndsClosedIsGone(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		client, server := pair(t, n.Host("a"), n.Host("b"))
		client.CloseWrite()
		require.Equal(t, io.EOF, readError(t, server))
		server.CloseWrite()
		require.Equal(t, io.EOF, readError(t, client))
		time.Sleep(2 * time.Minute)
		for _, s := range n.Sockets() {
			t.Error("left behind: ", s)
		}
		require.NoError(t, client.Close())
		require.NoError(t, server.Close())
	})
}

func TestBytesReadableBeforeAReset(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		client, server := pair(t, n.Host("a"), n.Host("b"))
		write(t, client, "unread")
		write(t, server, "413 too large")
		time.Sleep(time.Second)
		server.Close() // with unread data: a reset
		time.Sleep(time.Second)
		require.Equal(t, "413 too large", readN(t, client, 13))
		require.ErrorIs(t, readError(t, client), syscall.ECONNRESET)
		_, err := client.Write([]byte("x"))
		require.ErrorIs(t, err, syscall.EPIPE)
	}, tenms)
}

func TestLingerZeroResets(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		client, server := pair(t, n.Host("a"), n.Host("b"))
		require.NoError(t, server.SetLinger(0))
		d := after(func() { require.NoError(t, server.Close()) })
		require.Zero(t, d)
		require.ErrorIs(t, readError(t, client), syscall.ECONNRESET)
	}, tenms)
}

func TestLingerWaitsForTheData(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b")
		client, server := pair(t, a, b)
		client.SetLinger(5)
		write(t, client, "x")
		d := after(func() { require.NoError(t, client.Close()) })
		within(t, 20*ms, d)
		require.Equal(t, "x", readN(t, server, 1))

		// It waits no longer than it was told; the data stays on its way.
		client, server = pair(t, a, b)
		client.SetLinger(5)
		n.Link(a, b).Cut()
		write(t, client, "late")
		d = after(func() { require.NoError(t, client.Close()) })
		within(t, 5*time.Second, d)
		n.Link(a, b).Heal()
		all, err := io.ReadAll(server)
		require.NoError(t, err)
		require.Equal(t, "late", string(all))
	}, tenms)
}

// TestLingerWithNothingLeft: a Close lingers for what is on its way, not for a
// stream that is over already, or that has nothing left to say.
func TestLingerWithNothingLeft(t *testing.T) {
	over := map[string]func(t *testing.T, client, server *netsim.Conn){
		"reset": func(t *testing.T, client, server *netsim.Conn) {
			require.NoError(t, server.SetLinger(0))
			require.NoError(t, server.Close())
			require.ErrorIs(t, readError(t, client), syscall.ECONNRESET)
		},
		"half closed": func(t *testing.T, client, server *netsim.Conn) {
			require.NoError(t, client.CloseWrite())
			require.ErrorIs(t, readError(t, server), io.EOF)
			time.Sleep(time.Second)
		},
		"closed on both sides": func(t *testing.T, client, server *netsim.Conn) {
			require.NoError(t, client.CloseWrite())
			require.ErrorIs(t, readError(t, server), io.EOF)
			require.NoError(t, server.Close())
			time.Sleep(time.Second)
		},
	}
	for name, end := range over {
		t.Run(name, func(t *testing.T) {
			netsim.Run(t, func(t *testing.T, n *netsim.Network) {
				client, server := pair(t, n.Host("a"), n.Host("b"))
				require.NoError(t, client.SetLinger(5))
				end(t, client, server)
				d := after(func() { require.NoError(t, client.Close()) })
				require.Less(t, d, ms)
			}, tenms)
		})
		t.Run(name+", then the network closed", func(t *testing.T) {
			netsim.Run(t, func(t *testing.T, n *netsim.Network) {
				client, server := pair(t, n.Host("a"), n.Host("b"))
				require.NoError(t, client.SetLinger(5))
				end(t, client, server)
				closed := make(chan error, 1)
				go func() { closed <- client.Close() }()
				synctest.Wait() // before anything that Close put into the queue
				require.NoError(t, n.Close())
				select {
				case err := <-closed:
					require.NoError(t, err)
				case <-time.After(time.Minute):
					t.Fatal("Close lingers on a network that is closed")
				}
			}, tenms)
		})
	}
}

func TestFINLost(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		client, server := pair(t, n.Host("a"), n.Host("b"))
		n.Apply(netsim.Rule{Kind: netsim.FIN, First: 1, Last: 2, Verdict: netsim.Verdict{Action: netsim.Drop}})
		start := time.Now()
		require.NoError(t, server.Close())
		client.SetReadDeadline(start.Add(400 * ms))
		require.True(t, readError(t, client).(net.Error).Timeout(), "half-open")
		client.SetReadDeadline(time.Time{})
		require.Equal(t, io.EOF, readError(t, client))
		d := time.Since(start)
		require.Greater(t, d, 600*ms)
		require.Less(t, d, 800*ms)
	}, tenms)
}

func TestHostPaused(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b")
		client, server := pair(t, a, b)
		udp, err := b.ListenPacket("udp", ":9")
		require.NoError(t, err)
		from, err := a.ListenPacket("udp", ":9")
		require.NoError(t, err)
		a.Pause()
		write(t, server, "for you")
		write(t, client, "from me")
		_, err = from.WriteTo([]byte("datagram"), udpAddr(b, 9))
		require.NoError(t, err)
		start := time.Now()
		n.After(time.Minute, "resume", a.Resume)
		udp.SetReadDeadline(start.Add(time.Second))
		_, _, err = udp.ReadFrom(make([]byte, 9))
		require.True(t, err.(net.Error).Timeout(), "nothing moves")
		require.Equal(t, "for you", readN(t, client, 7))
		within(t, time.Minute, time.Since(start))
		require.Equal(t, "from me", readN(t, server, 7))
		udp.SetReadDeadline(time.Time{})
		k, _, err := udp.ReadFrom(make([]byte, 9))
		require.NoError(t, err)
		require.Equal(t, 8, k)
		within(t, time.Minute+10*ms, time.Since(start))
	}, tenms)
}

func TestTimeoutsThatRanOutFireOnResume(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b")
		client, server := pair(t, a, b)
		server.SetKeepAlive(false)
		client.SetUserTimeout(10 * time.Second)
		n.Link(a, b).Cut()
		write(t, client, "x")
		time.Sleep(time.Second)
		start := time.Now()
		a.Pause()
		n.After(time.Hour, "resume", a.Resume)
		require.ErrorIs(t, readError(t, client), syscall.ETIMEDOUT)
		within(t, time.Hour, time.Since(start))
	})
}

func TestCrashedHostIsSilentThenResets(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b")
		client, server := pair(t, a, b)
		b.Crash()
		_, err := server.Write([]byte("x"))
		require.ErrorIs(t, err, net.ErrClosed)
		_, err = b.Dial("tcp", "a:7")
		require.ErrorIs(t, err, syscall.ENETDOWN)
		_, err = b.Listen("tcp", ":7")
		require.ErrorIs(t, err, syscall.ENETDOWN)
		write(t, client, "x")
		client.SetReadDeadline(time.Now().Add(time.Minute))
		require.True(t, readError(t, client).(net.Error).Timeout())
		client.SetReadDeadline(time.Time{})
		b.Restart()
		require.ErrorIs(t, readError(t, client), syscall.ECONNRESET, "the next retransmission is answered")
		echo(t, b, ":7")
		_, err = a.Dial("tcp", "b:7")
		require.NoError(t, err)
	}, tenms)
}

func TestWriteLeavesWithACrash(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b")
		l, err := b.ListenPacket("udp", ":9")
		require.NoError(t, err)
		s, err := a.ListenPacket("udp", ":9")
		require.NoError(t, err)
		_, err = s.WriteTo([]byte("x"), udpAddr(b, 9))
		require.NoError(t, err)
		a.Crash() // in the same instant
		l.SetReadDeadline(time.Now().Add(time.Second))
		_, _, err = l.ReadFrom(make([]byte, 1))
		require.True(t, err.(net.Error).Timeout())
	})
}

func TestPathReset(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b")
		client, server := pair(t, a, b)
		n.Path(b, a).Reset() // towards a
		require.ErrorIs(t, readError(t, client), syscall.ECONNRESET)
		server.SetReadDeadline(time.Now().Add(time.Second))
		require.True(t, readError(t, server).(net.Error).Timeout(), "the other end is not told")
		server.SetReadDeadline(time.Time{})
		write(t, server, "x")
		require.ErrorIs(t, readError(t, server), syscall.ECONNRESET)

		client, server = pair(t, a, b)
		n.Link(a, b).Reset()
		require.ErrorIs(t, readError(t, client), syscall.ECONNRESET)
		require.ErrorIs(t, readError(t, server), syscall.ECONNRESET)
	}, tenms)
}
