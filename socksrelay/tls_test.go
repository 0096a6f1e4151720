package socksrelay_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/blackhole"
	"github.com/seed-5a7f77c4/deadair/socksrelay"
)

func selfSigned(t testing.TB) tls.Certificate {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(100 * 24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}
}

func TestBlackHoleAfterTheTLSHandshake(t *testing.T) {
	server := &tls.Config{Certificates: []tls.Certificate{selfSigned(t)}}
	bubble(t, func(t *testing.T) {
		heard := make(chan int, 1)
		hole := socksrelay.BlackHole(blackhole.AfterTLSHandshake())
		l := serve(t, socksrelay.Config{Faults: []*socksrelay.Fault{hole}, Dial: func(context.Context, string, string) (net.Conn, error) {
			near, far := net.Pipe()
			go func() {
				defer far.Close()
				far.SetDeadline(time.Now().Add(2 * time.Hour))
				n, _ := tls.Server(far, server).Read(make([]byte, 10)) // shakes hands first
				heard <- n
			}()
			return near, nil
		}})
		raw, err := dial(l, nil, "r:1")
		require.NoError(t, err)
		c := tls.Client(raw, &tls.Config{InsecureSkipVerify: true})
		require.NoError(t, c.Handshake())
		_, err = c.Write([]byte("hello"))
		require.NoError(t, err)
		c.SetReadDeadline(time.Now().Add(time.Hour))
		_, err = c.Read(make([]byte, 1))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		assert.Zero(t, <-heard)
		assert.Positive(t, hole.Hits())
		raw.Close()
	})
}
