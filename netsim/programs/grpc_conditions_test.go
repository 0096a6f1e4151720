package programs

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/seed-5a7f77c4/deadair/netsim"
	"github.com/seed-5a7f77c4/deadair/scenarios/conditions"
)

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
