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
	"google.golang.org/grpc/status"

	"github.com/seed-5a7f77c4/deadair/netsim"
)

// healthy asks a gRPC server how it is, watches it change, and loses it.
func healthy(t *testing.T, n *netsim.Network) {
	app, host := n.Host("app"), n.Host("server")
	srv := grpc.NewServer()
	state := health.NewServer()
	grpc_health_v1.RegisterHealthServer(srv, state)
	go srv.Serve(listen(t, host, ":50051"))
	defer srv.Stop()
	conn, err := grpc.NewClient("passthrough:///server:50051", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return app.DialContext(ctx, "tcp", address)
		}))
	require.NoError(t, err)
	defer conn.Close()
	client := grpc_health_v1.NewHealthClient(conn)
	for range 5 {
		resp, err := client.Check(t.Context(), new(grpc_health_v1.HealthCheckRequest))
		require.NoError(t, err)
		require.Equal(t, grpc_health_v1.HealthCheckResponse_SERVING, resp.Status)
	}
	ctx, cancel := context.WithCancel(t.Context())
	watch, err := client.Watch(ctx, new(grpc_health_v1.HealthCheckRequest))
	require.NoError(t, err)
	for _, want := range []grpc_health_v1.HealthCheckResponse_ServingStatus{grpc_health_v1.HealthCheckResponse_SERVING, grpc_health_v1.HealthCheckResponse_NOT_SERVING} {
		resp, err := watch.Recv()
		require.NoError(t, err)
		assert.Equal(t, want, resp.Status)
		state.SetServingStatus("", grpc_health_v1.HealthCheckResponse_NOT_SERVING)
	}
	cancel()

	n.Link(app, host).Cut()
	ctx, cancel = context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	_, err = client.Check(ctx, new(grpc_health_v1.HealthCheckRequest))
	assert.Equal(t, codes.DeadlineExceeded, status.Code(err))
}

func TestGRPC(t *testing.T) { netsim.Run(t, healthy, rough) }
