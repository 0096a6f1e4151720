// Package bench measures the relay beside its peers, in one run: a plain splice of two sockets, toxiproxy, plain go-socks5.
package bench

import (
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	socks5 "github.com/armon/go-socks5"
	"github.com/rs/zerolog"
	"golang.org/x/net/proxy"
	"golang.org/x/sys/unix"

	"github.com/seed-5a7f77c4/deadair/socksrelay"
)

const blockSize = 1 << 20

func listen(b *testing.B, handle func(net.Conn)) string {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go handle(c)
		}
	}()
	return l.Addr().String()
}

// ends are a sender and a receiver of bytes, which cost time of their own beside what stands between them.
type ends struct {
	name string
	send func(b *testing.B) func(net.Conn) error // sends blockSize bytes
	sink func(net.Conn)                          // reads to the end and confirms it with one byte
}

// ways are the ends of a program: what most write and read (32 KiB, io.Copy's buffer), what a program for bulk does, and
// ends that leave everything to the kernel, so that next to nothing is measured but what stands between them.
var ways = []ends{
	{"32KiB", sendBlocks(32 << 10), readBlocks(32 << 10)},
	{"1MiB", sendBlocks(1 << 20), readBlocks(1 << 20)},
	{"kernel", sendFile, drain},
}

func sendBlocks(size int) func(*testing.B) func(net.Conn) error {
	return func(*testing.B) func(net.Conn) error {
		block := make([]byte, size)
		return func(c net.Conn) error {
			for range blockSize / size {
				if _, err := c.Write(block); err != nil {
					return err
				}
			}
			return nil
		}
	}
}

func readBlocks(size int) func(net.Conn) {
	return func(c net.Conn) {
		defer c.Close()
		block := make([]byte, size)
		for {
			if _, err := c.Read(block); err != nil {
				break
			}
		}
		c.Write([]byte{1})
	}
}

// sendFile sends a file with sendfile.
func sendFile(b *testing.B) func(net.Conn) error {
	f := must(os.Create(filepath.Join(b.TempDir(), "block")))
	b.Cleanup(func() { f.Close() })
	must(f.Write(make([]byte, blockSize)))
	return func(c net.Conn) error {
		must(f.Seek(0, io.SeekStart))
		_, err := c.(*net.TCPConn).ReadFrom(f)
		return err
	}
}

// drain throws everything away in the kernel.
func drain(c net.Conn) {
	defer c.Close()
	raw := must(c.(*net.TCPConn).SyscallConn())
	size := make([]byte, 1<<20) // nothing is written to it
	for n := 1; n > 0; {
		var err error
		raw.Read(func(fd uintptr) bool {
			n, _, err = unix.Recvfrom(int(fd), size, unix.MSG_TRUNC)
			return err != unix.EAGAIN
		})
	}
	c.Write([]byte{1})
}

func direct(_ *testing.B, to string) func() net.Conn {
	return func() net.Conn { return must(net.Dial("tcp", to)) }
}

func plainSplice(b *testing.B, to string) func() net.Conn {
	at := listen(b, func(c net.Conn) {
		defer c.Close()
		t, err := net.Dial("tcp", to)
		if err != nil {
			return
		}
		defer t.Close()
		done := make(chan struct{})
		go func() { io.Copy(t, c); t.(*net.TCPConn).CloseWrite(); close(done) }()
		io.Copy(c, t)
		<-done
	})
	return func() net.Conn { return must(net.Dial("tcp", at)) }
}

func throughToxiproxy(b *testing.B, to string) func() net.Conn {
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	p := toxiproxy.NewProxy(server, "bench", "127.0.0.1:0", to)
	if err := p.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(p.Stop)
	return func() net.Conn { return must(net.Dial("tcp", p.Listen)) }
}

func throughRelay(b *testing.B, to string) func() net.Conn {
	r, err := socksrelay.New(socksrelay.Config{Dial: new(net.Dialer).DialContext})
	if err != nil {
		b.Fatal(err)
	}
	l := must(net.Listen("tcp", "127.0.0.1:0"))
	go r.Serve(l)
	b.Cleanup(func() { r.Close() })
	return socksClient(l.Addr().String(), to)
}

func throughGoSocks5(b *testing.B, to string) func() net.Conn {
	s := must(socks5.New(&socks5.Config{Logger: log.New(io.Discard, "", 0)}))
	l := must(net.Listen("tcp", "127.0.0.1:0"))
	go s.Serve(l)
	b.Cleanup(func() { l.Close() })
	return socksClient(l.Addr().String(), to)
}

func socksClient(relay, to string) func() net.Conn {
	d := must(proxy.SOCKS5("tcp", relay, nil, &net.Dialer{}))
	return func() net.Conn { return must(d.Dial("tcp", to)) }
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

var paths = []struct {
	name string
	path func(*testing.B, string) func() net.Conn
}{{"direct", direct}, {"splice", plainSplice}, {"relay", throughRelay}, {"toxiproxy", throughToxiproxy}, {"go-socks5", throughGoSocks5}}

func BenchmarkThroughput(b *testing.B) {
	for _, way := range ways {
		for _, streams := range []int{1, 4} {
			for _, tc := range paths {
				b.Run(fmt.Sprintf("ends=%s/streams=%d/%s", way.name, streams, tc.name), func(b *testing.B) {
					open := tc.path(b, listen(b, way.sink))
					conns := make(chan net.Conn, streams)
					for range streams {
						conns <- open()
					}
					b.SetBytes(blockSize)
					before := processorTime()
					b.ResetTimer()
					var left atomic.Int64
					left.Store(int64(b.N))
					var all sync.WaitGroup
					for range streams {
						c, send := <-conns, way.send(b)
						all.Go(func() {
							defer c.Close()
							for left.Add(-1) >= 0 {
								if err := send(c); err != nil {
									b.Error(err)
									return
								}
							}
							c.(interface{ CloseWrite() error }).CloseWrite()
							io.ReadAll(c)
						})
					}
					all.Wait()
					b.ReportMetric(float64(processorTime()-before)/float64(b.N), "cpu-ns/op")
				})
			}
		}
	}
}

// processorTime is what this process has used so far, in nanoseconds.
func processorTime() int64 {
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		panic(err)
	}
	return used.Utime.Nano() + used.Stime.Nano()
}

func BenchmarkSetUp(b *testing.B) {
	for _, tc := range []struct {
		name string
		path func(*testing.B, string) func() net.Conn
	}{{"go-socks5", throughGoSocks5}, {"relay", throughRelay}} {
		b.Run(tc.name, func(b *testing.B) {
			open := tc.path(b, listen(b, drain))
			before := processorTime()
			for b.Loop() {
				c := open()
				c.(*net.TCPConn).SetLinger(0)
				c.Close()
			}
			b.ReportMetric(float64(processorTime()-before)/float64(b.N), "cpu-ns/op")
		})
	}
}
