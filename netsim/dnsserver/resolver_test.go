package dnsserver_test

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/seed-5a7f77c4/deadair/netsim/dnsserver"
)

const name = "app.example."

func TestAnswersComeAfterOneRoundTrip(t *testing.T) {
	play(t, func(t *testing.T, _ *wire, srv *dnsserver.Server, r *net.Resolver) {
		took := lasts(func() {
			ips, err := r.LookupNetIP(t.Context(), "ip", name)
			require.NoError(t, err)
			assert.ElementsMatch(t, []netip.Addr{
				netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("2001:db8::1"),
			}, ips)
		})
		assert.Equal(t, oneTrip, took)
		assert.Equal(t, 1, srv.Hits(name, dnsserver.A))
		assert.Equal(t, 1, srv.Hits(name, dnsserver.AAAA))
		ips, err := r.LookupNetIP(t.Context(), "ip4", name)
		require.NoError(t, err)
		assert.Equal(t, []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")}, ips)
	})
}

// What a Go program sees of each fault of its only name server, of both types asked: how long it takes, what the error
// says, how often the server is asked.
func TestFaultsAsTheRealResolverShowsThem(t *testing.T) {
	for _, c := range []struct {
		name                         string
		fault                        dnsserver.Fault
		takes                        time.Duration
		notFound, timeout, temporary bool
		asked                        int // for each type
	}{
		{"silent", dnsserver.Silent, 10 * time.Second, false, true, true, 2},
		{"SERVFAIL", dnsserver.ServFail, 2 * oneTrip, false, false, true, 2},
		{"REFUSED", dnsserver.Refused, 2 * oneTrip, false, false, false, 2},
		{"NXDOMAIN", dnsserver.NXDomain, oneTrip, true, false, false, 1},
		{"empty", dnsserver.Empty, oneTrip, true, false, false, 1},
		{"wrong id", dnsserver.Misaddress, 10 * time.Second, false, true, true, 2},
		{"too late", dnsserver.Slow(11 * time.Second), 10 * time.Second, false, true, true, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			play(t, func(t *testing.T, _ *wire, srv *dnsserver.Server, r *net.Resolver) {
				rule := srv.On("*", dnsserver.Any, c.fault)
				var err error
				took := lasts(func() { _, err = r.LookupHost(t.Context(), name) })
				e := dnsError(t, err)
				assert.Equal(t, name, e.Name)
				assert.Equal(t, c.notFound, e.IsNotFound, "IsNotFound of %v", e)
				assert.Equal(t, c.timeout, e.IsTimeout, "IsTimeout of %v", e)
				assert.Equal(t, c.temporary, e.IsTemporary, "IsTemporary of %v", e)
				assert.Equal(t, c.takes, took)
				assert.Equal(t, 2*c.asked, rule.Hits())
				assert.Equal(t, c.asked, srv.Hits(name, dnsserver.AAAA))

				rule.Remove()
				_, err = r.LookupHost(t.Context(), name)
				assert.NoError(t, err, "after the fault")
			})
		})
	}
}

// The resolver as package net has it, with nothing between it and the server, sees the same errors.
func TestErrorsAreThoseOfTheUnchangedResolver(t *testing.T) {
	for _, fault := range []dnsserver.Fault{
		dnsserver.Silent, dnsserver.ServFail, dnsserver.Refused, dnsserver.NXDomain, dnsserver.Empty,
		{RCode: dnsmessage.RCodeNotImplemented}, {Truncate: true, Drop: true},
	} {
		play(t, func(t *testing.T, w *wire, srv *dnsserver.Server, r *net.Resolver) {
			direct := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return w.dial(ctx, network, oneAt)
			}}
			srv.On("*", dnsserver.Any, fault)
			same := func(want, got error) {
				w, g := *dnsError(t, want), *dnsError(t, got)
				if w.IsTimeout { // "read udp" here may be "read tcp" there
					w.Err, g.Err = "", ""
				}
				w.Server, g.Server = "", "" // the machine may have several
				assert.Equal(t, w, g, "%+v", fault)
			}
			_, want := direct.LookupTXT(t.Context(), name)
			_, got := r.LookupTXT(t.Context(), name)
			same(want, got)
			_, want = direct.LookupHost(t.Context(), name)
			_, got = r.LookupHost(t.Context(), name)
			same(want, got)
		})
	}
}

func TestALateAnswerWithinTheTimeoutCounts(t *testing.T) {
	play(t, func(t *testing.T, _ *wire, srv *dnsserver.Server, r *net.Resolver) {
		srv.On("*.example.", dnsserver.A, dnsserver.Slow(3*time.Second))
		took := lasts(func() {
			_, err := r.LookupHost(t.Context(), name)
			assert.NoError(t, err)
		})
		assert.Equal(t, 3*time.Second+oneTrip, took)
	})
}

func TestHijack(t *testing.T) {
	play(t, func(t *testing.T, _ *wire, srv *dnsserver.Server, r *net.Resolver) {
		srv.On("*", dnsserver.Any, dnsserver.Hijack("198.51.100.1"))
		for _, n := range []string{name, "nobody.test."} {
			ips, err := r.LookupHost(t.Context(), n)
			require.NoError(t, err)
			assert.Equal(t, []string{"198.51.100.1"}, ips)
		}
	})
}

func TestTruncatedAnswersAreFetchedOverTCP(t *testing.T) {
	play(t, func(t *testing.T, w *wire, srv *dnsserver.Server, r *net.Resolver) {
		srv.On(name, dnsserver.A, dnsserver.Truncated)
		ips, err := r.LookupNetIP(t.Context(), "ip4", name)
		require.NoError(t, err)
		assert.Len(t, ips, 2)
		assert.Equal(t, 2, srv.Hits(name, dnsserver.A))
		assert.Equal(t, 1, w.dials["tcp "+oneAt])

		// Without a fault, because it is long.
		srv.Set("long.example.", dnsserver.Records{TXT: []string{strings.Repeat("x", 3000)}})
		txt, err := r.LookupTXT(t.Context(), "long.example.")
		require.NoError(t, err)
		assert.Equal(t, []string{strings.Repeat("x", 3000)}, txt)
		assert.Equal(t, 2, w.dials["tcp "+oneAt])
	})
}

func TestTruncatedAndNoTCP(t *testing.T) {
	dnsserver.Prime()
	synctest.Test(t, func(t *testing.T) {
		w := newWire(oneWay)
		srv := w.serve(t, oneAt, zone)
		srv.On("*", dnsserver.Any, dnsserver.Truncated)
		noTCP := func(ctx context.Context, network, address string) (net.Conn, error) {
			if network == "tcp" {
				<-ctx.Done()
				return nil, &net.OpError{Op: "dial", Net: network, Err: context.DeadlineExceeded}
			}
			return w.dial(ctx, network, address)
		}
		var err error
		took := lasts(func() { _, err = dnsserver.Resolver(noTCP, oneAt).LookupTXT(t.Context(), name) })
		assert.Equal(t, 10*time.Second+2*oneTrip, took, "5 s for TCP in each of two attempts")
		assert.True(t, dnsError(t, err).IsTimeout)
	})
}

func TestWrongIDOverTCPIsAnError(t *testing.T) {
	play(t, func(t *testing.T, _ *wire, srv *dnsserver.Server, r *net.Resolver) {
		lying := dnsserver.Truncated
		srv.On(name, dnsserver.TXT, lying)
		srv.Set(name, dnsserver.Records{TXT: []string{"x"}})
		_, err := r.LookupTXT(t.Context(), name)
		require.NoError(t, err)
		lying.WrongID = true
		srv.On(name, dnsserver.TXT, lying)
		var took time.Duration
		took = lasts(func() { _, err = r.LookupTXT(t.Context(), name) })
		assert.True(t, dnsError(t, err).IsTimeout, "the truncated answer itself is not accepted")
		assert.Equal(t, 10*time.Second, took)
	})
}

// golang/go#43398: A is answered in 1 ms, AAAA never. The look-up takes 2 × 5 s and succeeds.
func TestOneSilentTypeCostsTenSeconds(t *testing.T) {
	play(t, func(t *testing.T, _ *wire, srv *dnsserver.Server, r *net.Resolver) {
		srv.On("*", dnsserver.AAAA, dnsserver.Silent)
		took := lasts(func() {
			ips, err := r.LookupHost(t.Context(), name)
			require.NoError(t, err)
			assert.Equal(t, []string{"192.0.2.1", "192.0.2.2"}, ips)
		})
		assert.Equal(t, 10*time.Second, took)
	})
}

// golang/go#57694: the first two of four servers are silent. Within 3 s there is no address; after 2 × 5 s there is.
func TestSilentServersAreAskedFirst(t *testing.T) {
	dnsserver.Prime()
	synctest.Test(t, func(t *testing.T) {
		w := newWire(oneWay)
		servers := []string{"192.0.2.51", "192.0.2.52", "192.0.2.53", "192.0.2.54:53"}
		w.serve(t, "192.0.2.53:53", zone)
		last := w.serve(t, "192.0.2.54:53", zone)
		r := dnsserver.Resolver(w.dial, servers...)

		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		var err error
		took := lasts(func() { _, err = r.LookupHost(ctx, name) })
		assert.Equal(t, 3*time.Second, took)
		e := dnsError(t, err)
		assert.True(t, e.IsTimeout)
		assert.ErrorIs(t, e, context.DeadlineExceeded)

		ctx, cancel = context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		took = lasts(func() { _, err = r.LookupHost(ctx, name) })
		require.NoError(t, err)
		assert.Equal(t, 10*time.Second+oneTrip, took)
		assert.Zero(t, last.Hits("*", dnsserver.Any))
	})
}

func TestAllSilentServersTakeTwiceFiveSecondsEach(t *testing.T) {
	dnsserver.Prime()
	for n := 1; n <= 4; n++ {
		synctest.Test(t, func(t *testing.T) {
			w := newWire(oneWay)
			r := dnsserver.Resolver(w.dial, []string{"192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"}[:n]...)
			var err error
			for range 2 { // the second is not shortened by what the first left
				took := lasts(func() { _, err = r.LookupTXT(t.Context(), name) })
				assert.True(t, dnsError(t, err).IsTimeout)
				assert.Equal(t, time.Duration(n)*10*time.Second, took)
			}
			assert.Equal(t, 4, w.dials["udp 192.0.2.1:53"])
		})
	}
}

func TestACallersDeadlineIsHeeded(t *testing.T) {
	for _, deadline := range []time.Duration{time.Millisecond, 3 * time.Second, 5 * time.Second, 7 * time.Second} {
		play(t, func(t *testing.T, _ *wire, srv *dnsserver.Server, r *net.Resolver) {
			srv.On("*", dnsserver.Any, dnsserver.Silent)
			for name, lookup := range map[string]func(context.Context) error{
				"addresses": func(ctx context.Context) error { _, err := r.LookupHost(ctx, name); return err },
				"texts":     func(ctx context.Context) error { _, err := r.LookupTXT(ctx, name); return err },
			} {
				ctx, cancel := context.WithTimeout(t.Context(), deadline)
				var err error
				took := lasts(func() { err = lookup(ctx) })
				cancel()
				assert.Equal(t, deadline, took, name)
				assert.True(t, dnsError(t, err).IsTimeout, name)
			}
		})
	}
}

func TestTheOtherServerHelpsOut(t *testing.T) {
	for _, c := range []struct {
		fault dnsserver.Fault
		takes time.Duration
	}{{dnsserver.ServFail, 2 * oneTrip}, {dnsserver.Refused, 2 * oneTrip}, {dnsserver.Silent, 5*time.Second + oneTrip}} {
		dnsserver.Prime()
		synctest.Test(t, func(t *testing.T) {
			w := newWire(oneWay)
			w.serve(t, "192.0.2.51:53", zone).On("*", dnsserver.Any, c.fault)
			w.serve(t, "192.0.2.52:53", zone)
			r := dnsserver.Resolver(w.dial, "192.0.2.51", "192.0.2.52")
			took := lasts(func() {
				_, err := r.LookupHost(t.Context(), name)
				assert.NoError(t, err)
			})
			assert.Equal(t, c.takes, took)
		})
	}
}

func TestConcurrentLookupsDoNotMeddle(t *testing.T) {
	play(t, func(t *testing.T, _ *wire, srv *dnsserver.Server, r *net.Resolver) {
		srv.On("slow.example.", dnsserver.Any, dnsserver.Silent)
		// Many at once with one context, which end at once ...
		var all sync.WaitGroup
		took := lasts(func() {
			for range 10 {
				all.Go(func() {
					_, err := r.LookupHost(t.Context(), "slow.example.")
					assert.Error(t, err)
				})
			}
			all.Wait()
		})
		assert.Equal(t, 10*time.Second, took)
		// ... and many one after the other, each with its own, of which one ends when another begins.
		srv.Set("slow.example.", dnsserver.Addr("192.0.2.9"))
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * time.Second)
				var err error
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				took := lasts(func() { _, err = r.LookupTXT(ctx, "slow.example.") })
				assert.Error(t, err)
				assert.Equal(t, 10*time.Second, took)
				_, err = r.LookupHost(t.Context(), name)
				assert.NoError(t, err)
			})
		}
		wg.Wait()
	})
}

// Every bubble after the first one works, too: nothing of package net was made inside one.
func TestManyBubbles(t *testing.T) {
	for range 3 {
		play(t, func(t *testing.T, _ *wire, _ *dnsserver.Server, r *net.Resolver) {
			_, err := r.LookupHost(t.Context(), name)
			assert.NoError(t, err)
		})
	}
	_, err := dnsserver.Resolver(newWire(0).dial, "192.0.2.1").LookupHost(t.Context(), "localhost")
	assert.NoError(t, err, "outside")
}

func TestAllTypes(t *testing.T) {
	play(t, func(t *testing.T, _ *wire, srv *dnsserver.Server, r *net.Resolver) {
		ctx := t.Context()
		srv.Set("www.example.", dnsserver.Records{CNAME: "alias.example"})
		srv.Set("alias.example.", dnsserver.Records{CNAME: "APP.example."})
		srv.Set("a.example.", dnsserver.Records{CNAME: "b.example."})
		srv.Set("b.example.", dnsserver.Records{CNAME: "a.example."})
		srv.Set("all.example.", dnsserver.Records{
			TXT: []string{"one", ""}, NS: []string{"ns.example."},
			MX: []net.MX{{Host: "mx2.example.", Pref: 20}, {Host: "mx1.example.", Pref: 10}},
		})
		srv.Set("_xmpp-client._tcp.example.", dnsserver.Records{SRV: []net.SRV{{Target: "p1.example.", Port: 5223, Priority: 1}}})
		for _, ip := range []string{"192.0.2.1", "2001:db8::1"} {
			srv.Set(dnsserver.ReverseName(netip.MustParseAddr(ip)), dnsserver.Records{PTR: []string{name}})
			names, err := r.LookupAddr(ctx, ip)
			require.NoError(t, err)
			assert.Equal(t, []string{name}, names)
		}

		ips, err := r.LookupNetIP(ctx, "ip4", "www.example.")
		require.NoError(t, err)
		assert.Len(t, ips, 2)
		cname, err := r.LookupCNAME(ctx, "alias.example.") // of a chain, net takes whichever answer comes first
		require.NoError(t, err)
		assert.Equal(t, name, cname)
		_, err = r.LookupHost(ctx, "a.example.")
		assert.True(t, dnsError(t, err).IsNotFound, "a circle of aliases")
		txt, err := r.LookupTXT(ctx, "ALL.example.")
		require.NoError(t, err)
		assert.Equal(t, []string{"one", ""}, txt)
		mx, err := r.LookupMX(ctx, "all.example.")
		require.NoError(t, err)
		assert.Equal(t, []*net.MX{{Host: "mx1.example.", Pref: 10}, {Host: "mx2.example.", Pref: 20}}, mx)
		ns, err := r.LookupNS(ctx, "all.example.")
		require.NoError(t, err)
		assert.Equal(t, []*net.NS{{Host: "ns.example."}}, ns)
		_, srvs, err := r.LookupSRV(ctx, "xmpp-client", "tcp", "example.")
		require.NoError(t, err)
		assert.Equal(t, []*net.SRV{{Target: "p1.example.", Port: 5223, Priority: 1}}, srvs)
		_, err = r.LookupTXT(ctx, name)
		assert.True(t, dnsError(t, err).IsNotFound, "no record of the type")
		srv.Delete(name)
		_, err = r.LookupHost(ctx, name)
		assert.True(t, dnsError(t, err).IsNotFound)
	})
}
