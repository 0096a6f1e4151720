package route_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-5a7f77c4/deadair/selection/route"
)

func TestAddresses(t *testing.T) {
	for _, tc := range []struct {
		address   string
		class     route.Class
		key       route.Key
		vetted    bool // as a direct route, or as the relay of account "ann"
		localLink bool
	}{
		{"wss://Relay.example/T/m1?x=1", route.Relay, "wss://Relay.example/T/m1?x=1", true, false},
		{"  WSS://relay.example/m1 ", route.Relay, "WSS://relay.example/m1", true, false},
		{"ws://10.0.0.1/m1", route.Relay, "ws://10.0.0.1/m1", true, false},
		{"ws://", route.Relay, "ws://", true, false},
		{"ws:/", route.LAN, "ws:/", false, false},
		{"100.64.0.1", route.Tailnet, "100.64.0.1", true, false},
		{"100.127.255.255", route.Tailnet, "100.127.255.255", true, false},
		{"100.128.0.0", route.LAN, "100.128.0.0", false, false},
		{"100.63.255.255", route.LAN, "100.63.255.255", false, false},
		{"fd7a:115c:a1e0::7", route.Tailnet, "fd7a:115c:a1e0::7", true, false},
		{"fd7a:115c:a1e1::7", route.LAN, "fd7a:115c:a1e1::7", true, true},
		{route.DiscoveryName, route.Tailnet, route.DiscoveryName, true, false},
		{"Desk.Tail1234.ts.net.", route.Tailnet, "desk.tail1234.ts.net", true, false},
		{"ts.net", route.LAN, "ts.net", false, false},
		{"localhost", route.LAN, "localhost", true, false},
		{"a.localhost", route.LAN, "a.localhost", true, false},
		{"Desk.LOCAL.", route.LAN, "desk.local", true, true},
		{"local", route.LAN, "local", false, false},
		{"127.9.9.9", route.LAN, "127.9.9.9", true, false},
		{"::1", route.LAN, "::1", true, false},
		{"[::1]", route.LAN, "::1", true, false},
		{"10.1.2.3", route.LAN, "10.1.2.3", true, true},
		{"172.16.0.1", route.LAN, "172.16.0.1", true, true},
		{"172.31.255.255", route.LAN, "172.31.255.255", true, true},
		{"172.32.0.1", route.LAN, "172.32.0.1", false, false},
		{"192.168.1.10", route.LAN, "192.168.1.10", true, true},
		{"::ffff:192.168.1.10", route.LAN, "::ffff:192.168.1.10", true, true},
		{"169.254.3.4", route.LAN, "169.254.3.4", true, true},
		{"fe80::1%en0", route.LAN, "fe80::1%en0", true, true},
		{"fc00::1", route.LAN, "fc00::1", true, true},
		{"fe00::1", route.LAN, "fe00::1", false, false},
		{"desk", route.LAN, "desk", false, false},
		{"machine.example", route.LAN, "machine.example", false, false},
		{"203.0.113.9", route.LAN, "203.0.113.9", false, false},
		{"2001:db8::1", route.LAN, "2001:db8::1", false, false},
		{"[fe80::1%en0].", route.LAN, "fe80::1%en0", true, true},
		{"..[desk.local] ", route.LAN, "desk.local", true, true},
		{"public.example/.local", route.LAN, "public.example/.local", false, true},
		{"public.example?.localhost", route.LAN, "public.example?.localhost", false, false},
		{"public.example#.ts.net", route.Tailnet, "public.example#.ts.net", false, false},
		{"x.local@public.example\\.local", route.LAN, "x.local@public.example\\.local", false, true},
		{"a b.local", route.LAN, "a b.local", false, true},
		{"a\x00.local", route.LAN, "a\x00.local", false, true},
		{"a\x7f.local", route.LAN, "a\x7f.local", false, true},
		{"", route.LAN, "", false, false},
		{" . ", route.LAN, "", false, false},
	} {
		t.Run(tc.address, func(t *testing.T) {
			assert.Equal(t, tc.class, route.ClassOf(tc.address))
			assert.Equal(t, tc.key, route.KeyOf(tc.address))
			assert.Equal(t, tc.localLink, route.LocalLinkOnly(tc.address))
			err := route.Vet(route.Candidate{Address: tc.address, Owner: "ann"}, "ann")
			if tc.vetted {
				assert.NoError(t, err)
			} else {
				assert.ErrorIs(t, err, route.ErrPlainText)
				assert.ErrorContains(t, err, fmt.Sprintf("route.Vet %q", tc.address))
			}
		})
	}
}

func TestBetterIsStrict(t *testing.T) {
	for _, c := range append([]route.Class{route.Unknown}, route.Classes...) {
		for _, d := range append([]route.Class{route.Unknown}, route.Classes...) {
			want := c != route.Unknown && d != route.Unknown && c < d
			assert.Equal(t, want, c.Better(d), "%v better than %v", c, d)
		}
	}
	assert.Equal(t, "Class(9)", route.Class(9).String())
}

func TestRelayNeedsItsOwner(t *testing.T) {
	lan := route.Candidate{Address: "10.0.0.1"}
	relay := route.Candidate{Address: "wss://relay.example/m1", Owner: "ann"}
	for _, tc := range []struct {
		account string
		owner   string
		want    error
	}{
		{"ann", "ann", nil},
		{"", "ann", route.ErrSignIn},
		{"", "", route.ErrSignIn},
		{"bob", "ann", route.ErrWrongAccount},
		{"ann", "", route.ErrWrongAccount},
		{"Ann", "ann", route.ErrWrongAccount},
	} {
		relay.Owner = tc.owner
		admitted, refused := route.Admit([]route.Candidate{lan, relay, {Address: "203.0.113.9"}}, tc.account)
		require.ErrorIs(t, route.Requirement(refused), tc.want)
		if tc.want == nil {
			assert.Equal(t, []route.Candidate{lan, relay}, admitted)
			assert.Len(t, refused, 1)
		} else {
			assert.Equal(t, []route.Candidate{lan}, admitted)
			assert.Len(t, refused, 2)
		}
	}
}

func TestBlame(t *testing.T) {
	timeout := &net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded}
	for _, tc := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{errors.New("reset"), true},
		{timeout, true},
		{context.DeadlineExceeded, true},
		{context.Canceled, false},
		{fmt.Errorf("dial: %w", context.Canceled), false},
		{fmt.Errorf("hello: %w", route.ErrVersion), false},
		{fmt.Errorf("hello: %w", route.ErrAccount), false},
		{route.ErrKeyProof, false}, {route.ErrBusy, false}, {route.ErrSuperseded, false},
		{route.ErrSignIn, false}, {route.ErrWrongAccount, false}, {route.ErrPlainText, false},
	} {
		assert.Equal(t, tc.want, route.Blames(tc.err), "%v", tc.err)
	}
}

func TestPorts(t *testing.T) {
	sweep := []uint16{8787, 8788, 8789, 8790, 8791, 8792, 8793, 8794, 8795}
	for _, tc := range []struct {
		first uint16
		want  []uint16
	}{
		{0, sweep},
		{8787, sweep},
		{8790, []uint16{8790, 8787, 8788, 8789, 8791, 8792, 8793, 8794, 8795}},
		{8999, append([]uint16{8999}, sweep...)},
		{9000, []uint16{9000}},
		{8786, []uint16{8786}},
		{443, []uint16{443}},
	} {
		assert.Equal(t, tc.want, route.Ports(tc.first))
	}
}

func TestMerge(t *testing.T) {
	assert.Equal(t, []route.Candidate{
		{Address: "Desk.local", Port: 8790, Live: true},
		{Address: "wss://r/m", Owner: "ann"},
		{Address: "10.0.0.1", Port: 9001},
	}, route.Merge([]route.Candidate{
		{Address: "Desk.local", Port: 8787},
		{Address: "wss://r/m"},
		{Address: "desk.local.", Port: 8790, Live: true},
		{Address: "wss://r/m", Owner: "ann"},
		{Address: "10.0.0.1"},
		{Address: "10.0.0.1", Port: 9001},
		{Address: "desk.local", Port: 8791, Live: true},
	}))
}

func TestTarget(t *testing.T) {
	assert.Equal(t, "10.0.0.1:8787", route.Candidate{Address: "10.0.0.1"}.Target())
	assert.Equal(t, "[fe80::1%en0]:9000", route.Candidate{Address: "[fe80::1%en0]", Port: 9000}.Target())
	assert.Equal(t, "relay wss://r/m", route.Candidate{Address: " wss://r/m ", Port: 1}.String())
}

func TestFingerprint(t *testing.T) {
	for _, tc := range []struct {
		path route.Path
		want route.Fingerprint
	}{
		{route.Path{}, ""},
		{route.Path{Cellular: true}, "cell"},
		{route.Path{WiFi: true}, "wifi"},
		{route.Path{WiFi: true, Cellular: true, WiFiAddr: netip.MustParseAddr("192.168.1.23")}, "wifi:192.168.1"},
		{route.Path{WiFi: true, WiFiAddr: netip.MustParseAddr("::ffff:10.20.30.40")}, "wifi:10.20.30"},
		{route.Path{WiFi: true, WiFiAddr: netip.MustParseAddr("169.254.1.2")}, "wifi"},
		{route.Path{WiFi: true, WiFiAddr: netip.MustParseAddr("127.0.0.1")}, "wifi"},
		{route.Path{WiFi: true, WiFiAddr: netip.MustParseAddr("fe80::1")}, "wifi"},
		{route.Path{Wired: true, WiFi: true, WiFiAddr: netip.MustParseAddr("10.0.0.1")}, "wired"},
	} {
		assert.Equal(t, tc.want, tc.path.Fingerprint(), "%v", tc.path)
	}
}

func TestCostIsNoChangeOfInterfaces(t *testing.T) {
	p := route.Path{Satisfied: true, Cellular: true}
	q := p
	q.Expensive, q.Constrained = true, true
	q.TailnetAddr = netip.MustParseAddr("100.64.0.2")
	assert.True(t, p.SameInterfaces(q))
	for _, change := range []func(*route.Path){
		func(p *route.Path) { p.Satisfied = !p.Satisfied },
		func(p *route.Path) { p.WiFi = !p.WiFi },
		func(p *route.Path) { p.Cellular = !p.Cellular },
		func(p *route.Path) { p.Wired = !p.Wired },
	} {
		r := p
		change(&r)
		assert.False(t, p.SameInterfaces(r), "%v", r)
	}
	assert.False(t, q.LocalLink())
	assert.True(t, route.Path{WiFi: true}.LocalLink())
	assert.True(t, route.Path{Wired: true}.LocalLink())
	assert.Equal(t, "cellular+tailnet", q.String())
	assert.Equal(t, "unsatisfied", route.Path{}.String())
	assert.Equal(t, "unsatisfied", route.Path{Satisfied: true}.String(), "there is nothing that could carry traffic")
	assert.Equal(t, "wifi+unsatisfied", route.Path{WiFi: true}.String())
	assert.Equal(t, "wifi+cellular+wired", route.Path{Satisfied: true, WiFi: true, Cellular: true, Wired: true}.String())
}

// Whatever the address, an admitted direct route is private, and local-link addresses are of class LAN.
func TestVettingHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "ip")
		ip := netip.AddrFrom4([4]byte(raw))
		c := route.Candidate{Address: ip.String()}
		std := net.IP(raw)
		want := std.IsPrivate() || std.IsLoopback() || std.IsLinkLocalUnicast() || (raw[0] == 100 && raw[1]&0xc0 == 64)
		if got := route.Vet(c, "") == nil; got != want {
			t.Fatalf("Vet(%v) passes: %v, want %v", ip, got, want)
		}
		if route.LocalLinkOnly(c.Address) && c.Class() != route.LAN {
			t.Fatalf("%v is local-link only and of class %v", ip, c.Class())
		}
	})
}

func FuzzKeyOf(f *testing.F) {
	for _, s := range []string{"Desk.local.", "[::1]", " wss://R/x ", ". .", "..a..", "[[x]]", "wss:/[/x", "public.example/.local", "[fe80::1%x@public.example/]", ".wss://x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		k := route.KeyOf(s)
		if again := route.KeyOf(string(k)); again != k {
			t.Fatalf("KeyOf(%q) = %q, then %q: does not settle", s, k, again)
		}
		c := route.Candidate{Address: s}
		if route.Vet(c, "") != nil {
			return
		}
		// Whoever makes a URL of an admitted target must not end up at another host.
		if u, err := url.Parse("ws://" + c.Target() + "/"); err == nil && route.Vet(route.Candidate{Address: u.Hostname()}, "") != nil {
			t.Fatalf("%q is admitted, and leads to %q", s, u.Hostname())
		}
	})
}
