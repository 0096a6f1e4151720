package netsim_test

import (
	"fmt"
	"io"
	"net"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/seed-5a7f77c4/deadair/netsim"
)

// inBubble runs a benchmark's body inside a bubble. The body must not touch the
// benchmark's timer, b.Loop included: it would read virtual time. What it
// measures is the whole of it, b.N times the work and one set-up.
func inBubble(b *testing.B, f func(b *testing.B, n *netsim.Network), opts ...netsim.Option) {
	synctest.Test(new(testing.T), func(*testing.T) {
		n := netsim.New(append(opts, netsim.TraceLimit(0))...)
		defer n.Close()
		f(b, n)
	})
}

// connected gives both ends of a connection, for benchmarks.
func connected(b *testing.B, n *netsim.Network) (client, server net.Conn) {
	h := n.Host("server")
	l, err := h.Listen("tcp", ":1")
	if err != nil {
		b.Fatal(err)
	}
	accepted := make(chan net.Conn)
	go func() {
		c, _ := l.Accept()
		accepted <- c
	}()
	client, err = n.Host("client").Dial("tcp", "server:1")
	if err != nil {
		b.Fatal(err)
	}
	return client, <-accepted
}

var tenMillis = netsim.Defaults(netsim.Conditions{Latency: 10 * ms})

func BenchmarkRoundTrip64B(b *testing.B) {
	inBubble(b, func(b *testing.B, n *netsim.Network) {
		client, server := connected(b, n)
		go io.Copy(server, server)
		buf := make([]byte, 64)
		b.ReportAllocs()
		for range b.N {
			client.Write(buf)
			if _, err := io.ReadFull(client, buf); err != nil {
				b.Fatal(err)
			}
		}
	}, tenMillis)
}

func BenchmarkOneWay32KiB(b *testing.B) {
	inBubble(b, func(b *testing.B, n *netsim.Network) {
		client, server := connected(b, n)
		done := make(chan int64)
		go func() {
			var got int64
			buf := make([]byte, 32<<10)
			for {
				k, err := server.Read(buf)
				got += int64(k)
				if err != nil {
					break
				}
			}
			done <- got
		}()
		buf := make([]byte, 32<<10)
		b.SetBytes(int64(len(buf)))
		b.ReportAllocs()
		var sent int64
		for range b.N {
			k, _ := client.Write(buf)
			sent += int64(k)
		}
		client.Close()
		if got := <-done; got != sent {
			b.Fatalf("%d of %d bytes", got, sent)
		}
	}, tenMillis)
}

func BenchmarkConnectAcceptClose(b *testing.B) {
	inBubble(b, func(b *testing.B, n *netsim.Network) {
		h := n.Host("server")
		l, err := h.Listen("tcp", ":1")
		if err != nil {
			b.Fatal(err)
		}
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				c.Close()
			}
		}()
		client := n.Host("client")
		b.ReportAllocs()
		for range b.N {
			c, err := client.Dial("tcp", "server:1")
			if err != nil {
				b.Fatal(err)
			}
			io.Copy(io.Discard, c)
			c.Close()
		}
	}, netsim.Defaults(netsim.Conditions{Latency: ms}))
}

func BenchmarkIdleConnections(b *testing.B) {
	const conns = 100_000
	for b.Loop() {
		inBubble(b, func(b *testing.B, n *netsim.Network) {
			h := n.Host("server")
			l, err := h.Listen("tcp", ":1")
			if err != nil {
				b.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			goroutines := runtime.NumGoroutine()
			keep := make([]net.Conn, 0, 2*conns)
			for i := range conns / 20_000 {
				c := n.Host(fmt.Sprintf("client%d", i))
				for range 20_000 {
					a, err := c.Dial("tcp", "server:1")
					if err != nil {
						b.Fatal(err)
					}
					s, err := l.Accept()
					if err != nil {
						b.Fatal(err)
					}
					keep = append(keep, a, s)
				}
			}
			if more := runtime.NumGoroutine() - goroutines; more > 1 {
				b.Fatalf("%d goroutines more", more)
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/conns, "B/conn")
			runtime.KeepAlive(keep)
		})
	}
}

func BenchmarkTenThousandHosts(b *testing.B) {
	for b.Loop() {
		inBubble(b, func(b *testing.B, n *netsim.Network) {
			hosts := make([]*netsim.Host, 10_000)
			for i := range hosts {
				hosts[i] = n.Host(fmt.Sprintf("h%d", i))
			}
			l, _ := hosts[0].Listen("tcp", ":1")
			for _, h := range hosts[1:100] {
				c, err := h.Dial("tcp", "h0:1")
				if err != nil {
					b.Fatal(err)
				}
				s, _ := l.Accept()
				s.Close()
				c.Close()
			}
		}, tenMillis)
	}
}
