package conditions_test

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/clock"
	"github.com/seed-5a7f77c4/deadair/netsim"
	"github.com/seed-5a7f77c4/deadair/scenarios/conditions"
)

// golang/go#35012: a phone sleeps for 15 minutes. Its timers stand still, so that
// one of a minute fires on waking and tells nothing; the wall clock has jumped,
// which a session can see. Its server has closed the idle connection after five
// minutes; the FIN waits at the sleeping phone and is read on waking, so that the
// first request goes over a new connection and succeeds.
func TestSleepFor(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		phone, api := n.Host("phone"), n.Host("api")
		clk := clock.NewSkewed(clock.System, clock.Skew{})
		s := &http.Server{Handler: http.HandlerFunc(ok), IdleTimeout: 5 * time.Minute}
		go s.Serve(quiet{listen(t, api, ":80")})
		defer s.Close()
		tr := &http.Transport{DialContext: phone.DialContext}
		defer tr.CloseIdleConnections()
		client := &http.Client{Transport: tr, Timeout: 10 * time.Second}
		require.NoError(t, get(client, "http://api/"))
		before, start := clk.Now(), time.Now()
		conditions.SleepFor(n, phone, clk, 15*time.Minute)
		clk.Sleep(time.Minute)
		assert.Equal(t, 15*time.Minute, time.Since(start).Round(ms), "the timer fires on waking")
		assert.Equal(t, 15*time.Minute, clk.Now().Sub(before).Round(ms), "a session's age shows on the wall clock")
		time.Sleep(ms)
		var err error
		took := after(func() { err = get(client, "http://api/") })
		assert.NoError(t, err)
		assert.Equal(t, 40*ms, took.Round(ms))
		assert.Equal(t, 2, dials(n, 80))
	}, tenms)
}

// opnsense/core#9181: the date is a month old until it is corrected after ten
// minutes. TLS takes the server's certificate for one of the future until then.
func TestWrongDateFor(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		app, api := n.Host("app"), n.Host("api")
		cert, roots := certificate(t, "api")
		serveTLS(t, listen(t, api, ":443"), cert, ok)
		clk := conditions.WrongDateFor(n, 30*24*time.Hour, 10*time.Minute)
		tr := &http.Transport{DialContext: app.DialContext, TLSClientConfig: &tls.Config{RootCAs: roots, Time: clk.Now}}
		defer tr.CloseIdleConnections()
		client := &http.Client{Transport: tr}
		start := time.Now()
		refused := 0
		for {
			err := get(client, "https://api/")
			if err == nil {
				break
			}
			var invalid x509.CertificateInvalidError
			require.ErrorAs(t, err, &invalid)
			assert.Equal(t, x509.Expired, invalid.Reason, "x509's word for not yet as well")
			assert.ErrorContains(t, err, "is before")
			refused++
			time.Sleep(time.Until(start.Add(time.Duration(refused) * 30 * time.Second)))
		}
		assert.Equal(t, 20, refused)
		assert.Equal(t, 10*time.Minute, time.Since(start).Truncate(time.Second))
	}, tenms)
}
