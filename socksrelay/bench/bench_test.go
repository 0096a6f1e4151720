// Package bench measures the relay beside its peers, in one run: a plain splice of two sockets, toxiproxy, plain go-socks5.
package bench

import (
	"io"
	"log"
	"net"
	"os"
	"path/filepath"
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

// drain throws everything away, in the kernel, and confirms with one byte at the end. The two ends cost as little as
// they can, so that what is measured is what is between them.
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

// blockFile is a file of blockSize bytes.
func blockFile(b *testing.B) *os.File {
	f := must(os.Create(filepath.Join(b.TempDir(), "block")))
	b.Cleanup(func() { f.Close() })
	must(f.Write(make([]byte, blockSize)))
	return f
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

func BenchmarkThroughput(b *testing.B) {
	for _, tc := range []struct {
		name string
		path func(*testing.B, string) func() net.Conn
	}{{"splice", plainSplice}, {"relay", throughRelay}, {"toxiproxy", throughToxiproxy}, {"go-socks5", throughGoSocks5}} {
		b.Run(tc.name, func(b *testing.B) {
			c := tc.path(b, listen(b, drain))().(*net.TCPConn)
			defer c.Close()
			block := blockFile(b)
			b.SetBytes(blockSize)
			for b.Loop() {
				must(block.Seek(0, io.SeekStart))
				must(c.ReadFrom(block)) // sendfile
			}
			c.CloseWrite()
			io.ReadAll(c)
		})
	}
}

func BenchmarkSetUp(b *testing.B) {
	for _, tc := range []struct {
		name string
		path func(*testing.B, string) func() net.Conn
	}{{"go-socks5", throughGoSocks5}, {"relay", throughRelay}} {
		b.Run(tc.name, func(b *testing.B) {
			open := tc.path(b, listen(b, drain))
			for b.Loop() {
				c := open()
				c.(*net.TCPConn).SetLinger(0)
				c.Close()
			}
		})
	}
}
