//go:build linux

package netsim_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// streamConn is what *net.TCPConn and *netsim.Conn have in common.
type streamConn interface {
	net.Conn
	CloseRead() error
	CloseWrite() error
	SetLinger(int) error
}

// parityPrograms are run on the machine's loopback and on a simulated one: what
// they log must be the same. a dialled, b accepted; await waits until a stream is
// in a state, with so many bytes to read.
var parityPrograms = map[string]func(log func(call string, result ...any), a, b streamConn, await func(c streamConn, state string, unread int)){
	"peer closes, then writes": func(log func(string, ...any), a, b streamConn, await func(streamConn, string, int)) {
		fmt.Fprint(b, "bye")
		log("close", b.Close())
		all, err := io.ReadAll(a)
		log("read all", string(all), err)
		for range 3 {
			_, err = a.Write([]byte("x"))
			log("write", err)
			await(a, "CLOSED", 0)
		}
		_, err = a.Read(make([]byte, 1))
		log("read", err)
		log("close", a.Close())
		log("close", a.Close())
	},
	"peer closes with unread data": func(log func(string, ...any), a, b streamConn, await func(streamConn, string, int)) {
		fmt.Fprint(a, "unread")
		fmt.Fprint(b, "413")
		await(a, "ESTAB", 3)
		await(b, "ESTAB", 6)
		log("close", b.Close())
		await(a, "CLOSED", 3)
		got := make([]byte, 10)
		for range 3 {
			k, err := a.Read(got)
			log("read", string(got[:k]), err)
		}
		_, err := a.Write([]byte("x"))
		log("write", err)
	},
	"write after a reset": func(log func(string, ...any), a, b streamConn, await func(streamConn, string, int)) {
		b.SetLinger(0)
		log("close", b.Close())
		await(a, "CLOSED", 0)
		for range 2 {
			_, err := a.Write([]byte("x"))
			log("write", err)
		}
		for range 2 {
			_, err := a.Read(make([]byte, 1))
			log("read", err)
		}
		log("close write", a.CloseWrite())
	},
	"linger 0 while reading": func(log func(string, ...any), a, b streamConn, await func(streamConn, string, int)) {
		b.SetLinger(0)
		go b.Close()
		_, err := a.Read(make([]byte, 1))
		log("read", err)
	},
	"half-close": func(log func(string, ...any), a, b streamConn, await func(streamConn, string, int)) {
		fmt.Fprint(a, "question")
		log("close write", a.CloseWrite())
		all, err := io.ReadAll(b)
		log("read all", string(all), err)
		_, err = a.Write([]byte("x"))
		log("write", err)
		log("close write again", a.CloseWrite())
		fmt.Fprint(b, "answer")
		log("close", b.Close())
		all, err = io.ReadAll(a)
		log("read all", string(all), err)
		_, err = a.Write([]byte("x"))
		log("write", err)
	},
	"close read": func(log func(string, ...any), a, b streamConn, await func(streamConn, string, int)) {
		log("close read", a.CloseRead())
		_, err := a.Read(make([]byte, 1))
		log("read", err)
		_, err = b.Write([]byte("x"))
		log("peer's write", err)
		await(a, "ESTAB", 1)
		k, err := a.Read(make([]byte, 1))
		log("read", k, err)
		_, err = a.Write([]byte("y"))
		log("write", err)
		k, err = b.Read(make([]byte, 1))
		log("peer's read", k, err)
	},
	"close both halves, then peer writes": func(log func(string, ...any), a, b streamConn, await func(streamConn, string, int)) {
		log("close read", a.CloseRead())
		log("close write", a.CloseWrite())
		await(b, "CLOSE-WAIT", 0)
		_, err := b.Write([]byte("x"))
		log("write", err)
		await(b, "CLOSED", 0)
		_, err = b.Write([]byte("x"))
		log("write", err)
	},
	"deadlines": func(log func(string, ...any), a, b streamConn, await func(streamConn, string, int)) {
		fmt.Fprint(b, "there")
		await(a, "ESTAB", 5)
		log("set", a.SetDeadline(time.Now().Add(-time.Second)))
		_, err := a.Read(make([]byte, 5))
		log("read", err, errors.Is(err, os.ErrDeadlineExceeded))
		_, err = a.Read(nil)
		log("read nothing", err)
		_, err = a.Write([]byte("x"))
		log("write", err)
		log("set", a.SetDeadline(time.Time{}))
		k, err := a.Read(make([]byte, 5))
		log("read", k, err)
		a.Close()
		log("set", a.SetDeadline(time.Time{}))
		_, err = a.Read(nil)
		log("read", err)
		_, err = a.Write(nil)
		log("write", err)
		log("close write", a.CloseWrite())
		log("close read", a.CloseRead())
	},
}

func TestParityWithLoopback(t *testing.T) {
	for name, program := range parityPrograms {
		compare(t, name, func(t *testing.T, s parityStack, log func(string, ...any)) {
			l, err := s.listen("tcp", "127.0.0.77:0") // where nobody else listens, so that it is closed afterwards
			require.NoError(t, err)
			a, err := s.dial("tcp", l.Addr().String())
			require.NoError(t, err)
			b, err := l.Accept()
			require.NoError(t, err)
			program(log, a.(streamConn), b.(streamConn), func(c streamConn, state string, unread int) {
				t.Helper()
				s.await(t, c, state, unread)
			})
			a.Close()
			b.Close()
			log("close", l.Close())
			_, err = l.Accept()
			log("accept", err)
			_, err = s.dial("tcp", l.Addr().String())
			log("dial", err)
			log("close", l.Close())
		})
	}
}

// TestParityOfUnspecified: a dial to the unspecified address reaches the host
// itself, in the family that the kernel picks.
func TestParityOfUnspecified(t *testing.T) {
	compare(t, "streams", func(t *testing.T, s parityStack, log func(string, ...any)) {
		for _, listens := range []string{"tcp", "tcp4", "tcp6"} {
			l, err := s.listen(listens, ":0")
			require.NoError(t, err)
			log(listens, l.Addr())
			_, port, err := net.SplitHostPort(l.Addr().String())
			require.NoError(t, err)
			for _, host := range []string{"", "0.0.0.0", "[::]", "127.0.0.1", "[::1]"} {
				for _, network := range []string{"tcp", "tcp4", "tcp6"} {
					c, err := s.dial(network, host+":"+port)
					log(network+" "+host, err)
					if err == nil {
						log("from, to", c.LocalAddr(), c.RemoteAddr())
						c.Close()
					}
				}
			}
			l.Close()
		}
	})
}
