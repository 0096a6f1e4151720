package conditions_test

import (
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/netsim"
	"github.com/seed-5a7f77c4/deadair/scenarios/conditions"
)

// getlantern/lantern#2588: no network is told at once, and after 30 s one dial is
// enough.
func TestNoNetworkFor(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		phone, api := n.Host("phone"), n.Host("api")
		wifi := phone.Interface("wifi", netsim.Wireless)
		echo(t, listen(t, api, ":80"))
		conditions.NoNetworkFor(n, wifi, 30*time.Second)
		_, err := phone.DialContext(t.Context(), "tcp", "api:80")
		assert.ErrorIs(t, err, syscall.ENETUNREACH)
		time.Sleep(31 * time.Second)
		assert.NoError(t, ask(dial(t, phone, "api:80"), time.Second))
	}, tenms)
}

// tailscale/tailscale#276: the flow of the Wi-Fi's address is dead, the phone is
// told 1 s later, and a new dial goes over LTE.
func TestWiFiLost(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		phone, api := n.Host("phone"), n.Host("api")
		wifi := phone.Interface("wifi", netsim.Wireless)
		phone.Interface("lte", netsim.Cellular)
		echo(t, listen(t, api, ":80"))
		old := dial(t, phone, "api:80")
		told := make(chan time.Time, 2)
		stop := phone.WatchConnectivity(time.Second, func(netsim.Connectivity) { told <- time.Now() })
		defer stop()
		<-told
		start := time.Now()
		conditions.WiFiLost(wifi)
		assert.Equal(t, time.Second, (<-told).Sub(start).Round(ms))
		assert.NoError(t, ask(dial(t, phone, "api:80"), time.Second))
		assert.ErrorIs(t, ask(old, time.Second), os.ErrDeadlineExceeded)
	}, tenms)
}

// opnsense/core#9181: the date is a month old until it is corrected.
func TestWrongDateFor(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		clk := conditions.WrongDateFor(n, 30*24*time.Hour, 10*time.Minute)
		accepted := func() bool { return time.Since(clk.Now()) < time.Minute } // what a responder tolerates
		assert.False(t, accepted())
		time.Sleep(9 * time.Minute)
		assert.False(t, accepted())
		time.Sleep(2 * time.Minute)
		assert.True(t, accepted())
	})
}

// quic-go/quic-go#5815, pion/dtls#479: sizes and counts of datagrams.
func TestDatagrams(t *testing.T) {
	received := func(t *testing.T, arm func(*netsim.Network, *netsim.Link), sizes ...int) (got []int) {
		netsim.Run(t, func(t *testing.T, n *netsim.Network) {
			a, b := n.Host("a"), n.Host("b")
			here, err := a.ListenPacket("udp", ":0")
			require.NoError(t, err)
			defer here.Close()
			there, err := b.ListenPacket("udp", ":9")
			require.NoError(t, err)
			defer there.Close()
			arm(n, n.Link(a, b))
			for _, size := range sizes {
				_, err := here.WriteTo(make([]byte, size), udpAddr(b, 9))
				require.NoError(t, err)
			}
			there.SetReadDeadline(time.Now().Add(time.Second))
			buf := make([]byte, 1500)
			for {
				k, _, err := there.ReadFrom(buf)
				if err != nil {
					return
				}
				got = append(got, k)
			}
		}, tenms)
		return got
	}
	assert.Equal(t, []int{1200, 1232}, received(t, func(n *netsim.Network, l *netsim.Link) { conditions.LargeDatagramsLost(n, l, 1232) }, 1200, 1232, 1233))
	assert.Equal(t, []int{1, 3}, received(t, func(n *netsim.Network, l *netsim.Link) { conditions.KthDatagramLost(n, l, 2) }, 1, 2, 3))
	assert.Equal(t, []int{1, 2, 2, 3}, received(t, func(n *netsim.Network, l *netsim.Link) { conditions.KthDatagramDoubled(n, l, 2) }, 1, 2, 3))
}

// quic-go/quic-go#5815: the host knows that its interface is too narrow.
func TestLargeDatagramsRefused(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b")
		conditions.LargeDatagramsRefused(a.Interface("wifi", netsim.Wireless), 1232)
		c, err := a.DialContext(t.Context(), "udp", b.Addr().String()+":9")
		require.NoError(t, err)
		defer c.Close()
		_, err = c.Write(make([]byte, 1233))
		assert.ErrorIs(t, err, syscall.EMSGSIZE)
		_, err = c.Write(make([]byte, 1232))
		assert.NoError(t, err)
	})
}
