package conditions_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/proxy"

	"github.com/seed-5a7f77c4/deadair/netsim"
	"github.com/seed-5a7f77c4/deadair/scenarios/conditions"
)

type hostDialer struct{ *netsim.Host }

func (d hostDialer) Dial(network, address string) (net.Conn, error) {
	return d.DialContext(context.Background(), network, address)
}

// golang/go#37549: the relay accepts and answers nothing; a context ends the wait.
func TestSilentSOCKSRelay(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		app, relay := n.Host("app"), n.Host("relay")
		echo(t, listen(t, relay, ":1080"))
		conditions.StallAfter(n, relay, 1080, 0)
		d, err := proxy.SOCKS5("tcp", "relay:1080", nil, hostDialer{app})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 500*ms)
		defer cancel()
		took := after(func() { _, err = d.(proxy.ContextDialer).DialContext(ctx, "tcp", "api:80") })
		assert.Error(t, err)
		assert.Equal(t, 500*ms, took.Round(ms))
	}, tenms)
}

// router-for-me/CLIProxyAPI#3952: net/http gives CONNECT 1 min unless there is a
// deadline.
func TestSilentHTTPProxy(t *testing.T) {
	for limit, want := range map[time.Duration]time.Duration{0: time.Minute, 5 * time.Second: 5 * time.Second} {
		netsim.Run(t, func(t *testing.T, n *netsim.Network) {
			app, relay := n.Host("app"), n.Host("relay")
			serve(t, listen(t, relay, ":3128"), func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "") })
			conditions.StallAfter(n, relay, 3128, 0)
			tr := &http.Transport{DialContext: app.DialContext, Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: "relay:3128"})}
			defer tr.CloseIdleConnections()
			var err error
			took := after(func() { err = get(&http.Client{Transport: tr, Timeout: limit}, "https://api/") })
			assert.Error(t, err)
			assert.Equal(t, want, took.Round(100*ms))
		}, tenms)
	}
}
