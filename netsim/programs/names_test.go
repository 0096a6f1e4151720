package programs

import (
	"net"
	"testing"
	"time"

	"github.com/miekg/dns"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/netsim"
	"github.com/seed-5a7f77c4/deadair/netsim/dnsserver"
)

// resolved asks the simulated name server with Go's own resolver.
func resolved(t *testing.T, n *netsim.Network) {
	app, host := n.Host("app"), n.Host("dns")
	packets, err := host.ListenPacket("udp", ":53")
	require.NoError(t, err)
	srv := dnsserver.New(dnsserver.Zone{"app.example.": dnsserver.Addr("192.0.2.1")})
	srv.Start(packets, listen(t, host, ":53"))
	defer srv.Close()
	r := dnsserver.Resolver(app.DialContext, host.Addr().String())
	ips, err := r.LookupNetIP(t.Context(), "ip4", "app.example.")
	require.NoError(t, err)
	assert.Equal(t, "192.0.2.1", ips[0].Unmap().String())
	n.Link(app, host).Cut()
	_, err = r.LookupNetIP(t.Context(), "ip4", "app.example.")
	var dnsErr *net.DNSError
	require.ErrorAs(t, err, &dnsErr)
	assert.True(t, dnsErr.IsTimeout)
}

func TestResolverUnderLoss(t *testing.T) { netsim.Run(t, resolved, rough) }

// miekg asks a server of miekg/dns with its client, over UDP.
func miekg(t *testing.T, n *netsim.Network) {
	app, host := n.Host("app"), n.Host("dns")
	packets, err := host.ListenPacket("udp", ":53")
	require.NoError(t, err)
	srv := &dns.Server{PacketConn: packets, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		a := new(dns.Msg)
		a.SetReply(q)
		rr, err := dns.NewRR(q.Question[0].Name + " 60 IN A 192.0.2.1")
		if err != nil {
			return
		}
		a.Answer = []dns.RR{rr}
		w.WriteMsg(a)
	})}
	go srv.ActivateAndServe()
	defer packets.Close()
	ask := func(id uint16) error {
		c, err := app.Dial("udp", "dns:53")
		if err != nil {
			return err
		}
		defer c.Close()
		q := new(dns.Msg)
		q.SetQuestion("app.example.", dns.TypeA)
		q.Id = id
		_, _, err = (&dns.Client{Timeout: 2 * time.Second}).ExchangeWithConn(q, &dns.Conn{Conn: c})
		return err
	}
	answered := 0
	for i := range 20 {
		if ask(uint16(i)) == nil {
			answered++
		}
	}
	assert.Greater(t, answered, 10)
	n.Path(host, app).Cut()
	var nerr net.Error
	require.ErrorAs(t, ask(99), &nerr)
	assert.True(t, nerr.Timeout())
}

func TestMiekgDNSReplays(t *testing.T) { replays(t, miekg) }
