package blackhole_test

import (
	"crypto/tls"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/blackhole"
)

func TestWritesReachThePeerUpToTheByte(t *testing.T) {
	for name, tc := range map[string]struct {
		fault *blackhole.Fault
		want  string
	}{
		"swallow at once":        {&blackhole.Fault{Do: blackhole.Swallow(), On: blackhole.Up}, ""},
		"swallow after bytes":    {&blackhole.Fault{When: blackhole.AfterBytes(7), Do: blackhole.Swallow(), On: blackhole.Up}, "hello w"},
		"swallow other way":      {&blackhole.Fault{Do: blackhole.Swallow(), On: blackhole.Down}, "hello world"},
		"swallow on a match":     {&blackhole.Fault{When: blackhole.OnMatch([]byte("o w")), Do: blackhole.Swallow(), On: blackhole.Up}, "hello w"},
		"truncate each write":    {&blackhole.Fault{Do: blackhole.Truncate(2), On: blackhole.Up}, "hewo"},
		"slice":                  {&blackhole.Fault{Do: blackhole.Slice(1, time.Second), On: blackhole.Up}, "hello world"},
		"throttle":               {&blackhole.Fault{Do: blackhole.Throttle(2), On: blackhole.Up}, "hello world"},
		"delay":                  {&blackhole.Fault{Do: blackhole.Delay(time.Hour), On: blackhole.Both}, "hello world"},
		"close after bytes":      {&blackhole.Fault{When: blackhole.AfterBytes(3), Do: blackhole.Close(), On: blackhole.Up}, "hel"},
		"hole that heals":        {&blackhole.Fault{When: blackhole.Until(blackhole.AfterBytes(2), blackhole.AfterBytes(3)), Do: blackhole.Swallow(), On: blackhole.Up}, "he world"},
		"after a switch":         {&blackhole.Fault{When: new(blackhole.Switch).Thrown(), Do: blackhole.Swallow(), On: blackhole.Up}, "hello world"},
		"then":                   {&blackhole.Fault{When: blackhole.Then(blackhole.AfterBytes(2), blackhole.AfterBytes(2)), Do: blackhole.Swallow(), On: blackhole.Up}, "hell"},
		"all waits for the last": {&blackhole.Fault{When: blackhole.All(blackhole.AfterBytes(2), blackhole.AfterBytes(8)), Do: blackhole.Swallow(), On: blackhole.Up}, "hello wo"},
		"any takes the first":    {&blackhole.Fault{When: blackhole.Any(blackhole.AfterBytes(2), blackhole.AfterBytes(8)), Do: blackhole.Swallow(), On: blackhole.Up}, "he"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, s := pipe(t, tc.fault)
				got := collect(s)
				c.Write([]byte("hello "))
				c.Write([]byte("world"))
				c.Close()
				assert.Equal(t, tc.want, <-got)
			})
		})
	}
}

func TestHoleBlocksReadsUntilTheDeadlineAndStaysUsable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sw blackhole.Switch
		sw.On() // before the connection exists
		hole := &blackhole.Fault{When: sw.Thrown(), Do: blackhole.Swallow(), On: blackhole.Both}
		c, s := pipe(t, hole)
		start := time.Now()
		n, err := c.Write([]byte("gone"))
		require.NoError(t, err)
		require.Equal(t, 4, n)
		go s.Write([]byte("lost"))
		c.SetReadDeadline(start.Add(time.Minute))
		time.AfterFunc(30*time.Second, func() { c.SetReadDeadline(start.Add(2 * time.Minute)) })
		_, err = c.Read(make([]byte, 10))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		var ne net.Error
		require.ErrorAs(t, err, &ne)
		assert.True(t, ne.Timeout())
		assert.Equal(t, 2*time.Minute, time.Since(start), "the deadline was moved while the read was blocked")
		assert.EqualValues(t, 1, hole.Hits())
		assert.EqualValues(t, 8, hole.Bytes())

		sw.Off()
		c.SetReadDeadline(time.Time{})
		go s.Write([]byte("back"))
		buf := make([]byte, 10)
		n, err = c.Read(buf)
		require.NoError(t, err)
		assert.Equal(t, "back", string(buf[:n]))
	})
}

func TestCloseEndsWhatIsBlocked(t *testing.T) {
	for _, effect := range []blackhole.Effect{blackhole.Swallow(), blackhole.Stall(), blackhole.Delay(time.Hour)} {
		t.Run(effect.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, _ := pipe(t, &blackhole.Fault{Do: effect, On: blackhole.Both})
				time.AfterFunc(time.Second, func() { c.Close() })
				_, err := c.Read(make([]byte, 1))
				require.ErrorIs(t, err, net.ErrClosed)
				_, err = c.Write([]byte("x"))
				require.ErrorIs(t, err, net.ErrClosed)
				require.ErrorIs(t, c.Close(), net.ErrClosed)
			})
		})
	}
}

func TestSwitchReachesABlockedWrite(t *testing.T) {
	for name, open := range map[string]func(testing.TB, ...*blackhole.Fault) (net.Conn, net.Conn){"pipe": pipe, "tcp": loopback} {
		t.Run(name, func(t *testing.T) {
			var sw blackhole.Switch
			c, _ := open(t, &blackhole.Fault{When: sw.Thrown(), Do: blackhole.Swallow(), On: blackhole.Up})
			done := make(chan error, 1)
			go func() {
				_, err := c.Write(make([]byte, 32<<20)) // more than any buffer takes, nobody reads
				done <- err
			}()
			sw.On()
			require.NoError(t, <-done)
		})
	}
}

func TestStallLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sw blackhole.Switch
		c, s := pipe(t, &blackhole.Fault{When: blackhole.All(blackhole.AfterBytes(3), sw.Thrown()), Do: blackhole.Stall(), On: blackhole.Both})
		sw.On()
		got := collect(s)
		start := time.Now()
		time.AfterFunc(time.Minute, sw.Off)
		_, err := c.Write([]byte("abcdef"))
		require.NoError(t, err)
		assert.Equal(t, time.Minute, time.Since(start))
		c.Close()
		assert.Equal(t, "abcdef", <-got)
	})
}

func TestTimeActsOnAnIdleConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := pipe(t, &blackhole.Fault{When: blackhole.After(5 * time.Second), Do: blackhole.Reset(), On: blackhole.Up})
		start := time.Now()
		_, err := s.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
		assert.Equal(t, 5*time.Second, time.Since(start))
		_, err = c.Read(make([]byte, 1))
		require.ErrorIs(t, err, syscall.ECONNRESET)
		_, err = c.Write([]byte("x"))
		require.ErrorIs(t, err, syscall.ECONNRESET)
		require.NoError(t, c.Close())
	})
}

func TestResetIsARealRST(t *testing.T) {
	c, s := loopback(t, &blackhole.Fault{When: blackhole.AfterBytes(4), Do: blackhole.Reset(), On: blackhole.Up})
	_, err := c.Write([]byte("1234"))
	require.NoError(t, err)
	_, err = io.ReadAll(s)
	require.ErrorIs(t, err, syscall.ECONNRESET)
}

func TestHalfCloseIsKept(t *testing.T) {
	c, s := loopback(t, &blackhole.Fault{When: blackhole.AfterBytes(4), Do: blackhole.HalfClose(), On: blackhole.Up})
	_, err := c.Write([]byte("123456"))
	require.ErrorIs(t, err, syscall.EPIPE)
	b, err := io.ReadAll(s)
	require.NoError(t, err)
	assert.Equal(t, "1234", string(b))
	go func() { s.Write([]byte("answer")); s.Close() }()
	b, err = io.ReadAll(c)
	require.NoError(t, err)
	assert.Equal(t, "answer", string(b))
}

func TestExchangesCountTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := pipe(t, &blackhole.Fault{When: blackhole.AfterExchanges(2), Do: blackhole.Swallow(), On: blackhole.Both})
		go io.Copy(s, s)
		buf := make([]byte, 8)
		for range 2 {
			_, err := c.Write([]byte("ping"))
			require.NoError(t, err)
			_, err = io.ReadFull(c, buf[:4])
			require.NoError(t, err)
		}
		_, err := c.Write([]byte("ping"))
		require.NoError(t, err)
		c.SetReadDeadline(time.Now().Add(time.Hour))
		_, err = c.Read(buf)
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	})
}

func TestTLSHandshakePassesAndNothingElse(t *testing.T) {
	for name, config := range map[string]*tls.Config{
		"1.2":                    {MaxVersion: tls.VersionTLS12},
		"1.3":                    {MinVersion: tls.VersionTLS13},
		"1.3 client certificate": {MinVersion: tls.VersionTLS13, ClientAuth: tls.RequireAnyClientCert},
		"1.3 hello retry":        {MinVersion: tls.VersionTLS13, CurvePreferences: []tls.CurveID{tls.CurveP521}},
	} {
		t.Run(name, func(t *testing.T) {
			hole := &blackhole.Fault{When: blackhole.AfterTLSHandshake(), Do: blackhole.Swallow(), On: blackhole.Both}
			c, s := loopback(t, hole)
			server := config.Clone()
			server.Certificates = []tls.Certificate{certificate(t)}
			shaken := make(chan error, 1)
			go func() { shaken <- tls.Server(s, server).Handshake() }()
			client := tls.Client(c, &tls.Config{InsecureSkipVerify: true, Certificates: server.Certificates})
			require.NoError(t, client.Handshake())
			require.NoError(t, <-shaken)
			_, err := client.Write([]byte("hello"))
			require.NoError(t, err)
			client.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
			_, err = client.Read(make([]byte, 1))
			require.ErrorIs(t, err, os.ErrDeadlineExceeded)
			s.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
			n, err := s.Read(make([]byte, 100))
			require.ErrorIs(t, err, os.ErrDeadlineExceeded)
			assert.Zero(t, n, "what the client wrote after the handshake has vanished")
			assert.Positive(t, hole.Hits())
		})
	}
}

func TestImpossibleFaultsAreNamed(t *testing.T) {
	swallow := blackhole.Swallow()
	for want, f := range map[string]*blackhole.Fault{
		"fault is nil":            nil,
		"no effect":               {On: blackhole.Up},
		"no direction":            {Do: swallow},
		"AfterBytes(-1)":          {Do: swallow, On: blackhole.Up, When: blackhole.AfterBytes(-1)},
		"AfterExchanges(-2)":      {Do: swallow, On: blackhole.Up, When: blackhole.AfterExchanges(-2)},
		"After(-1s)":              {Do: swallow, On: blackhole.Up, When: blackhole.After(-time.Second)},
		"OnMatch: the pattern is": {Do: swallow, On: blackhole.Up, When: blackhole.OnMatch(nil)},
		"All: no triggers":        {Do: swallow, On: blackhole.Up, When: blackhole.All()},
		"Then: AfterBytes(-3)":    {Do: swallow, On: blackhole.Up, When: blackhole.Then(blackhole.AfterBytes(-3), blackhole.AtOnce())},
		"the switch is nil":       {Do: swallow, On: blackhole.Up, When: (*blackhole.Switch)(nil).Thrown()},
		"Delay(0s)":               {Do: blackhole.Delay(0), On: blackhole.Up},
		"Throttle(0)":             {Do: blackhole.Throttle(0), On: blackhole.Up},
		"Slice(0, 1s)":            {Do: blackhole.Slice(0, time.Second), On: blackhole.Up},
		"Corrupt(1, 0)":           {Do: blackhole.Corrupt(1, 0), On: blackhole.Up},
		"Truncate(-1)":            {Do: blackhole.Truncate(-1), On: blackhole.Up},
		"has no CloseWrite":       {Do: blackhole.HalfClose(), On: blackhole.Up},
	} {
		a, b := net.Pipe()
		_, err := blackhole.Client(a, f)
		assert.ErrorContains(t, err, want)
		a.Close()
		b.Close()
	}
}

func TestCopyLeavesTheKernelWhenASwitchIsThrown(t *testing.T) {
	var sw blackhole.Switch
	hole := &blackhole.Fault{When: sw.Thrown(), Do: blackhole.Swallow(), On: blackhole.Up}
	out, sink := loopback(t, hole)
	in, source := tcpPair(t)
	copied := make(chan int64, 1)
	go func() { n, _ := io.Copy(out, in); copied <- n }()
	buf := make([]byte, 100)
	source.Write([]byte("before"))
	n, err := sink.Read(buf)
	require.NoError(t, err)
	require.Equal(t, "before", string(buf[:n]))
	sw.On()
	source.Write([]byte("during"))
	require.Eventually(t, func() bool { return hole.Bytes() == 6 }, 10*time.Second, time.Millisecond)
	sw.Off()
	source.Write([]byte("after"))
	n, err = sink.Read(buf)
	require.NoError(t, err)
	assert.Equal(t, "after", string(buf[:n]))
	source.Close()
	assert.EqualValues(t, len("beforeduringafter"), <-copied)
}

func TestByteCountsHoldInTheKernel(t *testing.T) {
	out, sink := loopback(t, &blackhole.Fault{When: blackhole.AfterBytes(100_000), Do: blackhole.Close(), On: blackhole.Up})
	in, source := tcpPair(t)
	go io.Copy(out, in)
	go source.Write([]byte(strings.Repeat("x", 200_000)))
	b, err := io.ReadAll(sink)
	require.NoError(t, err)
	assert.Len(t, b, 100_000)
}
