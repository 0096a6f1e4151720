package netsim_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/netsim"
)

// whoHears sends a datagram from everybody to everybody and says what arrived.
func whoHears(t *testing.T, n *netsim.Network) (heard map[string]string) {
	conns := map[string]*netsim.PacketConn{}
	for _, h := range n.Hosts() {
		conns[h.Name()] = packetConn(t, h, ":9")
	}
	for _, from := range n.Hosts() {
		for _, to := range n.Hosts() {
			conns[from.Name()].WriteTo([]byte(from.Name()), udpAddr(to, 9))
		}
		time.Sleep(time.Second)
	}
	heard = map[string]string{}
	for name, c := range conns {
		heard[name] = strings.Join(drain(t, c, time.Second), "")
		c.Close()
	}
	return heard
}

func TestPartition(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		for _, name := range []string{"a", "b", "c", "d"} {
			n.Host(name)
		}
		all := map[string]string{"a": "abcd", "b": "abcd", "c": "abcd", "d": "abcd"}
		require.Equal(t, all, whoHears(t, n))
		f := n.Partition(map[string][]string{"a": {"b", "c"}, "d": {"a"}})
		require.Equal(t, map[string]string{"a": "ad", "b": "abcd", "c": "abcd", "d": "bcd"}, whoHears(t, n))
		require.Equal(t, 3, f.Hits())
		f.Undo()
		require.Equal(t, all, whoHears(t, n))
		f = n.Partition(netsim.Split([]string{"a", "b"}, []string{"b", "c", "d"})) // b is the bridge
		require.Equal(t, map[string]string{"a": "ab", "b": "abcd", "c": "bcd", "d": "bcd"}, whoHears(t, n))
		f.Undo()
		require.Equal(t, all, whoHears(t, n))

		require.PanicsWithError(t, `netsim: Network.Partition(map[a:[nobody]]): there is no host "nobody"`, func() { n.Partition(map[string][]string{"a": {"nobody"}}) })
		require.Panics(t, func() { n.Partition(map[string][]string{"nobody": {"a"}}) })
		require.Panics(t, func() { n.Partition(map[string][]string{"a": {"a"}}) })
		require.Panics(t, func() { n.Partition(nil) })
	})
}
