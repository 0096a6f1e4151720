package programs

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"testing"
	"testing/cryptotest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/netsim"
	"github.com/seed-5a7f77c4/deadair/scenarios/ca"
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

// certificate mints one for the virtual date, and gives the pool that trusts it.
func certificate(t *testing.T, names ...string) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	authority, err := ca.New(1, time.Now())
	require.NoError(t, err)
	cert, err := authority.Leaf(names...)
	require.NoError(t, err)
	return cert, authority.Pool()
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
