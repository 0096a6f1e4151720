package netsim_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/netsim"
)

// streamConn is what *net.TCPConn and *netsim.Conn have in common.
type streamConn interface {
	net.Conn
	CloseRead() error
	CloseWrite() error
	SetLinger(int) error
}

// outcome is an error in words that do not depend on addresses.
func outcome(err error) string {
	var errno syscall.Errno
	var op *net.OpError
	switch {
	case err == nil:
		return "ok"
	case err == io.EOF:
		return "EOF"
	case !errors.As(err, &op):
		return err.Error()
	case errors.As(err, &errno):
		var call *os.SyscallError
		errors.As(err, &call)
		return op.Op + ": " + call.Syscall + ": " + errno.Error()
	}
	return op.Op + ": " + op.Err.Error()
}

// settleDown is long enough for what was sent on a loopback to arrive.
const settleDown = 20 * time.Millisecond

// parityPrograms are run on the machine's loopback and on a simulated one: what
// they log must be the same. a dialled, b accepted.
var parityPrograms = map[string]func(log func(call string, result ...any), a, b streamConn){
	"peer closes, then writes": func(log func(string, ...any), a, b streamConn) {
		fmt.Fprint(b, "bye")
		log("close", b.Close())
		all, err := io.ReadAll(a)
		log("read all", string(all), err)
		for range 3 {
			_, err = a.Write([]byte("x"))
			log("write", err)
			time.Sleep(settleDown)
		}
		_, err = a.Read(make([]byte, 1))
		log("read", err)
		log("close", a.Close())
		log("close", a.Close())
	},
	"peer closes with unread data": func(log func(string, ...any), a, b streamConn) {
		fmt.Fprint(a, "unread")
		fmt.Fprint(b, "413")
		time.Sleep(settleDown)
		log("close", b.Close())
		time.Sleep(settleDown)
		got := make([]byte, 10)
		for range 3 {
			k, err := a.Read(got)
			log("read", string(got[:k]), err)
		}
		_, err := a.Write([]byte("x"))
		log("write", err)
	},
	"write after a reset": func(log func(string, ...any), a, b streamConn) {
		b.SetLinger(0)
		log("close", b.Close())
		time.Sleep(settleDown)
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
	"linger 0 while reading": func(log func(string, ...any), a, b streamConn) {
		b.SetLinger(0)
		time.AfterFunc(settleDown, func() { b.Close() })
		_, err := a.Read(make([]byte, 1))
		log("read", err)
	},
	"half-close": func(log func(string, ...any), a, b streamConn) {
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
	"close read": func(log func(string, ...any), a, b streamConn) {
		log("close read", a.CloseRead())
		_, err := a.Read(make([]byte, 1))
		log("read", err)
		_, err = b.Write([]byte("x"))
		log("peer's write", err)
		time.Sleep(settleDown)
		k, err := a.Read(make([]byte, 1))
		log("read", k, err)
		_, err = a.Write([]byte("y"))
		log("write", err)
		k, err = b.Read(make([]byte, 1))
		log("peer's read", k, err)
	},
	"close both halves, then peer writes": func(log func(string, ...any), a, b streamConn) {
		log("close read", a.CloseRead())
		log("close write", a.CloseWrite())
		time.Sleep(settleDown)
		_, err := b.Write([]byte("x"))
		log("write", err)
		time.Sleep(settleDown)
		_, err = b.Write([]byte("x"))
		log("write", err)
	},
	"deadlines": func(log func(string, ...any), a, b streamConn) {
		fmt.Fprint(b, "there")
		time.Sleep(settleDown)
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

func playOn(t *testing.T, dial func(network, address string) (net.Conn, error), listen func(network, address string) (net.Listener, error)) map[string][]string {
	logs := map[string][]string{}
	for name, program := range parityPrograms {
		l, err := listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		a, err := dial("tcp", l.Addr().String())
		require.NoError(t, err)
		b, err := l.Accept()
		require.NoError(t, err)
		log := func(call string, result ...any) {
			for i, r := range result {
				if err, ok := r.(error); ok || r == nil {
					result[i] = outcome(err)
				}
			}
			logs[name] = append(logs[name], fmt.Sprint(call, ": ", result))
		}
		program(log, a.(streamConn), b.(streamConn))
		a.Close()
		b.Close()
		log("close", l.Close())
		_, err = l.Accept()
		log("accept", err)
		_, err = dial("tcp", l.Addr().String())
		log("dial", err)
		log("close", l.Close())
	}
	return logs
}

func TestParityWithLoopback(t *testing.T) {
	want := playOn(t, net.Dial, net.Listen)
	var got map[string][]string
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		h := n.Host("host")
		got = playOn(t, h.Dial, h.Listen)
	})
	for name := range parityPrograms {
		require.Equal(t, want[name], got[name], name)
	}
}
