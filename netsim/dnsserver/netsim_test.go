package dnsserver_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/netsim"
	"github.com/seed-5a7f77c4/deadair/netsim/dnsserver"
)

// On a simulated network: what the network does to packets happens to questions, too.
func TestOnASimulatedNetwork(t *testing.T) {
	dnsserver.Prime()
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		app, dns := n.Host("app"), n.Host("dns")
		n.Link(app, dns).SetConditions(netsim.Conditions{Latency: 10 * time.Millisecond})
		packets, err := dns.ListenPacket("udp", ":53")
		require.NoError(t, err)
		streams, err := dns.Listen("tcp", ":53")
		require.NoError(t, err)
		srv := dnsserver.New(zone)
		srv.Start(packets, streams)
		defer srv.Close()
		r := dnsserver.Resolver(app.DialContext, dns.Addr().String())
		about := func(want time.Duration, f func()) {
			assert.InDelta(t, want, lasts(f), float64(time.Microsecond)) // ties cost nanoseconds
		}

		about(20*time.Millisecond, func() {
			_, err = r.LookupHost(t.Context(), name)
			require.NoError(t, err)
		})
		silent := srv.On("*", dnsserver.AAAA, dnsserver.Silent)
		about(10*time.Second, func() {
			ips, err := r.LookupHost(t.Context(), name)
			require.NoError(t, err)
			assert.Len(t, ips, 2)
		})
		silent.Remove()
		srv.On(name, dnsserver.A, dnsserver.Truncated)
		about(60*time.Millisecond, func() { // over UDP, TCP's handshake, over TCP
			_, err = r.LookupNetIP(t.Context(), "ip4", name)
			require.NoError(t, err)
		})
		cut := n.Link(app, dns)
		cut.Cut()
		about(10*time.Second, func() { _, err = r.LookupHost(t.Context(), name) })
		assert.True(t, dnsError(t, err).IsTimeout)
		cut.Heal()
		srv.Close()
		time.Sleep(time.Second)
		_, err = r.LookupHost(t.Context(), name)
		assert.True(t, dnsError(t, err).IsTemporary, "the port is closed: refused, at once")
		assert.False(t, dnsError(t, err).IsTimeout)
	})
}
