package socksrelay_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"math/bits"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/proxy"

	"github.com/seed-5a7f77c4/deadair/blackhole"
	"github.com/seed-5a7f77c4/deadair/netsim"
	"github.com/seed-5a7f77c4/deadair/socksrelay"
)

// simulated runs a relay with a fault between a client and a server that echoes and then ends its stream; f gets the
// client's connection after the SOCKS handshake.
func simulated(t *testing.T, fault *socksrelay.Fault, f func(t *testing.T, c *netsim.Conn)) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		client, middle, server := n.Host("client"), n.Host("relay"), n.Host("server")
		l, err := server.Listen("tcp", ":7")
		require.NoError(t, err)
		go func() {
			if c, err := l.Accept(); err == nil {
				io.Copy(c, c)
				c.Close()
			}
		}()
		_, stop := relayOn(t, middle, socksrelay.Config{Faults: []*socksrelay.Fault{fault}})
		c := through(t, client)
		f(t, c)
		c.Close()
		stop()
		l.Close()
	})
}

func TestDataMeetsEveryEffect(t *testing.T) {
	const sent = "0123456789"
	for _, tc := range []struct {
		do   blackhole.Effect
		want string
		err  error // nil: the end of the stream
		min  time.Duration
	}{
		{blackhole.Swallow(), "", nil, 0}, // both streams end, so the hole has nothing left to hide
		{blackhole.Stall(), "", os.ErrDeadlineExceeded, 0},
		{blackhole.Delay(time.Second), sent, nil, time.Second},
		{blackhole.Throttle(5), sent, nil, time.Second},
		{blackhole.Slice(1, time.Second), sent, nil, 9 * time.Second},
		{blackhole.Truncate(4), "0123", nil, 0},
		{blackhole.Reset(), "", os.ErrClosed, 0},
		{blackhole.Close(), "", os.ErrClosed, 0},
		{blackhole.HalfClose(), "", nil, 0},
	} {
		t.Run(tc.do.String(), func(t *testing.T) {
			fault := &socksrelay.Fault{Phase: socksrelay.Data, Do: tc.do, On: blackhole.Down}
			if tc.err == os.ErrClosed {
				fault.When = blackhole.AfterTurns(1) // an RST at once would take the reply with it
			}
			simulated(t, fault, func(t *testing.T, c *netsim.Conn) {
				start := time.Now()
				c.Write([]byte(sent))
				c.CloseWrite()
				c.SetReadDeadline(start.Add(50 * time.Second))
				got, err := io.ReadAll(c)
				switch tc.err {
				case nil:
					require.NoError(t, err)
				case os.ErrDeadlineExceeded:
					require.ErrorIs(t, err, tc.err)
				default:
					require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "the connection ends")
				}
				assert.Equal(t, tc.want, string(got))
				assert.GreaterOrEqual(t, time.Since(start), tc.min)
				assert.Positive(t, fault.Hits())
			})
		})
	}
}

// TestCorruptDataHasOneWrongBitInEveryRun counts them, and holds that the seed alone says which.
func TestCorruptDataHasOneWrongBitInEveryRun(t *testing.T) {
	const size, run = 1000, 10
	through := func(seed uint64) (got []byte) {
		fault := &socksrelay.Fault{Phase: socksrelay.Data, Do: blackhole.Corrupt(seed, run), On: blackhole.Up}
		simulated(t, fault, func(t *testing.T, c *netsim.Conn) {
			c.Write(make([]byte, size))
			c.CloseWrite()
			c.SetReadDeadline(time.Now().Add(time.Minute))
			var err error
			got, err = io.ReadAll(c)
			require.NoError(t, err)
		})
		return got
	}
	got := through(7)
	require.Len(t, got, size)
	for i := range size / run {
		wrong := 0
		for _, b := range got[i*run : (i+1)*run] {
			wrong += bits.OnesCount8(b)
		}
		assert.Equal(t, 1, wrong, "run %d", i)
	}
	assert.Equal(t, got, through(7))
	assert.NotEqual(t, got, through(8))
}

// TestTheLogNamesTheFaultsOfAConnection holds that one can tell afterwards why a connection failed.
func TestTheLogNamesTheFaultsOfAConnection(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var log bytes.Buffer
		idle := &socksrelay.Fault{Name: "idle", Phase: socksrelay.Data, Do: blackhole.Stall(), Switch: new(blackhole.Switch)}
		r, err := socksrelay.New(socksrelay.Config{Dial: echo, Logger: slog.New(slog.NewTextHandler(&log, nil)),
			Faults: []*socksrelay.Fault{idle, socksrelay.BlackHole(blackhole.AfterExchanges(1))}})
		require.NoError(t, err)
		client, server := net.Pipe()
		go func() {
			d, _ := proxy.SOCKS5("tcp", "", nil, given{client})
			c, err := d.Dial("tcp", "r:1")
			if assert.NoError(t, err) {
				pingPong(t, c)
				c.Write([]byte("ping"))
			}
			synctest.Wait() // the relay has dealt with it
			r.Close()
		}()
		r.ServeConn(server)
		assert.Contains(t, log.String(), `faults="[black hole]"`)
		assert.Contains(t, log.String(), "destination=r:1")
	})
}

// reply runs the handshake by hand and returns what the relay replied to the request before it ended or fell silent.
func reply(t *testing.T, config socksrelay.Config) (got string, took time.Duration) {
	l := serve(t, config)
	c, err := l.dial(t.Context(), "", "")
	require.NoError(t, err)
	defer c.Close()
	c.SetDeadline(time.Now().Add(5 * time.Minute))
	_, err = c.Write([]byte("\x05\x01\x00"))
	require.NoError(t, err)
	_, err = io.ReadFull(c, make([]byte, 2))
	require.NoError(t, err)
	start := time.Now()
	_, err = c.Write([]byte("\x05\x01\x00\x03\x01r\x00\x50"))
	require.NoError(t, err)
	b, _ := io.ReadAll(io.LimitReader(c, 10))
	return string(b), time.Since(start)
}

func TestHalfAReplyAndAReplyInCrumbs(t *testing.T) {
	for name, tc := range map[string]struct {
		fault *socksrelay.Fault
		size  int
		took  time.Duration
	}{
		"half, then FIN":     {&socksrelay.Fault{Phase: socksrelay.Dial, When: blackhole.AfterBytes(5), Do: blackhole.Close(), On: blackhole.Down}, 5, 0},
		"half, then RST":     {&socksrelay.Fault{Phase: socksrelay.Dial, When: blackhole.AfterBytes(5), Do: blackhole.Reset(), On: blackhole.Down}, 5, 0},
		"half, then silence": {&socksrelay.Fault{Phase: socksrelay.Dial, When: blackhole.AfterBytes(5), Do: blackhole.Swallow(), On: blackhole.Down}, 5, 5 * time.Minute},
		"drip":               {&socksrelay.Fault{Phase: socksrelay.Reply, Do: blackhole.Slice(1, time.Second), On: blackhole.Down}, 10, 8 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				got, took := reply(t, socksrelay.Config{Faults: []*socksrelay.Fault{tc.fault}})
				assert.Len(t, got, tc.size)
				assert.Equal(t, tc.took, took)
			})
		})
	}
}

func TestNamesAreResolvedIfAskedTo(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var dialled []string
		l := serve(t, socksrelay.Config{
			Resolve: func(_ context.Context, name string) (net.IP, error) {
				if name == "nowhere" {
					return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
				}
				return net.IPv4(192, 0, 2, 7), nil
			},
			Dial: func(ctx context.Context, n, a string) (net.Conn, error) {
				dialled = append(dialled, a)
				return echo(ctx, n, a)
			},
		})
		for _, to := range []string{"r:80", "192.0.2.8:80"} {
			c, err := dial(l, nil, to)
			require.NoError(t, err)
			c.Close()
		}
		_, err := dial(l, nil, "nowhere:80")
		require.ErrorContains(t, err, "host unreachable")
		assert.Equal(t, []string{"192.0.2.7:80", "192.0.2.8:80"}, dialled)
	})
}

func TestWrongCredentialsAreRefused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := serve(t, socksrelay.Config{Valid: func(u, p string) bool { return u == "u" && p == "p" }})
		_, err := dial(l, &proxy.Auth{User: "u", Password: "x"}, "r:1")
		require.ErrorContains(t, err, "authentication failed")
		_, err = dial(l, nil, "r:1")
		require.Error(t, err, "none at all")
	})
}

// at is a connection with an address of another kind.
type at struct {
	net.Conn
	addr net.Addr
}

func (c at) LocalAddr() net.Addr { return c.addr }

func TestAddressesOfOtherTypesAreBoundAddressesToo(t *testing.T) {
	for want, addr := range map[string]net.Addr{
		"192.0.2.1:5": &net.UDPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 5},
		"192.0.2.1:6": &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 6},
		"0.0.0.0:0":   &net.UnixAddr{Name: "/s", Net: "unix"},
	} {
		bubble(t, func(t *testing.T) {
			l := serve(t, socksrelay.Config{Dial: func(ctx context.Context, n, a string) (net.Conn, error) {
				c, err := echo(ctx, n, a)
				return at{c, addr}, err
			}})
			c, err := dial(l, nil, "r:1")
			require.NoError(t, err)
			assert.Equal(t, want, c.(interface{ BoundAddr() net.Addr }).BoundAddr().String())
			c.Close()
		})
	}
}

func TestSpecsBecomeFaults(t *testing.T) {
	for _, text := range []string{
		`{"name":"a","phase":"data","effect":"slice","size":1,"pause":"1s","afterbytes":5}`,
		`{"name":"a","phase":"reply","effect":"delay","pause":"1s","on":"down","aftertime":"2s"}`,
		`{"name":"a","phase":"data","effect":"corrupt","size":9,"afterexchanges":1}`,
		`{"name":"a","phase":"dial","effect":"answer","early":true}`,
		`{"name":"a","phase":"reply","effect":"answer","bound":"[2001:db8::1]:9"}`,
	} {
		var s socksrelay.Spec
		require.NoError(t, json.Unmarshal([]byte(text), &s), text)
		f, err := s.Fault()
		require.NoError(t, err, text)
		assert.False(t, f.Switch.IsOn())
		back, err := json.Marshal(s)
		require.NoError(t, err)
		var again socksrelay.Spec
		require.NoError(t, json.Unmarshal(back, &again))
		assert.Equal(t, s, again)
	}
	for want, s := range map[string]socksrelay.Spec{
		"name is missing":           {},
		`phase "x"`:                 {Name: "a", Phase: "x"},
		`direction "x"`:             {Name: "a", Phase: "data", On: "x"},
		`effect "x" is unknown`:     {Name: "a", Phase: "data", Effect: "x"},
		"more than one of":          {Name: "a", Phase: "data", Effect: "stall", AfterBytes: 1, AfterTLS: true},
		"Throttle(0)":               {Name: "a", Phase: "data", Effect: "throttle"},
		"the Answer changes":        {Name: "a", Phase: "dial", Effect: "answer"},
		"AfterBytes(-1)":            {Name: "a", Phase: "data", Effect: "stall", AfterBytes: -1},
		"is not known in phase acc": {Name: "a", Phase: "accept", Effect: "stall", User: "u"},
	} {
		_, err := s.Fault()
		assert.ErrorContains(t, err, want)
	}
	var d socksrelay.Duration
	assert.ErrorContains(t, json.Unmarshal([]byte(`5`), &d), "want a string")
}

func TestAFaultThatIsRemovedSparesLaterConnections(t *testing.T) {
	r, err := socksrelay.New(socksrelay.Config{Dial: echo, Faults: []*socksrelay.Fault{socksrelay.Refuse(5)}})
	require.NoError(t, err)
	require.Len(t, r.Faults(), 1)
	assert.ErrorContains(t, r.Add(socksrelay.Refuse(5)), "the name is taken")
	assert.True(t, r.Remove("reply 5"))
	assert.False(t, r.Remove("reply 5"))
	assert.Empty(t, r.Faults())
	require.NoError(t, r.Close())
	require.ErrorIs(t, r.Close(), net.ErrClosed)
	require.ErrorIs(t, r.Serve(newMemory()), net.ErrClosed)
}
