package conditions_test

import (
	"crypto/tls"
	"net/http"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/proxy"

	"github.com/seed-5a7f77c4/deadair/netsim"
)

// What the standard library does under the conditions above, and a simulated
// network must let it do.

// An http.Server goes on when it has no file descriptor left, and ends when
// Accept fails otherwise.
func TestServerWithoutFileDescriptors(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		app, api := n.Host("app"), n.Host("api")
		l := listen(t, api, ":80").(*netsim.Listener)
		s := &http.Server{Handler: http.HandlerFunc(ok), ErrorLog: silentLog}
		ended := make(chan error, 1)
		go func() { ended <- s.Serve(l) }()
		l.FailAccept(syscall.EMFILE, syscall.ENFILE)
		tr := &http.Transport{DialContext: app.DialContext}
		client := &http.Client{Transport: tr}
		took := after(func() { require.NoError(t, get(client, "http://api/")) })
		assert.Equal(t, 40*ms, took.Round(ms), "the server's pauses of 5 and 10 ms are over before the client is there")
		tr.CloseIdleConnections()
		l.FailAccept(syscall.ECONNABORTED)
		assert.ErrorIs(t, <-ended, syscall.ECONNABORTED)
		s.Close()
	}, tenms)
}

// tls.Conn.Close waits 5 s for a peer that does not read, and no longer.
func TestTLSCloseAtAPeerThatDoesNotRead(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		app, api := n.Host("app"), n.Host("api")
		cert, roots := certificate(t, "api")
		l := listen(t, api, ":443")
		defer l.Close()
		go func() {
			c, err := l.Accept()
			if err == nil {
				t.Cleanup(func() { c.Close() })
				tls.Server(c, &tls.Config{Certificates: []tls.Certificate{cert}}).Handshake()
			}
		}()
		raw := dial(t, app, "api:443")
		c := tls.Client(raw, &tls.Config{RootCAs: roots, ServerName: "api"})
		require.NoError(t, c.Handshake())
		for range 2 { // a writer that waits is woken for no less than a third of the buffer: the second fills the rest
			raw.SetWriteDeadline(time.Now().Add(time.Second))
			_, err := raw.Write(make([]byte, 1<<20))
			require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		}
		var err error
		took := after(func() { err = c.Close() })
		assert.ErrorIs(t, err, os.ErrDeadlineExceeded)
		assert.Equal(t, 5*time.Second, took.Round(ms))
	}, tenms, small)
}

// The time-out of a forward dialer ends with the connect: golang.org/x/net/proxy
// waits for the relay's answers without one (golang/go#37549).
func TestForwardDialersTimeOut(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		app, relay := n.Host("app"), n.Host("relay")
		hold(t, listen(t, relay, ":1080"))
		d, err := proxy.SOCKS5("tcp", "relay:1080", nil, &netsim.Dialer{Host: app, Timeout: 500 * ms})
		require.NoError(t, err)
		dialled := make(chan error, 1)
		go func() {
			_, err := d.Dial("tcp", "api:80")
			dialled <- err
		}()
		time.Sleep(time.Hour)
		assert.Empty(t, dialled, "an hour is not enough")
		app.Crash()
		assert.Error(t, <-dialled)
	}, tenms)
}
