package conditions_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/netsim"
	"github.com/seed-5a7f77c4/deadair/scenarios/conditions"
)

// quic-go/quic-go#5815, quic-go/quic-go#5768, pion/dtls#479: sizes and counts of datagrams.
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
	assert.Equal(t, []int{1, 3, 2}, received(t, func(n *netsim.Network, l *netsim.Link) { conditions.KthDatagramSwapped(n, l, 2) }, 1, 2, 3))
	assert.Equal(t, []int{1413, 1412, 1412}, received(t, func(n *netsim.Network, l *netsim.Link) { conditions.LossAbove(n, l, 1412, 2) }, 1413, 1412, 1413, 1412))
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
