package conditions_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/netsim"
	"github.com/seed-5a7f77c4/deadair/netsim/dnsserver"
	"github.com/seed-5a7f77c4/deadair/scenarios/conditions"
)

func nameServer(t *testing.T, h *netsim.Host, addrs ...string) *dnsserver.Server {
	packets, err := h.ListenPacket("udp", ":53")
	require.NoError(t, err)
	s := dnsserver.New(dnsserver.Zone{"api.example.": dnsserver.Addr(addrs...)})
	s.Start(packets, listen(t, h, ":53"))
	t.Cleanup(func() { s.Close() })
	return s
}

// lookup asks for a name and says how long that took.
func lookup(r *net.Resolver, name string) (took time.Duration, failure *net.DNSError) {
	took = after(func() {
		_, err := r.LookupHost(context.Background(), name)
		errors.As(err, &failure)
	})
	return took, failure
}

// golang/go#43398 and cockroachdb/cockroach#84289: what the resolver makes of a
// server that keeps silent about one type or all, that fails, and that does not
// know the name.
func TestNames(t *testing.T) {
	for _, tc := range []struct {
		name  string
		arm   func(n *netsim.Network, dns *netsim.Host, names *dnsserver.Server)
		takes time.Duration
		is    *net.DNSError // its flags alone; nil is success
	}{
		{"A after 1 ms, AAAA never", func(_ *netsim.Network, _ *netsim.Host, names *dnsserver.Server) { conditions.NoAnswerForAAAA(names) },
			10 * time.Second, nil},
		{"all lost", func(n *netsim.Network, dns *netsim.Host, _ *dnsserver.Server) { conditions.SilentNameServer(n, dns) },
			10 * time.Second, &net.DNSError{IsTimeout: true}},
		{"SERVFAIL", func(_ *netsim.Network, _ *netsim.Host, names *dnsserver.Server) { conditions.NameServerFails(names) },
			0, &net.DNSError{IsTemporary: true}},
		{"NXDOMAIN", func(_ *netsim.Network, _ *netsim.Host, names *dnsserver.Server) {
			conditions.NameUnknown(names, "api.example.")
		}, 0, &net.DNSError{IsNotFound: true}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			netsim.Run(t, func(t *testing.T, n *netsim.Network) {
				app, dns := n.Host("app"), n.Host("dns")
				names := nameServer(t, dns, "192.0.2.1")
				tc.arm(n, dns, names)
				took, failure := lookup(dnsserver.Resolver(app.DialContext, dns.Addr().String()), "api.example.")
				assert.InDelta(t, tc.takes, took, float64(10*ms))
				if tc.is == nil {
					assert.Nil(t, failure)
					return
				}
				require.NotNil(t, failure)
				got := net.DNSError{IsTimeout: failure.IsTimeout, IsTemporary: failure.IsTemporary, IsNotFound: failure.IsNotFound}
				if tc.is.IsTimeout {
					got.IsTemporary = false // the resolver calls a time-out temporary as well
				}
				assert.Equal(t, *tc.is, got)
			}, netsim.Defaults(netsim.Conditions{Latency: ms / 2}))
		})
	}
}

// cockroachdb/cockroach#84289: each host asks a name server of its own, and one
// of those does not know the name.
func TestNameUnknownAtOneHost(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		failures := map[string]*net.DNSError{}
		for _, site := range []string{"a", "b"} {
			dns := n.Host("dns-" + site)
			names := nameServer(t, dns, "192.0.2.1")
			if site == "b" {
				conditions.NameUnknown(names, "api.example.")
			}
			_, failures[site] = lookup(dnsserver.Resolver(n.Host(site).DialContext, dns.Addr().String()), "api.example.")
		}
		assert.Nil(t, failures["a"])
		require.NotNil(t, failures["b"])
		assert.True(t, failures["b"].IsNotFound)
	}, tenms)
}

// golang/go#57694: the first two of four servers are silent and cost 5 s each. A
// dial of 3 s fails before anything is dialled; one of 30 s succeeds after 10.
func TestSilentNameServer(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		app, api := n.Host("app"), n.Host("api")
		l := listen(t, api, ":80")
		defer l.Close()
		var servers []string
		for i := range 4 {
			dns := n.Host(fmt.Sprintf("dns%d", i+1))
			nameServer(t, dns, api.Addr().String())
			if i < 2 {
				conditions.SilentNameServer(n, dns)
			}
			servers = append(servers, dns.Addr().String())
		}
		d := &netsim.Dialer{Host: app, Resolver: dnsserver.Resolver(app.DialContext, servers...)}
		d.Timeout = 3 * time.Second
		var err error
		took := after(func() { _, err = d.Dial("tcp4", "api.example.:80") })
		var timeout net.Error
		require.ErrorAs(t, err, &timeout)
		assert.True(t, timeout.Timeout())
		assert.Equal(t, 3*time.Second, took.Round(ms))
		assert.Zero(t, dials(n, 80))

		d.Timeout = 30 * time.Second
		var c net.Conn
		took = after(func() { c, err = d.Dial("tcp4", "api.example.:80") })
		require.NoError(t, err)
		assert.Equal(t, 10*time.Second+40*ms, took.Round(ms), "two servers, then a question and a dial")
		assert.Equal(t, 1, dials(n, 80))
		c.Close()
	}, tenms)
}

// golang/go#22225, golang/go#43398: AAAA is never answered, A after 20 ms. A
// net.Dialer has both looked up before it dials, and so waits 10 s. A dial that
// looks up and dials each family for itself, as RFC 8305 has it, connects a round
// trip after its fallback delay. Either leaves one connection.
func TestDialWithoutAAAA(t *testing.T) {
	for name, tc := range map[string]struct {
		raced bool
		takes time.Duration
	}{
		"net.Dialer": {false, 10*time.Second + 20*ms},
		"raced":      {true, 300*ms + 20*ms},
	} {
		t.Run(name, func(t *testing.T) {
			netsim.Run(t, func(t *testing.T, n *netsim.Network) {
				app, api, dns := n.Host("app", netsim.DualStack()), n.Host("api", netsim.DualStack()), n.Host("dns")
				echo(t, listen(t, api, ":80"))
				names := nameServer(t, dns, api.Addrs()[0].String(), api.Addrs()[1].String())
				conditions.NoAnswerForAAAA(names)
				d := &netsim.Dialer{Host: app, Resolver: dnsserver.Resolver(app.DialContext, dns.Addr().String())}
				connect := d.DialContext
				if tc.raced {
					connect = func(ctx context.Context, _, address string) (net.Conn, error) { return raced(ctx, d, address) }
				}
				var c net.Conn
				var err error
				took := after(func() { c, err = connect(t.Context(), "tcp", "api.example.:80") })
				require.NoError(t, err)
				assert.Equal(t, tc.takes, took.Round(ms))
				assert.NoError(t, ask(c, time.Second))
				time.Sleep(time.Minute)
				assert.Equal(t, 1, dials(n, 80))
				c.Close()
			}, tenms)
		})
	}
}

// raced dials IPv6 at once and IPv4 300 ms later, each with a look-up of its own,
// and keeps what connects first.
func raced(ctx context.Context, d *netsim.Dialer, address string) (net.Conn, error) {
	type result struct {
		net.Conn
		error
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan result)
	start := time.Now()
	connect := func(family string, delay time.Duration) {
		host, port, _ := net.SplitHostPort(address)
		ips, err := d.Resolver.LookupNetIP(ctx, "ip"+family, host) // begins at once
		if err == nil {
			select {
			case <-time.After(time.Until(start.Add(delay))):
			case <-ctx.Done():
			}
			var c net.Conn
			if c, err = d.DialContext(ctx, "tcp", net.JoinHostPort(ips[0].Unmap().String(), port)); err == nil {
				select {
				case results <- result{c, nil}:
				case <-ctx.Done():
					c.Close()
				}
				return
			}
		}
		select {
		case results <- result{nil, err}:
		case <-ctx.Done():
		}
	}
	go connect("6", 0)
	go connect("4", 300*ms)
	var err error
	for range 2 {
		r := <-results
		if err = r.error; err == nil {
			return r.Conn, nil
		}
	}
	return nil, err
}
