package conditions_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/netsim"
	"github.com/seed-5a7f77c4/deadair/netsim/dnsserver"
	"github.com/seed-5a7f77c4/deadair/scenarios/conditions"
)

// A verdict of a phone about its network.
type verdict string

const (
	online  verdict = "online"
	captive verdict = "captive portal"
	down    verdict = "server down"
)

// probe asks for a page that is known to be empty, and for the server over TLS.
func probe(phone *netsim.Host, r *net.Resolver, roots *x509.CertPool) verdict {
	d := &netsim.Dialer{Host: phone, Resolver: r, Timeout: 3 * time.Second}
	tr := &http.Transport{
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			return d.DialContext(ctx, "tcp4", address)
		},
		TLSClientConfig: &tls.Config{RootCAs: roots},
	}
	defer tr.CloseIdleConnections()
	client := &http.Client{Transport: tr, Timeout: 5 * time.Second}
	resp, err := client.Get("http://api.example./generate_204")
	if err == nil {
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if resp.StatusCode != http.StatusNoContent {
			return captive
		}
	}
	switch err := get(client, "https://api.example./"); {
	case err == nil:
		return online
	case errors.As(err, new(*tls.CertificateVerificationError)):
		return captive
	default:
		return down
	}
}

// tailscale/tailscale#1634: until the login only the portal answers, whatever is
// asked for; 443 is dropped, or shows the portal's certificate; datagrams are
// dropped. A probe tells that from a server that is down, and says online with
// the first one after the login.
func TestCaptivePortal(t *testing.T) {
	for _, tc := range []struct {
		name  string
		ports []uint16
		tls   func(t *testing.T, err error)
	}{
		{"443 dropped", nil, func(t *testing.T, err error) {
			var timeout net.Error
			require.ErrorAs(t, err, &timeout)
			assert.True(t, timeout.Timeout())
		}},
		{"a wrong certificate", []uint16{443}, func(t *testing.T, err error) { assert.ErrorAs(t, err, new(*tls.CertificateVerificationError)) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			netsim.Run(t, func(t *testing.T, n *netsim.Network) {
				phone, api, portal, dns := n.Host("phone"), n.Host("api"), n.Host("portal"), n.Host("dns")
				names := nameServer(t, dns, api.Addr().String())
				page := func(code int) http.HandlerFunc {
					return func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(code) }
				}
				cert, roots := certificate(t, "api.example")
				other, _ := certificate(t, "portal")
				serve(t, listen(t, api, ":80"), page(http.StatusNoContent))
				serveTLS(t, listen(t, api, ":443"), cert, ok)
				serve(t, listen(t, portal, ":80"), page(http.StatusOK))
				serveTLS(t, listen(t, portal, ":443"), other, ok)
				r := dnsserver.Resolver(phone.DialContext, dns.Addr().String())
				p := conditions.CaptivePortal(n, phone, portal, dns, names, tc.ports...)
				assert.Equal(t, captive, probe(phone, r, roots))

				d := &netsim.Dialer{Host: phone, Resolver: r}
				tr := &http.Transport{DialContext: d.DialContext, TLSClientConfig: &tls.Config{RootCAs: roots}}
				tc.tls(t, get(&http.Client{Transport: tr, Timeout: 5 * time.Second}, "https://api.example./"))
				udp, err := phone.Dial("udp", "api:9")
				require.NoError(t, err)
				assert.ErrorContains(t, ask(udp, time.Second), "timeout", "not even refused")
				udp.Close()

				p.Login()
				assert.Equal(t, online, probe(phone, r, roots))
				api.Crash()
				assert.Equal(t, down, probe(phone, r, roots))
			}, tenms)
		})
	}
}
