package blackhole

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

const canPeek = true

// peek waits until bytes have arrived at c, or its end, and returns how many; 0 is the end or an error that the next
// Read meets. It takes nothing and honours the read deadline.
func peek(c *net.TCPConn) (int, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var n int
	var one [1]byte
	waitErr := raw.Read(func(fd uintptr) bool {
		if n, err = unix.IoctlGetInt(int(fd), unix.TIOCINQ); err != nil || n > 0 {
			return true
		}
		_, _, err = unix.Recvfrom(int(fd), one[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		if err == syscall.EAGAIN || err == syscall.EINTR {
			return false
		}
		if err == nil { // one byte arrived between the two calls, or the end
			n, err = unix.IoctlGetInt(int(fd), unix.TIOCINQ)
		}
		return true
	})
	if waitErr != nil {
		return 0, waitErr
	}
	return n, err
}
