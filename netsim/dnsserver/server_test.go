package dnsserver_test

import (
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/seed-5a7f77c4/deadair/netsim/dnsserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// samePort listens at a port that is free for both transports.
func samePort(t *testing.T) (net.PacketConn, net.Listener) {
	for range 20 {
		packets, err := net.ListenPacket("udp", "127.0.0.1:0")
		require.NoError(t, err)
		streams, err := net.Listen("tcp", packets.LocalAddr().String())
		if err == nil {
			return packets, streams
		}
		require.ErrorIs(t, err, syscall.EADDRINUSE)
		packets.Close()
	}
	require.FailNow(t, "no port is free for both transports")
	return nil, nil
}

// On the machine's own sockets, in real time.
func TestServesRealSockets(t *testing.T) {
	packets, streams := samePort(t)
	srv := dnsserver.New(zone)
	srv.Start(packets, streams)
	defer srv.Close()
	r := dnsserver.Resolver(new(net.Dialer).DialContext, packets.LocalAddr().String())

	ips, err := r.LookupNetIP(t.Context(), "ip4", name)
	require.NoError(t, err)
	assert.Len(t, ips, 2)
	srv.On(name, dnsserver.Any, dnsserver.Truncated)
	ips, err = r.LookupNetIP(t.Context(), "ip6", name)
	require.NoError(t, err)
	assert.Equal(t, []netip.Addr{netip.MustParseAddr("2001:db8::1")}, ips)

	_, err = r.LookupHost(t.Context(), "nobody.example.")
	assert.True(t, dnsError(t, err).IsNotFound)
	srv.On("fail.example.", dnsserver.Any, dnsserver.ServFail)
	_, err = r.LookupHost(t.Context(), "fail.example.")
	assert.True(t, dnsError(t, err).IsTemporary)

	srv.On("silent.example.", dnsserver.Any, dnsserver.Silent)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = r.LookupTXT(ctx, "silent.example.")
	assert.True(t, dnsError(t, err).IsTimeout)
}

func TestCloseEndsEverything(t *testing.T) {
	packets, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	streams, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	srv := dnsserver.New(zone)
	srv.Start(packets, streams)
	srv.On("*", dnsserver.Any, dnsserver.Slow(time.Hour))

	query := packQuery(t, name, dnsserver.A)
	udp, err := net.Dial("udp", packets.LocalAddr().String())
	require.NoError(t, err)
	defer udp.Close()
	_, err = udp.Write(query)
	require.NoError(t, err)
	tcp, err := net.Dial("tcp", streams.Addr().String())
	require.NoError(t, err)
	defer tcp.Close()
	_, err = tcp.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(query))), query...))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return srv.Hits(name, dnsserver.A) == 2 }, 5*time.Second, time.Millisecond)

	require.NoError(t, srv.Close())
	require.NoError(t, srv.Close(), "again")
	_, err = tcp.Read(make([]byte, 1))
	assert.Error(t, err)
	_, _, err = packets.ReadFrom(make([]byte, 1))
	assert.ErrorIs(t, err, net.ErrClosed)

	late, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	srv.Start(nil, late)
	_, err = late.Accept()
	assert.ErrorIs(t, err, net.ErrClosed, "a closed server does not serve")
}

func packQuery(t testing.TB, name string, qtype dnsserver.Type) []byte {
	m := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: 7},
		Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name), Type: qtype, Class: dnsmessage.ClassINET}},
	}
	query, err := m.Pack()
	require.NoError(t, err)
	return query
}

func TestTheLastRuleWins(t *testing.T) {
	play(t, func(t *testing.T, _ *wire, srv *dnsserver.Server, r *net.Resolver) {
		first := srv.On("*", dnsserver.Any, dnsserver.NXDomain)
		second := srv.On("*.example.", dnsserver.Any, dnsserver.Hijack("198.51.100.1"))
		third := srv.On(name, dnsserver.A, dnsserver.Hijack("198.51.100.2"))
		look := func(name string) string {
			ips, err := r.LookupNetIP(t.Context(), "ip4", name)
			if err != nil {
				return "none"
			}
			return ips[0].String()
		}
		assert.Equal(t, "198.51.100.2", look(name))
		assert.Equal(t, "198.51.100.1", look("v4.example."))
		assert.Equal(t, "198.51.100.1", look("example."))
		assert.Equal(t, "none", look("badexample."))
		third.Remove()
		third.Remove()
		assert.Equal(t, "198.51.100.1", look(name))
		second.Remove()
		assert.Equal(t, "none", look(name))
		first.Remove()
		assert.Equal(t, "192.0.2.1", look(name))
		assert.Equal(t, []int{2, 3, 1}, []int{first.Hits(), second.Hits(), third.Hits()})
		assert.Equal(t, 6, srv.Hits("*", dnsserver.A)-srv.Hits("badexample.", dnsserver.A))
	})
}

func TestBadUseIsNamed(t *testing.T) {
	srv := dnsserver.New(nil)
	for say, f := range map[string]func(){
		`Addr("nonsense")`: func() { dnsserver.Addr("nonsense") },
		`"a..b"`:           func() { dnsserver.New(dnsserver.Zone{"a..b": {}}) },
		"is there twice":   func() { dnsserver.New(dnsserver.Zone{"a.": {}, "A": {}}) },
		`"x..y"`:           func() { srv.Set("a.", dnsserver.Records{CNAME: "x..y"}) },
		"is none":          func() { srv.Set("a.", dnsserver.Records{Addrs: []netip.Addr{{}}}) },
		"matches nothing":  func() { srv.On("", dnsserver.A, dnsserver.Silent) },
		"*a..b":            func() { srv.On("*a..b", dnsserver.A, dnsserver.Silent) },
		"delay of -1s":     func() { srv.On("*", dnsserver.A, dnsserver.Slow(-time.Second)) },
		"no servers":       func() { dnsserver.Resolver(new(net.Dialer).DialContext) },
		"no dial function": func() { dnsserver.Resolver(nil, "192.0.2.1") },
		`"ns.example."`:    func() { dnsserver.Resolver(new(net.Dialer).DialContext, "ns.example.") },
		strings.Repeat("x", 64): func() {
			srv.Set(strings.Repeat("x", 64)+".", dnsserver.Records{})
		},
	} {
		assert.Condition(t, func() (found bool) {
			defer func() {
				text, _ := recover().(string)
				found = strings.Contains(text, "dnsserver.") && strings.Contains(text, say)
				if !found {
					t.Logf("%q says %q", say, text)
				}
			}()
			f()
			return false
		}, say)
	}
}
