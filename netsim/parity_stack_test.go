//go:build linux

package netsim_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/seed-5a7f77c4/deadair/netsim"
)

// A parityStack is where a parity program runs: the machine's own loopback, or a
// simulated host's.
type parityStack struct {
	dial         func(network, address string) (net.Conn, error)
	listen       func(network, address string) (net.Listener, error)
	listenPacket func(network, address string) (net.PacketConn, error)
	// streamState is the state of a stream as ss(8) names it, and the bytes that
	// wait to be read.
	streamState func(c net.Conn) (state string, unread int)
	// arrived waits for what was sent to a packet connection, or for the ICMP
	// error about what it sent.
	arrived func(c net.Conn, what arrival)
	// setBacklog is listen(2) once more.
	setBacklog func(l net.Listener, backlog int)
	// deafDial dials where the answer is lost until hear is called, which is
	// when its SYN has been answered.
	deafDial func(address string) (hear func() (net.Conn, error))
	// heard reports whether a datagram waits to be read, or comes in a moment.
	heard func(c net.Conn) bool
}

type arrival int

const (
	aDatagram arrival = unix.POLLIN
	anError   arrival = unix.POLLERR
)

// await waits until a stream is in that state, with so many bytes to read; of a
// closed one they do not matter. It is how a program waits for what is on its
// way without knowing how long that takes.
func (s parityStack) await(t *testing.T, c net.Conn, want string, bytes int) {
	t.Helper()
	for start := time.Now(); time.Since(start) < 10*time.Second; runtime.Gosched() {
		state, unread := s.streamState(c)
		if state == want && (unread == bytes || want == "CLOSED") {
			return
		}
		if _, simulated := c.(*netsim.Conn); simulated {
			time.Sleep(ms)
		}
	}
	state, unread := s.streamState(c)
	require.FailNow(t, "the stream does not get there", "it is in %s with %d bytes unread, not in %s with %d", state, unread, want, bytes)
}

// control runs f on the descriptor of a socket of this machine.
func control(t *testing.T, c any, f func(fd int)) {
	raw, err := c.(syscall.Conn).SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(fd uintptr) { f(int(fd)) }))
}

// tcpStates are the states of include/net/tcp_states.h, as ss(8) names them.
var tcpStates = [...]string{
	1: "ESTAB", 2: "SYN-SENT", 3: "SYN-RECV", 4: "FIN-WAIT-1", 5: "FIN-WAIT-2", 6: "TIME-WAIT",
	7: "CLOSED", 8: "CLOSE-WAIT", 9: "LAST-ACK", 10: "LISTEN", 11: "CLOSING",
}

func realStack(t *testing.T) parityStack {
	return parityStack{
		dial: net.Dial, listen: net.Listen, listenPacket: net.ListenPacket,
		streamState: func(c net.Conn) (state string, unread int) {
			control(t, c, func(fd int) {
				info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
				require.NoError(t, err)
				state = tcpStates[info.State]
				unread, err = unix.IoctlGetInt(fd, unix.TIOCINQ)
				require.NoError(t, err)
			})
			return state, unread
		},
		arrived: func(c net.Conn, what arrival) { require.True(t, poll(t, c, what, 10*time.Second), "nothing arrives") },
		heard:   func(c net.Conn) bool { return poll(t, c, aDatagram, short) },
		setBacklog: func(l net.Listener, backlog int) {
			control(t, l, func(fd int) { require.NoError(t, unix.Listen(fd, backlog)) })
		},
		deafDial: func(address string) func() (net.Conn, error) {
			var socket int
			sent := make(chan struct{})
			d := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) error {
				return raw.Control(func(fd uintptr) {
					socket = int(fd)
					drop := unix.SockFilter{Code: unix.BPF_RET} // keep 0 bytes of each packet
					require.NoError(t, unix.SetsockoptSockFprog(socket, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &drop}))
					close(sent)
				})
			}}
			hear := inBackground(func() (net.Conn, error) { return d.Dial("tcp", address) })
			<-sent
			for state := 0; state != 2; runtime.Gosched() { // SYN-SENT: the loopback answered at once
				info, err := unix.GetsockoptTCPInfo(socket, unix.IPPROTO_TCP, unix.TCP_INFO)
				require.NoError(t, err)
				state = int(info.State)
			}
			return func() (net.Conn, error) {
				require.NoError(t, unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_DETACH_FILTER, 0))
				return hear()
			}
		},
	}
}

// inBackground starts a dial; what it gives waits for it.
func inBackground(dial func() (net.Conn, error)) (wait func() (net.Conn, error)) {
	type result struct {
		c   net.Conn
		err error
	}
	done := make(chan result, 1)
	go func() {
		c, err := dial()
		done <- result{c, err}
	}()
	return func() (net.Conn, error) { r := <-done; return r.c, r.err }
}

// poll is poll(2) on a socket of this machine.
func poll(t *testing.T, c any, what arrival, timeout time.Duration) (ready bool) {
	control(t, c, func(fd int) {
		fds := []unix.PollFd{{Fd: int32(fd), Events: int16(what)}}
		n, err := unix.Poll(fds, int(timeout.Milliseconds()))
		for err == unix.EINTR {
			n, err = unix.Poll(fds, int(timeout.Milliseconds()))
		}
		require.NoError(t, err)
		ready = n == 1
	})
	return ready
}

func simulatedStack(n *netsim.Network) parityStack {
	h := n.Host("host")
	return parityStack{
		dial: h.Dial, listen: h.Listen, listenPacket: h.ListenPacket,
		streamState: func(c net.Conn) (state string, unread int) {
			for _, s := range h.Sockets() {
				if s.Proto == netsim.TCP && s.Local.String() == c.LocalAddr().String() && s.Remote.String() == c.RemoteAddr().String() {
					return s.State, s.RecvQ
				}
			}
			return "CLOSED", 0
		},
		arrived:    func(net.Conn, arrival) { time.Sleep(ms) },
		setBacklog: func(l net.Listener, backlog int) { l.(*netsim.Listener).SetBacklog(backlog) },
		deafDial: func(address string) func() (net.Conn, error) {
			deaf := n.Apply(netsim.Rule{Kind: netsim.SYNACK, Verdict: drop})
			hear := inBackground(func() (net.Conn, error) { return h.Dial("tcp", address) })
			time.Sleep(ms)
			deaf.Undo()
			return hear
		},
		heard: func(c net.Conn) bool {
			time.Sleep(short)
			for _, s := range h.Sockets() {
				if s.Proto == netsim.UDP && s.Local.String() == c.LocalAddr().String() && s.RecvQ > 0 {
					return true
				}
			}
			return false
		},
	}
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
		call := &os.SyscallError{Syscall: "no call"}
		errors.As(err, &call)
		return op.Op + " " + op.Net + ": " + call.Syscall + ": " + errno.Error()
	}
	return op.Op + " " + op.Net + ": " + op.Err.Error()
}

// logger gives what a program logs its calls with, and where that is kept.
func logger() (log func(call string, result ...any), lines *[]string) {
	lines = new([]string)
	return func(call string, result ...any) {
		for i, r := range result {
			switch r := r.(type) {
			case nil:
				result[i] = "ok"
			case error:
				result[i] = outcome(r)
			case *net.UDPAddr:
				result[i] = r.IP.String()
			case *net.TCPAddr:
				result[i] = r.IP.String()
			}
		}
		*lines = append(*lines, fmt.Sprint(call, ": ", result))
	}, lines
}

// compare runs a program on both stacks; what it logs must be the same.
func compare(t *testing.T, name string, program func(t *testing.T, s parityStack, log func(call string, result ...any))) {
	log, want := logger()
	program(t, realStack(t), log)
	require.NotEmpty(t, *want, name)
	simLog, got := logger()
	netsim.Run(t, func(t *testing.T, n *netsim.Network) { program(t, simulatedStack(n), simLog) })
	require.Equal(t, *want, *got, name)
}
