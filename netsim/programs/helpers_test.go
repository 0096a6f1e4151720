package programs

import (
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"testing"
	"testing/cryptotest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/netsim"
)

const (
	ms   = time.Millisecond
	runs = 100
)

// rough is a path on which something always goes wrong.
var rough = netsim.Defaults(netsim.Conditions{Latency: 10 * ms, Jitter: 3 * ms, Loss: 0.02})

// tenms is a path on which nothing goes wrong by itself.
var tenms = netsim.Defaults(netsim.Conditions{Latency: 10 * ms})

// replays checks that a program does the same in each of 100 runs.
func replays(t *testing.T, f func(t *testing.T, n *netsim.Network)) {
	t.Helper()
	netsim.CheckReplay(t, runs, func(t *testing.T, n *netsim.Network) {
		cryptotest.SetGlobalRandom(t, 1)
		f(t, n)
	}, rough, netsim.Strict())
}

// certificate mints one for the virtual date, with Ed25519: its signatures have
// one length and need no randomness.
func certificate(t *testing.T, names ...string) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, DNSNames: names,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(10, 0, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(nil, tmpl, tmpl, key.Public(), key)
	require.NoError(t, err)
	leaf, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

func listen(t *testing.T, h *netsim.Host, address string) net.Listener {
	t.Helper()
	l, err := h.Listen("tcp", address)
	require.NoError(t, err)
	return l
}

// opened counts the packets of a kind that were sent for the first time.
func opened(n *netsim.Network, kind netsim.Kind) int {
	return n.Trace().Count(func(e netsim.Event) bool { return e.Kind == kind && !e.Again && e.Fate != netsim.Note })
}
