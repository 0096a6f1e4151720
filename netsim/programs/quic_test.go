package programs

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/netsim"
)

// http3Echo posts over HTTP/3, until UDP alone goes silent.
func http3Echo(t *testing.T, n *netsim.Network) {
	app, host := n.Host("app"), n.Host("server")
	cert, roots := certificate(t, "server")
	sp, err := host.ListenPacket("udp", ":443")
	require.NoError(t, err)
	srv := &http3.Server{
		TLSConfig: http3.ConfigureTLSConfig(&tls.Config{Certificates: []tls.Certificate{cert}}),
		Handler:   http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) }),
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		srv.Serve(sp)
	}()
	cp, err := app.ListenPacket("udp", ":0")
	require.NoError(t, err)
	qt := &quic.Transport{Conn: cp}
	rt := &http3.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots},
		Dial: func(ctx context.Context, _ string, tc *tls.Config, qc *quic.Config) (*quic.Conn, error) {
			return qt.DialEarly(ctx, &net.UDPAddr{IP: host.Addr().AsSlice(), Port: 443}, tc, qc)
		},
	}
	defer func() {
		rt.Close()
		qt.Close()
		cp.Close()
		srv.Close()
		sp.Close()
		<-served
	}()
	post := func(ctx context.Context, body []byte) error {
		req, err := http.NewRequestWithContext(ctx, "POST", "https://server/", bytes.NewReader(body))
		if err != nil {
			return err
		}
		resp, err := rt.RoundTrip(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		got, err := io.ReadAll(resp.Body)
		if err == nil {
			assert.Equal(t, len(body), len(got))
		}
		return err
	}
	for range 3 {
		require.NoError(t, post(t.Context(), make([]byte, 50_000)))
	}
	n.Link(app, host).Cut()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	assert.ErrorIs(t, post(ctx, []byte("hello")), context.DeadlineExceeded)
}

func TestHTTP3(t *testing.T) { netsim.Run(t, http3Echo, rough) }
