package socksrelay_test

import (
	"crypto/tls"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/proxy"

	"github.com/seed-5a7f77c4/deadair/blackhole"
	"github.com/seed-5a7f77c4/deadair/netsim"
	"github.com/seed-5a7f77c4/deadair/socksrelay"
)

// relayOn serves a relay at port 1080 of a simulated host, from which it dials. stop closes it and waits for its end.
func relayOn(t *testing.T, h *netsim.Host, config socksrelay.Config) (relay *socksrelay.Relay, stop func()) {
	t.Helper()
	config.Dial = h.DialContext
	relay, err := socksrelay.New(config)
	require.NoError(t, err)
	l, err := h.Listen("tcp", ":1080")
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- relay.Serve(l) }()
	return relay, func() {
		require.NoError(t, relay.Close())
		require.ErrorIs(t, <-ended, net.ErrClosed)
	}
}

// through connects a simulated host by the relay to port 7 of the server. It gives the connection to the relay.
func through(t *testing.T, client *netsim.Host) *netsim.Conn {
	t.Helper()
	raw, err := client.DialContext(t.Context(), "tcp", "relay:1080")
	require.NoError(t, err)
	d, err := proxy.SOCKS5("tcp", "", nil, given{raw})
	require.NoError(t, err)
	_, err = d.Dial("tcp", "server:7")
	require.NoError(t, err)
	return raw.(*netsim.Conn)
}

// TestARelayOnASimulatedNetworkPassesTheHandshakesAndThenStandsStill plays the hole between three simulated hosts: client,
// relay and server, with a switch that heals it.
func TestARelayOnASimulatedNetworkPassesTheHandshakesAndThenStandsStill(t *testing.T) {
	certificate := selfSigned(t)
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		client, middle, server := n.Host("client"), n.Host("relay"), n.Host("server")
		l, err := server.Listen("tcp", ":443")
		require.NoError(t, err)
		served := make(chan error, 1)
		go func() {
			raw, err := l.Accept()
			if err != nil {
				served <- err
				return
			}
			c := tls.Server(raw, &tls.Config{Certificates: []tls.Certificate{certificate}})
			_, err = io.Copy(c, c)
			c.Close()
			served <- err
		}()

		var sw blackhole.Switch
		sw.On()
		hole := &socksrelay.Fault{Name: "hole", Phase: socksrelay.Data, When: blackhole.AfterTLSHandshake(), Do: blackhole.Stall(), Switch: &sw}
		relay, stop := relayOn(t, middle, socksrelay.Config{Faults: []*socksrelay.Fault{hole}})

		d, err := proxy.SOCKS5("tcp", "relay:1080", nil, client)
		require.NoError(t, err)
		raw, err := d.Dial("tcp", "server:443")
		require.NoError(t, err, "the SOCKS handshake passes")
		c := tls.Client(raw, &tls.Config{InsecureSkipVerify: true})
		require.NoError(t, c.Handshake(), "the TLS handshake passes")
		_, err = c.Write([]byte("held"))
		require.NoError(t, err)

		buf := make([]byte, 16)
		c.SetReadDeadline(time.Now().Add(time.Hour))
		_, err = c.Read(buf)
		require.ErrorIs(t, err, os.ErrDeadlineExceeded, "an hour brings neither byte nor FIN nor RST")
		sw.Off()
		c.SetReadDeadline(time.Now().Add(time.Minute))
		m, err := io.ReadFull(c, buf[:4])
		require.NoError(t, err, "the switch heals it, and what stood still arrives")
		assert.Equal(t, "held", string(buf[:m]))

		stop()
		<-served
		assert.Empty(t, relay.Connections())
		_, err = c.Read(buf)
		require.Error(t, err, "Close ended the client's connection")
		c.Close()
		l.Close()
	})
}

// TestASwallowingRelayOnASimulatedNetworkIsSilent holds that swallowed bytes are lost, and that the hole that closes
// lets later ones pass.
func TestASwallowingRelayOnASimulatedNetworkIsSilent(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		client, middle, server := n.Host("client"), n.Host("relay"), n.Host("server")
		l, err := server.Listen("tcp", ":7")
		require.NoError(t, err)
		served := make(chan string, 1)
		go func() {
			c, err := l.Accept()
			if err != nil {
				served <- err.Error()
				return
			}
			defer c.Close()
			all, _ := io.ReadAll(io.TeeReader(c, c))
			served <- string(all)
		}()
		var sw blackhole.Switch
		_, stop := relayOn(t, middle, socksrelay.Config{Faults: []*socksrelay.Fault{
			{Phase: socksrelay.Data, Do: blackhole.Swallow(), Switch: &sw},
		}})
		d, err := proxy.SOCKS5("tcp", "relay:1080", nil, client)
		require.NoError(t, err)
		c, err := d.Dial("tcp", "server:7")
		require.NoError(t, err)
		pingPong(t, c)
		sw.On()
		_, err = c.Write([]byte("lost"))
		require.NoError(t, err)
		c.SetReadDeadline(time.Now().Add(time.Hour))
		_, err = c.Read(make([]byte, 1))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		sw.Off()
		c.SetReadDeadline(time.Time{})
		pingPong(t, c)
		c.Close()
		assert.Equal(t, "pingping", <-served)
		stop()
		l.Close()
	})
}

// TestARelayOnASimulatedNetworkPassesTheHandshakesAndThenSwallows is the hole that names this project: TCP, SOCKS and TLS
// succeed, writes succeed, and from then on neither end hears of the other, without FIN and without RST.
func TestARelayOnASimulatedNetworkPassesTheHandshakesAndThenSwallows(t *testing.T) {
	certificate := selfSigned(t)
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		client, middle, server := n.Host("client"), n.Host("relay"), n.Host("server")
		l, err := server.Listen("tcp", ":443")
		require.NoError(t, err)
		heard := make(chan error, 2)
		go func() {
			raw, err := l.Accept()
			if err != nil {
				heard <- err
				return
			}
			defer raw.Close()
			c := tls.Server(raw, &tls.Config{Certificates: []tls.Certificate{certificate}})
			heard <- c.Handshake()
			c.SetReadDeadline(time.Now().Add(time.Hour))
			_, err = c.Read(make([]byte, 1))
			heard <- err
		}()
		hole := socksrelay.BlackHole(blackhole.AfterTLSHandshake())
		_, stop := relayOn(t, middle, socksrelay.Config{Faults: []*socksrelay.Fault{hole}})
		d, err := proxy.SOCKS5("tcp", "relay:1080", nil, client)
		require.NoError(t, err)
		raw, err := d.Dial("tcp", "server:443")
		require.NoError(t, err, "the SOCKS handshake passes")
		c := tls.Client(raw, &tls.Config{InsecureSkipVerify: true})
		require.NoError(t, c.Handshake(), "the TLS handshake passes at the client")
		require.NoError(t, <-heard, "and at the server")
		require.Zero(t, hole.Hits(), "nothing has been swallowed so far")

		for range 100 {
			_, err = c.Write(make([]byte, 64<<10))
			require.NoError(t, err, "the relay goes on taking bytes, far more than any buffer holds")
		}
		c.SetReadDeadline(time.Now().Add(time.Hour))
		_, err = c.Read(make([]byte, 1))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded, "the client hears neither byte nor FIN nor RST")
		require.ErrorIs(t, <-heard, os.ErrDeadlineExceeded, "nor does the server")
		assert.Positive(t, hole.Hits())
		raw.Close()
		stop()
		l.Close()
	})
}
