package blackhole_test

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/blackhole"
)

func TestStatusTellsHowEachTriggerStands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sw blackhole.Switch
		for want, trigger := range map[string]blackhole.Trigger{
			"6 bytes to go":             blackhole.AfterBytes(10),
			"active":                    blackhole.AfterBytes(4),
			"3 turns to go":             blackhole.AfterTurns(3),
			"at 00:01:00.000":           blackhole.After(time.Minute),
			"waiting":                   blackhole.OnMatch([]byte("z")),
			"switch off":                sw.Thrown(),
			"in the TLS handshake":      blackhole.AfterTLSHandshake(),
			"1 bytes to go":             blackhole.Then(blackhole.AfterBytes(3), blackhole.AfterBytes(2)),
			"5 bytes to go, switch off": blackhole.All(blackhole.AfterBytes(9), sw.Thrown()),
		} {
			fault := &blackhole.Fault{When: trigger, Do: blackhole.Swallow(), On: blackhole.Up}
			c, s := pipe(t, fault)
			collect(s)
			_, err := c.Write([]byte("ping"))
			require.NoError(t, err)
			status := c.(*blackhole.Conn).Faults()
			require.Len(t, status, 1)
			assert.Equal(t, want, status[0].Trigger)
			assert.Equal(t, want == "active", status[0].Active, want)
			assert.Equal(t, "swallow up", fault.String())
			read, written := c.(*blackhole.Conn).Traffic()
			assert.Zero(t, read)
			assert.EqualValues(t, 4, written)
			c.Close()
		}
	})
}

func TestDirectionsAreParsed(t *testing.T) {
	for _, d := range []blackhole.Direction{blackhole.Up, blackhole.Down, blackhole.Both} {
		got, err := blackhole.ParseDirection(d.String())
		require.NoError(t, err)
		assert.Equal(t, d, got)
	}
	_, err := blackhole.ParseDirection("left")
	require.ErrorContains(t, err, `direction "left"`)
	assert.Equal(t, "Direction(9)", blackhole.Direction(9).String())
}

func TestMethodsOfATCPConnectionGoThrough(t *testing.T) {
	c, s := loopback(t)
	tcp := c.(*blackhole.TCPConn)
	require.NoError(t, tcp.SetNoDelay(false))
	require.NoError(t, tcp.SetKeepAlive(true))
	require.NoError(t, tcp.SetKeepAlivePeriod(time.Minute))
	require.NoError(t, tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true}))
	require.NoError(t, tcp.SetReadBuffer(4096))
	require.NoError(t, tcp.SetWriteBuffer(4096))
	require.NoError(t, tcp.SetLinger(1))
	require.NoError(t, tcp.SetDeadline(time.Now().Add(time.Hour)))
	assert.IsType(t, &net.TCPConn{}, tcp.NetConn())
	require.NoError(t, tcp.CloseWrite())
	b, err := io.ReadAll(s)
	require.NoError(t, err)
	assert.Empty(t, b)
	require.NoError(t, tcp.CloseRead())
	_, err = tcp.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)

	l, err := net.Listen("unix", t.TempDir()+"/s")
	require.NoError(t, err)
	defer l.Close()
	raw, err := net.Dial("unix", l.Addr().String())
	require.NoError(t, err)
	unix, err := blackhole.Client(raw)
	require.NoError(t, err)
	defer unix.Close()
	assert.ErrorIs(t, unix.(*blackhole.TCPConn).SetNoDelay(true), errors.ErrUnsupported)
}

func TestTheEndOfAStreamMeetsTheFaults(t *testing.T) {
	for name, effect := range map[string]blackhole.Effect{"swallow": blackhole.Swallow(), "stall": blackhole.Stall()} {
		t.Run(name, func(t *testing.T) {
			var sw blackhole.Switch
			sw.On()
			c, s := loopback(t, &blackhole.Fault{When: sw.Thrown(), Do: effect, On: blackhole.Up})
			ended := make(chan error, 1)
			go func() { ended <- c.(*blackhole.TCPConn).CloseWrite() }()
			s.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
			_, err := s.Read(make([]byte, 1))
			require.ErrorIs(t, err, os.ErrDeadlineExceeded, "no FIN")
			sw.Off()
			require.NoError(t, <-ended)
			if name == "stall" {
				s.SetReadDeadline(time.Now().Add(10 * time.Second))
				_, err = s.Read(make([]byte, 1))
				require.ErrorIs(t, err, io.EOF, "the end was only held")
			}
		})
	}
}

func TestWriteDeadlineHoldsInAStall(t *testing.T) {
	c, _ := loopback(t, &blackhole.Fault{Do: blackhole.Stall(), On: blackhole.Up})
	require.NoError(t, c.SetWriteDeadline(time.Now().Add(time.Millisecond)))
	_, err := c.Write([]byte("x"))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
}

func TestWriteToCopiesThroughTheKernelUntilTheEnd(t *testing.T) {
	from, source := loopback(t, &blackhole.Fault{When: blackhole.AfterBytes(6), Do: blackhole.Swallow(), On: blackhole.Down})
	to, sink := tcpPair(t)
	copied := make(chan int64, 1)
	go func() {
		n, _ := io.Copy(to, from)
		to.Close()
		copied <- n
	}()
	source.Write([]byte("across the hole"))
	require.Eventually(t, func() bool { r, _ := from.(*blackhole.TCPConn).Traffic(); return r == 6 }, 10*time.Second, time.Millisecond)
	from.Close()
	assert.EqualValues(t, 6, <-copied)
	got, err := io.ReadAll(sink)
	require.NoError(t, err)
	assert.Equal(t, "across", string(got))
}
