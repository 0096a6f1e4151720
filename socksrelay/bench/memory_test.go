package bench

import (
	"context"
	"io"
	"net"
	"runtime"
	"testing"
	"time"

	"golang.org/x/net/proxy"

	"github.com/seed-5a7f77c4/deadair/blackhole"
	"github.com/seed-5a7f77c4/deadair/socksrelay"
)

type fixed struct{ net.Conn }

func (f fixed) Dial(string, string) (net.Conn, error) { return f.Conn, nil }

// BenchmarkBlackHoled holds 10 000 connections, in memory, that went silent after one exchange, and reports what each
// costs: heap and stacks of both ends of both connections, the relay between them, and the echo server's goroutine.
func BenchmarkBlackHoled(b *testing.B) {
	const count = 10_000
	for b.Loop() {
		relay := must(socksrelay.New(socksrelay.Config{
			Dial: func(context.Context, string, string) (net.Conn, error) {
				near, far := net.Pipe()
				go func() {
					defer far.Close()
					buf := make([]byte, 64)
					for {
						n, err := far.Read(buf)
						if err != nil {
							return
						}
						far.Write(buf[:n])
					}
				}()
				return near, nil
			},
			Faults: []*socksrelay.Fault{socksrelay.BlackHole(blackhole.AfterExchanges(1))},
		}))
		before := memory()
		conns := make([]net.Conn, count)
		buf := make([]byte, 4)
		for i := range conns {
			client, server := net.Pipe()
			go relay.ServeConn(server)
			d := must(proxy.SOCKS5("tcp", "", nil, fixed{client}))
			conns[i] = must(d.Dial("tcp", "r:1"))
			must(conns[i].Write([]byte("ping")))
			must(io.ReadFull(conns[i], buf))
			must(conns[i].Write([]byte("gone")))
		}
		for i := range conns {
			conns[i].SetReadDeadline(time.Now())
			if _, err := conns[i].Read(buf); err == nil {
				b.Fatal("an answer came through the hole")
			}
		}
		if n := len(relay.Connections()); n != count {
			b.Fatalf("%d connections are open, want %d", n, count)
		}
		each := float64(memory()-before) / count / 1024
		b.ReportMetric(each, "KiB/conn")
		if each > 40 {
			b.Errorf("%.1f KiB each, want at most 40", each)
		}
		relay.Close()
	}
}

func memory() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}
