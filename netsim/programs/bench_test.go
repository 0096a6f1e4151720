package programs

import (
	"fmt"
	"io"
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/marcopolo/simnet"

	"github.com/seed-5a7f77c4/deadair/netsim"
)

// bubble runs a benchmark's body in a bubble. The body leaves the benchmark's
// timer alone, b.Loop included, which would read virtual time there.
func bubble(f func()) { synctest.Test(new(testing.T), func(*testing.T) { f() }) }

func simulated(latency time.Duration, f func(n *netsim.Network)) {
	bubble(func() {
		n := netsim.New(netsim.Defaults(netsim.Conditions{Latency: latency}), netsim.TraceLimit(0))
		defer n.Close()
		f(n)
	})
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func BenchmarkRoundTrip(b *testing.B) {
	// Both sides use the same code, over packets or over a stream.
	packets := func(b *testing.B, a, z net.PacketConn) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			buf := make([]byte, 64)
			for {
				k, from, err := z.ReadFrom(buf)
				if err != nil {
					return
				}
				z.WriteTo(buf[:k], from)
			}
		}()
		buf, to := make([]byte, 64), z.LocalAddr()
		for range b.N {
			must(a.WriteTo(buf, to))
			_, _, err := a.ReadFrom(buf)
			must(0, err)
		}
		z.Close()
		<-done
	}
	b.Run("stream/ours", func(b *testing.B) {
		b.ReportAllocs()
		simulated(10*ms, func(n *netsim.Network) {
			l := must(n.Host("server").Listen("tcp", ":1"))
			c := must(n.Host("client").Dial("tcp", "server:1"))
			s := must(l.Accept())
			go io.Copy(s, s)
			buf := make([]byte, 64)
			for range b.N {
				must(c.Write(buf))
				must(io.ReadFull(c, buf))
			}
		})
	})
	b.Run("datagram/ours", func(b *testing.B) {
		b.ReportAllocs()
		simulated(10*ms, func(n *netsim.Network) {
			server, client := n.Host("server"), n.Host("client")
			packets(b, must(client.ListenPacket("udp", client.Addr().String()+":1")), must(server.ListenPacket("udp", server.Addr().String()+":1")))
		})
	})
	b.Run("datagram/simnet", func(b *testing.B) {
		b.ReportAllocs()
		bubble(func() {
			n := &simnet.Simnet{LatencyFunc: simnet.StaticLatency(10 * ms)}
			link := simnet.LinkSettings{BitsPerSecond: 1000 * simnet.Mibps}
			set := simnet.NodeBiDiLinkSettings{Downlink: link, Uplink: link}
			a := n.NewEndpoint(&net.UDPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1}, set)
			z := n.NewEndpoint(&net.UDPAddr{IP: net.IPv4(192, 0, 2, 2), Port: 1}, set)
			n.Start()
			packets(b, a, z)
			n.Close()
		})
	})
}

func BenchmarkOneWay32KiB(b *testing.B) {
	pour := func(b *testing.B, from, to net.Conn) {
		b.SetBytes(32 << 10)
		b.ReportAllocs()
		done := make(chan struct{})
		go func() {
			defer close(done)
			buf := make([]byte, 32<<10)
			for {
				if _, err := to.Read(buf); err != nil {
					return
				}
			}
		}()
		buf := make([]byte, 32<<10)
		for range b.N {
			must(from.Write(buf))
		}
		from.Close()
		<-done
	}
	b.Run("ours", func(b *testing.B) {
		simulated(10*ms, func(n *netsim.Network) {
			l := must(n.Host("server").Listen("tcp", ":1"))
			c := must(n.Host("client").Dial("tcp", "server:1"))
			pour(b, c, must(l.Accept()))
		})
	})
	b.Run("net.Pipe", func(b *testing.B) {
		bubble(func() {
			a, z := net.Pipe()
			pour(b, a, z)
		})
	})
}

func BenchmarkConnectAcceptClose(b *testing.B) {
	churn := func(b *testing.B, l net.Listener, dial func() (net.Conn, error)) {
		b.ReportAllocs()
		done := make(chan struct{})
		go func() {
			defer close(done)
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				c.Close()
			}
		}()
		for range b.N {
			c := must(dial())
			io.Copy(io.Discard, c)
			c.Close()
		}
		l.Close()
		<-done
	}
	b.Run("ours", func(b *testing.B) {
		simulated(ms, func(n *netsim.Network) {
			l := must(n.Host("server").Listen("tcp", ":1"))
			client := n.Host("client")
			churn(b, l, func() (net.Conn, error) { return client.Dial("tcp", "server:1") })
		})
	})
	b.Run("loopback", func(b *testing.B) {
		l := must(net.Listen("tcp", "127.0.0.1:0"))
		churn(b, l, func() (net.Conn, error) { return net.Dial("tcp", l.Addr().String()) })
	})
}

func BenchmarkIdleConnections(b *testing.B) {
	const conns, each = 100_000, 20_000
	for range b.N {
		var bytes float64
		var goroutines int
		simulated(0, func(n *netsim.Network) {
			l := must(n.Host("server").Listen("tcp", ":1"))
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			goroutines = -runtime.NumGoroutine()
			keep := make([]net.Conn, 0, 2*conns)
			for i := range conns / each {
				c := n.Host(fmt.Sprintf("client%d", i))
				for range each {
					keep = append(keep, must(c.Dial("tcp", "server:1")), must(l.Accept()))
				}
			}
			goroutines += runtime.NumGoroutine()
			runtime.GC()
			runtime.ReadMemStats(&after)
			bytes = float64(after.HeapAlloc-before.HeapAlloc) / conns
			runtime.KeepAlive(keep)
		})
		b.ReportMetric(bytes, "B/conn")
		b.ReportMetric(float64(max(goroutines, 0)), "goroutines")
	}
}

func BenchmarkTenThousandHosts(b *testing.B) {
	for range b.N {
		simulated(10*ms, func(n *netsim.Network) {
			for i := range 10_000 {
				n.Host(fmt.Sprintf("h%d", i))
			}
			must(n.Lookup("h0").Listen("tcp", ":1"))
			for i := range 100 {
				must(n.Lookup(fmt.Sprintf("h%d", i+1)).Dial("tcp", "h0:1"))
			}
		})
	}
}

// BenchmarkMillionEvents schedules a million events and lets them all happen.
func BenchmarkMillionEvents(b *testing.B) {
	for range b.N {
		simulated(0, func(n *netsim.Network) {
			const events = 1_000_000
			var left atomic.Int64
			left.Store(events)
			done := make(chan struct{})
			for i := range events {
				n.After(time.Duration(i*7919%1_000_003)*time.Microsecond, "event", func() {
					if left.Add(-1) == 0 {
						close(done)
					}
				})
			}
			<-done
		})
	}
}
