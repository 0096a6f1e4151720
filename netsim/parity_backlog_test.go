//go:build linux

package netsim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestParityOfTheBacklog: one connection more than the backlog waits for Accept,
// beside one that is half-open. When the handshake of that one ends there is no
// room: its client believes that it is connected, and the server knows of it
// when it speaks, once there is room.
func TestParityOfTheBacklog(t *testing.T) {
	compare(t, "backlog", func(t *testing.T, s parityStack, log func(string, ...any)) {
		const backlog = 1
		l, err := s.listen("tcp", "127.0.0.78:0")
		require.NoError(t, err)
		defer l.Close()
		s.setBacklog(l, backlog)
		late := s.deafDial(l.Addr().String())
		for range backlog + 1 {
			c, err := s.dial("tcp", l.Addr().String())
			log("dial", err)
			require.NoError(t, err)
			defer c.Close()
		}
		c, err := late()
		log("handshake at a full queue", err)
		require.NoError(t, err)
		defer c.Close()
		log("set", c.SetReadDeadline(time.Now().Add(short)))
		_, err = c.Read(make([]byte, 1)) // until all that was on its way is there
		log("read", err)
		for range backlog + 1 {
			_, err := l.Accept()
			log("accept", err)
		}
		by := l.(interface{ SetDeadline(time.Time) error })
		log("set", by.SetDeadline(time.Now().Add(short)))
		_, err = l.Accept()
		log("accept", err)
		log("set", by.SetDeadline(time.Time{}))
		_, err = c.Write([]byte("late"))
		log("write", err)
		b, err := l.Accept()
		log("accept", err)
		require.NoError(t, err)
		log("it is the late one", b.RemoteAddr().String() == c.LocalAddr().String(), readN(t, b, 4))
	})
}
