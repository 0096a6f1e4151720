package conditions_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/clock"
	"github.com/seed-5a7f77c4/deadair/netsim"
	"github.com/seed-5a7f77c4/deadair/netsim/dnsserver"
	"github.com/seed-5a7f77c4/deadair/scenarios/conditions"
)

func nameServer(t *testing.T, h *netsim.Host, addr string) *dnsserver.Server {
	packets, err := h.ListenPacket("udp", ":53")
	require.NoError(t, err)
	s := dnsserver.New(dnsserver.Zone{"api.example.": dnsserver.Addr(addr)})
	s.Start(packets, listen(t, h, ":53"))
	t.Cleanup(func() { s.Close() })
	return s
}

// golang/go#43398 and cockroachdb/cockroach#84289.
func TestNames(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		app, dns := n.Host("app"), n.Host("dns")
		names := nameServer(t, dns, "192.0.2.1")
		r := dnsserver.Resolver(app.DialContext, dns.Addr().String())
		silent := conditions.NoAnswerForAAAA(names)
		var err error
		took := after(func() { _, err = r.LookupHost(t.Context(), "api.example.") })
		assert.NoError(t, err)
		assert.Equal(t, 10*time.Second, took.Round(100*ms))
		silent.Remove()
		conditions.NameUnknown(names, "api.example.")
		_, err = r.LookupHost(t.Context(), "api.example.")
		var failure *net.DNSError
		require.True(t, errors.As(err, &failure), "%v", err)
		assert.True(t, failure.IsNotFound)
	}, tenms)
}

// golang/go#57694: two silent servers cost 5 s each before the third is asked.
func TestSilentNameServer(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		app, good := n.Host("app"), n.Host("dns3")
		nameServer(t, good, "192.0.2.1")
		var servers []string
		for _, name := range []string{"dns1", "dns2"} {
			bad := n.Host(name)
			nameServer(t, bad, "192.0.2.1")
			conditions.SilentNameServer(n, bad)
			servers = append(servers, bad.Addr().String())
		}
		r := dnsserver.Resolver(app.DialContext, append(servers, good.Addr().String())...)
		var err error
		took := after(func() { _, err = r.LookupNetIP(t.Context(), "ip4", "api.example.") })
		assert.NoError(t, err)
		assert.Equal(t, 10*time.Second, took.Round(100*ms))
	}, tenms)
}

// tailscale/tailscale#1634: until the login only the portal answers.
func TestCaptivePortal(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		phone, api, portal, dns := n.Host("phone"), n.Host("api"), n.Host("portal"), n.Host("dns")
		names := nameServer(t, dns, api.Addr().String())
		page := func(code int) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(code) }
		}
		serve(t, listen(t, api, ":80"), page(http.StatusNoContent))
		serve(t, listen(t, portal, ":80"), page(http.StatusOK))
		r := dnsserver.Resolver(phone.DialContext, dns.Addr().String())
		probe := func() int {
			d := &netsim.Dialer{Host: phone, Resolver: r}
			tr := &http.Transport{DialContext: d.DialContext}
			defer tr.CloseIdleConnections()
			resp, err := (&http.Client{Transport: tr, Timeout: 5 * time.Second}).Get("http://api.example./generate_204")
			require.NoError(t, err)
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			return resp.StatusCode
		}
		p := conditions.CaptivePortal(n, phone, portal, dns, names)
		assert.Equal(t, http.StatusOK, probe())
		p.Login()
		assert.Equal(t, http.StatusNoContent, probe())
	}, tenms)
}

// golang/go#35012: the phone's timers stand still and its wall clock does not.
func TestSleepFor(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		phone, api := n.Host("phone"), n.Host("api")
		clk := clock.NewSkewed(clock.System, clock.Skew{})
		l := listen(t, api, ":80")
		defer l.Close()
		before, start := clk.Now(), time.Now()
		conditions.SleepFor(n, phone, clk, 15*time.Minute)
		clk.Sleep(time.Minute)
		assert.Equal(t, 15*time.Minute, time.Since(start).Round(ms), "the timer fires on waking")
		assert.Equal(t, 15*time.Minute, clk.Now().Sub(before).Round(ms), "a session's age shows on the wall clock")
		dial(t, phone, "api:80")
	}, tenms)
}
