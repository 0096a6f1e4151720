package netsim_test

import (
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/cryptotest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/netsim"
)

// certificate mints one for the virtual date, with Ed25519, whose signatures
// have one length.
func certificate(t *testing.T, names ...string) (tls.Certificate, *x509.CertPool) {
	key := ed25519.NewKeyFromSeed(make([]byte, 32))
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

// tenClients talk to one server over TLS, each with connections of its own.
func tenClients(h2 bool) func(t *testing.T, n *netsim.Network) {
	return func(t *testing.T, n *netsim.Network) {
		server := n.Host("server")
		cert, roots := certificate(t, "server")
		l, err := server.Listen("tcp", ":443")
		require.NoError(t, err)
		protos := new(http.Protocols)
		protos.SetHTTP1(true)
		protos.SetHTTP2(h2)
		srv := &http.Server{
			TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}}, Protocols: protos,
			Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "hello "+r.URL.Path) }),
		}
		go srv.ServeTLS(l, "", "")
		var wg sync.WaitGroup
		for i := range 10 {
			host := n.Host(fmt.Sprintf("client%d", i))
			wg.Add(1)
			n.Go(host.Name(), func() {
				defer wg.Done()
				tr := &http.Transport{DialContext: host.DialContext, TLSClientConfig: &tls.Config{RootCAs: roots}, Protocols: protos}
				defer tr.CloseIdleConnections()
				client := &http.Client{Transport: tr}
				for k := range 3 {
					resp, err := client.Get(fmt.Sprintf("https://server/%d/%d", i, k))
					if !assertNoError(t, err) {
						return
					}
					body, err := io.ReadAll(resp.Body)
					assertNoError(t, err)
					resp.Body.Close()
					if !strings.HasPrefix(string(body), "hello /") || (resp.ProtoMajor == 2) != h2 {
						t.Errorf("%s over %s", body, resp.Proto)
					}
					time.Sleep(50 * time.Millisecond)
				}
			})
		}
		wg.Wait()
		srv.Close()
	}
}

func assertNoError(t *testing.T, err error) bool {
	if err != nil {
		t.Error(err)
	}
	return err == nil
}

func TestHTTPOverTLSReplays(t *testing.T) {
	cryptotest.SetGlobalRandom(t, 1)
	netsim.CheckReplay(t, 20, tenClients(false), netsim.Defaults(netsim.Conditions{Latency: 10 * ms, Jitter: 3 * ms, Loss: 0.01}))
}

// An HTTP/2 server selects at random between the frames that it could write in
// one instant, so how they share TLS records differs from run to run: it works,
// and does not replay to the byte.
func TestHTTP2OverTLS(t *testing.T) {
	netsim.Run(t, tenClients(true), netsim.Defaults(netsim.Conditions{Latency: 10 * ms, Jitter: 3 * ms, Loss: 0.01}))
}

var _ net.Conn = (*netsim.Conn)(nil)
