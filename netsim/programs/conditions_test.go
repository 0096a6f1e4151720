package programs

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/seed-5a7f77c4/deadair/clock"
	"github.com/seed-5a7f77c4/deadair/netsim"
	"github.com/seed-5a7f77c4/deadair/scenarios/conditions"
)

// The conditions of package scenarios/conditions whose clients are grpc-go and
// quic-go.

var tenms = netsim.Defaults(netsim.Conditions{Latency: 10 * ms})

// grpc/grpc-go#7542: both directions of the one flow vanish with a call in
// flight, and TCP's keep-alive probes are off. That call and those after it fail
// at their deadlines until the kernel gives up the flow: after its
// retransmissions, or after the user time-out, or as soon as grpc's own keep-alive
// finds out. The next call then succeeds over a new connection.
func TestGRPCOnASilentFlow(t *testing.T) {
	for _, tc := range []struct {
		name        string
		userTimeout time.Duration
		keepalive   grpc.DialOption
		recovers    time.Duration // give or take a call
	}{
		{"by default", 0, grpc.EmptyDialOption{}, 945 * time.Second}, // the first retransmission after 924.6 s
		{"with a user time-out", 20 * time.Second, grpc.EmptyDialOption{}, 20 * time.Second},
		{"with grpc's keep-alive", 0, grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 5 * time.Second}), 15 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			netsim.Run(t, func(t *testing.T, n *netsim.Network) {
				app, api := n.Host("app"), n.Host("api")
				srv := grpc.NewServer()
				grpc_health_v1.RegisterHealthServer(srv, health.NewServer())
				go srv.Serve(listen(t, api, ":443"))
				defer srv.Stop()
				d := &netsim.Dialer{Host: app, KeepAlive: -1}
				conn, err := grpc.NewClient("passthrough:///api:443", grpc.WithTransportCredentials(insecure.NewCredentials()),
					tc.keepalive,
					grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
						c, err := d.DialContext(ctx, "tcp", address)
						if err == nil {
							err = c.(*netsim.Conn).SetUserTimeout(tc.userTimeout)
						}
						return c, err
					}))
				require.NoError(t, err)
				defer conn.Close()
				client := grpc_health_v1.NewHealthClient(conn)
				call := func() error {
					ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
					defer cancel()
					_, err := client.Check(ctx, new(grpc_health_v1.HealthCheckRequest))
					return err
				}
				require.NoError(t, call())
				start := time.Now()
				n.After(5*ms, "the request is on its way", func() { conditions.SilentFlow(n, "app>api:443#1") })
				assert.Equal(t, codes.DeadlineExceeded, status.Code(call()))
				assert.Equal(t, 5*time.Second, time.Since(start).Round(ms))
				failed := 1
				for err = call(); err != nil; err = call() {
					failed++
					if code := status.Code(err); code != codes.Unavailable {
						assert.Equal(t, codes.DeadlineExceeded, code)
					}
				}
				took := time.Since(start)
				assert.InDelta(t, tc.recovers, took, float64(6*time.Second))
				assert.InDelta(t, tc.recovers/(5*time.Second), failed, 2)
				assert.Equal(t, 2, opened(n, netsim.SYN))
			}, tenms)
		})
	}
}

// opened counts the packets of a kind that were sent for the first time.
func opened(n *netsim.Network, kind netsim.Kind) int {
	return n.Trace().Count(func(e netsim.Event) bool { return e.Kind == kind && !e.Again && e.Fate != netsim.Note })
}

// quicServer echoes streams.
func quicServer(t *testing.T, host *netsim.Host) *tls.Config {
	cert, roots := certificate(t, "api")
	packets, err := host.ListenPacket("udp", ":443")
	require.NoError(t, err)
	tr := &quic.Transport{Conn: packets}
	l, err := tr.Listen(&tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"echo"}}, &quic.Config{DisablePathMTUDiscovery: true, InitialPacketSize: 1200})
	require.NoError(t, err)
	t.Cleanup(func() {
		l.Close()
		tr.Close()
		packets.Close()
	})
	go func() {
		for {
			c, err := l.Accept(t.Context())
			if err != nil {
				return
			}
			go func() {
				for {
					s, err := c.AcceptStream(t.Context())
					if err != nil {
						return
					}
					io.Copy(s, s)
					s.Close()
				}
			}()
		}
	}()
	return &tls.Config{RootCAs: roots, ServerName: "api", NextProtos: []string{"echo"}}
}

// quicDial connects to the server on api.
func quicDial(t *testing.T, app, api *netsim.Host, tc *tls.Config, qc *quic.Config) (*quic.Conn, error) {
	packets, err := app.ListenPacket("udp", ":0")
	require.NoError(t, err)
	tr := &quic.Transport{Conn: packets}
	t.Cleanup(func() {
		tr.Close()
		packets.Close()
	})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	return tr.Dial(ctx, &net.UDPAddr{IP: api.Addr().AsSlice(), Port: 443}, tc, qc)
}

// echoed sends some bytes over a stream and reads them back.
func echoed(t *testing.T, c *quic.Conn, size int) error {
	s, err := c.OpenStreamSync(t.Context())
	if err != nil {
		return err
	}
	go func() {
		s.Write(make([]byte, size))
		s.Close()
	}()
	got, err := io.Copy(io.Discard, s)
	if err == nil && got != int64(size) {
		err = fmt.Errorf("%d bytes of %d came back", got, size)
	}
	return err
}

// quic-go/quic-go#5815: datagrams of more than 1232 bytes vanish, or are refused
// with EMSGSIZE. QUIC completes its handshake with 1200 and stays below; with
// packets of 1280 to begin with it does not get there.
func TestQUICAcrossASmallMTU(t *testing.T) {
	for _, tc := range []struct {
		name    string
		refused bool
		initial uint16
		fails   bool
	}{
		{"lost, 1200 bytes", false, 1200, false},
		{"refused, 1200 bytes", true, 1200, false},
		{"lost, 1280 bytes", false, 1280, true},
		{"refused, 1280 bytes", true, 1280, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			netsim.Run(t, func(t *testing.T, n *netsim.Network) {
				app, api := n.Host("app"), n.Host("api")
				conf := quicServer(t, api)
				if tc.refused {
					conditions.LargeDatagramsRefused(app.Interface("wifi", netsim.Wireless), 1232)
				} else {
					conditions.LargeDatagramsLost(n, n.Link(app, api), 1232).MayMiss() // it is for who tries to find out
				}
				start := time.Now()
				c, err := quicDial(t, app, api, conf, &quic.Config{InitialPacketSize: tc.initial})
				took := time.Since(start)
				t.Log(err, took)
				if tc.fails {
					assert.Error(t, err)
					return
				}
				require.NoError(t, err)
				defer c.CloseWithError(0, "")
				assert.NoError(t, echoed(t, c, 100_000))
			}, tenms)
		})
	}
}

// pion/dtls#479, with QUIC, which like DTLS has to repair its handshake itself:
// whichever datagram is lost, doubled or swapped with the next, the handshake
// completes and a stream passes.
func TestQUICHandshakeWithoutTheKthDatagram(t *testing.T) {
	for name, arm := range map[string]func(n *netsim.Network, l *netsim.Link, k int) *netsim.Fault{
		"lost": conditions.KthDatagramLost, "doubled": conditions.KthDatagramDoubled, "swapped": conditions.KthDatagramSwapped,
	} {
		for k := 1; k <= 10; k++ {
			t.Run(fmt.Sprintf("%s %d", name, k), func(t *testing.T) {
				netsim.Run(t, func(t *testing.T, n *netsim.Network) {
					app, api := n.Host("app"), n.Host("api")
					conf := quicServer(t, api)
					f := arm(n, n.Link(app, api), k)
					start := time.Now()
					c, err := quicDial(t, app, api, conf, &quic.Config{DisablePathMTUDiscovery: true})
					require.NoError(t, err)
					defer c.CloseWithError(0, "")
					took := time.Since(start)
					assert.NoError(t, echoed(t, c, 100))
					t.Log(took, time.Since(start), f.Hits())
				}, tenms)
			})
		}
	}
}

// pion/dtls#618, with QUIC: the first peer's Initial arrives and nothing after it;
// the second, a second later, is served within two round trips.
func TestQUICServesThePeerBehindASilentOne(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		first, second, api := n.Host("first"), n.Host("second"), n.Host("api")
		conf := quicServer(t, api)
		conditions.HelloThenSilence(n, first, api)
		done := make(chan error, 1)
		go func() {
			_, err := quicDial(t, first, api, conf, nil)
			done <- err
		}()
		time.Sleep(time.Second)
		start := time.Now()
		c, err := quicDial(t, second, api, conf, nil)
		require.NoError(t, err)
		assert.NoError(t, echoed(t, c, 100))
		assert.Less(t, time.Since(start), 60*ms)
		c.CloseWithError(0, "")
		assert.Error(t, <-done, "the first gets no further")
	}, tenms)
}

// quic-go/quic-go#5768: 10 MiB over 40 ms, on which large packets, above 1440
// bytes, lose one in a hundred and small ones none. Capped at 1440 the transfer
// is much faster.
func TestQUICWithACapOnThePacketSize(t *testing.T) {
	transfer := func(t *testing.T, size uint16) (took time.Duration, lost int) {
		netsim.Run(t, func(t *testing.T, n *netsim.Network) {
			app, api := n.Host("app"), n.Host("api")
			conf := quicServer(t, api)
			f := conditions.LossAbove(n, n.Link(app, api), 1412, 100).MayMiss()
			c, err := quicDial(t, app, api, conf, &quic.Config{InitialPacketSize: size, DisablePathMTUDiscovery: true})
			require.NoError(t, err)
			s, err := c.OpenUniStream()
			require.NoError(t, err)
			_ = s
			start := time.Now()
			assert.NoError(t, echoed(t, c, 1<<20))
			took, lost = time.Since(start), f.Hits()
			c.CloseWithError(0, "")
		}, netsim.Defaults(netsim.Conditions{Latency: 20 * ms}), netsim.Clock(clock.Budget(500*ms)))
		return took, lost
	}
	capped, none := transfer(t, 1412)
	free, some := transfer(t, 1452)
	t.Log(capped, free, some)
	assert.Zero(t, none)
	assert.Positive(t, some)
	assert.Greater(t, free, 2*capped)
}
