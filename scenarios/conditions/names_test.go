package conditions_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/clock"
	"github.com/seed-5a7f77c4/deadair/netsim"
	"github.com/seed-5a7f77c4/deadair/netsim/dnsserver"
	"github.com/seed-5a7f77c4/deadair/socksrelay"
)

func TestTheNamesInTheLines(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		// Hosts; n.Link(app, api) is both directions between two, n.Path(broker, app) is one.
		app, db, proxy := n.Host("app"), n.Host("db"), n.Host("proxy")

		// l: a listener. Wrap it before the server gets it.
		l, err := db.Listen("tcp", ":5432")
		require.NoError(t, err)
		defer l.Close()

		// names: a name server on the host dns1, which the app's dials ask. Names end with a dot.
		dns1 := n.Host("dns1")
		packets, err := dns1.ListenPacket("udp", ":53")
		require.NoError(t, err)
		names := dnsserver.New(dnsserver.Zone{"db.example.": dnsserver.Addr(db.Addr().String())})
		names.Start(packets, nil)
		defer names.Close()
		app.SetResolver(dnsserver.Resolver(app.DialContext, dns1.Addr().String()))

		// A flow has the name of the host, as n.Host has it, not the one that was looked up: this is "app>db:5432#1".
		client, err := app.Dial("tcp4", "db.example.:5432")
		require.NoError(t, err)
		defer client.Close()

		// c: a connection that a server accepted.
		c, err := l.Accept()
		require.NoError(t, err)
		defer c.Close()

		// relay: a SOCKS5 proxy, for golang.org/x/net/proxy or any other client. Add its fault before the client connects.
		relay, err := socksrelay.New(socksrelay.Config{Dial: proxy.DialContext})
		require.NoError(t, err)
		defer relay.Close()
		entrance, err := proxy.Listen("tcp", ":1080")
		require.NoError(t, err)
		go relay.Serve(entrance)

		// wifi: an interface. clk: a clock, for a program that takes one.
		wifi := n.Host("phone").Interface("wifi", netsim.Wireless)
		clk := clock.NewSkewed(clock.System, clock.Skew{})

		require.Equal(t, "app>db:5432#1", client.(*netsim.Conn).Flow())
		require.True(t, wifi.IsUp())
		require.WithinDuration(t, time.Now(), clk.Now(), 0)
	})
}
