package conditions_test

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/netsim"
	"github.com/seed-5a7f77c4/deadair/scenarios/conditions"
)

func TestClientLeavesASilentConnection(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		app, api := n.Host("app"), n.Host("api")

		// The server. Yours goes here, with the host's listener.
		l, err := api.Listen("tcp", ":443")
		require.NoError(t, err)
		h2 := new(http.Protocols)
		h2.SetUnencryptedHTTP2(true) // TLS works as well; this is shorter
		server := &http.Server{Protocols: h2, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "ok")
		})}
		go server.Serve(l)
		defer server.Close()

		// The client. Yours goes here, with the host's dial function.
		transport := &http.Transport{
			DialContext: app.DialContext,
			Protocols:   h2,
			HTTP2:       &http.HTTP2Config{SendPingTimeout: 2 * time.Second, PingTimeout: time.Second}, // the cure: try without
		}
		defer transport.CloseIdleConnections()
		client := &http.Client{Transport: transport, Timeout: 5 * time.Second}
		get := func() error {
			resp, err := client.Get("http://api:443/")
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			_, err = io.Copy(io.Discard, resp.Body)
			return err
		}
		require.NoError(t, get())

		// The condition: a line of the tables. The connection is dead from now on.
		conditions.SilentTowards(n, app, "app>api:443#1")

		// What must come of it.
		require.Error(t, get(), "the one that finds out")
		require.NoError(t, get(), "the next one has a new connection")
	}, netsim.Defaults(netsim.LAN))
}
