package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/proxy"
)

func TestWrongFlagsAreNamed(t *testing.T) {
	for want, args := range map[string][]string{
		"not a loopback address: add -expose": {"-listen", "0.0.0.0:1080"},
		"-api 0.0.0.0:1":                      {"-api", "0.0.0.0:1"},
		"want name:password":                  {"-user", "nobody"},
		"effect \\\"melt\\\" is unknown":      {"-fault", `{"name":"x","phase":"data","effect":"melt"}`},
		"unknown field":                       {"-fault", `{"nmae":"x"}`},
		"flag provided but not defined":       {"-nonsense"},
		"want host:port":                      {"-allow", "["},
		"missing port in address":             {"-allow", "example.com"},
	} {
		var out bytes.Buffer
		assert.Equal(t, exitUsage, run(t.Context(), args, &out))
		assert.Contains(t, out.String(), want)
	}
	var out bytes.Buffer
	assert.Equal(t, exitClean, run(t.Context(), []string{"-help"}, &out))
	assert.Contains(t, out.String(), "curl")
}

func TestABusyPortIsAFailure(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	var out bytes.Buffer
	assert.Equal(t, exitFailure, run(t.Context(), []string{"-listen", l.Addr().String()}, &out))
	assert.Contains(t, out.String(), "address already in use")
}

func testDaemon(t *testing.T, args ...string) *daemon {
	t.Helper()
	o := options{listen: "127.0.0.1:0", faults: args}
	d, err := o.daemon(slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(func() { d.relay.Close() })
	return d
}

func ask(d *daemon, method, target, host, kind, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Host = host
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	w := httptest.NewRecorder()
	d.handler().ServeHTTP(w, r)
	return w
}

func TestAPI(t *testing.T) {
	const local, kind = "127.0.0.1:1081", "application/json"
	d := testDaemon(t)
	for _, tc := range []struct {
		method, target, host, kind, body string
		code                             int
	}{
		{"GET", "/", local, "", "", http.StatusOK},
		{"GET", "/api/status", "localhost:1081", "", "", http.StatusOK},
		{"GET", "/api/status", "evil.example:1081", "", "", http.StatusForbidden},
		{"POST", "/api/switch", local, "text/plain", `{"name":"hole","active":true}`, http.StatusUnsupportedMediaType},
		{"POST", "/api/switch", "evil.example", kind, `{"name":"hole","active":true}`, http.StatusForbidden},
		{"POST", "/api/switch", local, kind, `{"name":"nothing","active":true}`, http.StatusNotFound},
		{"POST", "/api/switch", local, kind, `{`, http.StatusBadRequest},
		{"POST", "/api/switch", local, kind, `{"name":"hole","active":true}`, http.StatusOK},
		{"POST", "/api/faults", local, kind, `{"name":"x","phase":"greeting","effect":"stall","destination":"y"}`, http.StatusBadRequest},
		{"POST", "/api/faults", local, kind, `{"name":"x","phase":"dial","effect":"answer","code":5}`, http.StatusCreated},
		{"POST", "/api/faults", local, kind, `{"name":"x","phase":"dial","effect":"answer","code":5}`, http.StatusBadRequest},
		{"DELETE", "/api/faults?name=x", local, kind, "", http.StatusOK},
		{"DELETE", "/api/faults?name=x", local, kind, "", http.StatusNotFound},
	} {
		w := ask(d, tc.method, tc.target, tc.host, tc.kind, tc.body)
		assert.Equal(t, tc.code, w.Code, "%+v: %s", tc, w.Body)
	}
	assert.True(t, d.specs["hole"].fault.Switch.IsOn())
}

// TestTheCommandServesUntilItIsStopped runs the whole command and talks to it as its users do.
func TestTheCommandServesUntilItIsStopped(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("hello")) }))
	defer web.Close()
	ctx, stop := context.WithCancel(t.Context())
	out, lines := io.Pipe()
	exit := make(chan int, 1)
	go func() {
		exit <- run(ctx, []string{"-listen", "127.0.0.1:0", "-api", "127.0.0.1:0", "-user", "u:p"}, lines)
		lines.Close()
	}()
	log := bufio.NewScanner(out)
	said := func(key string) string {
		require.True(t, log.Scan())
		_, after, ok := strings.Cut(log.Text(), " "+key+"=")
		require.True(t, ok, log.Text())
		return after
	}
	relay, api := said("listen"), said("url")
	drained := make(chan struct{})
	go func() { defer close(drained); io.Copy(io.Discard, out) }()

	get := func(auth *proxy.Auth) (string, error) {
		d, err := proxy.SOCKS5("tcp", relay, auth, proxy.Direct)
		require.NoError(t, err)
		client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DialContext: d.(proxy.ContextDialer).DialContext, DisableKeepAlives: true}}
		answer, err := client.Get(web.URL)
		if err != nil {
			return "", err
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		return string(body), err
	}
	body, err := get(&proxy.Auth{User: "u", Password: "p"})
	require.NoError(t, err)
	assert.Equal(t, "hello", body)
	_, err = get(&proxy.Auth{User: "u", Password: "wrong"})
	require.ErrorContains(t, err, "authentication failed")

	page, err := http.Get(api)
	require.NoError(t, err)
	page.Body.Close()
	assert.Equal(t, http.StatusOK, page.StatusCode)
	stop()
	assert.Equal(t, exitClean, <-exit)
	<-drained
}

func TestDestinationsThatMayBeDialled(t *testing.T) {
	for _, tc := range []struct {
		allow   texts
		yes, no []string
	}{
		{nil, []string{"127.0.0.1:80", "[::1]:443", "localhost:1"}, []string{"192.0.2.1:80", "[::2]:443", "127.0.0.1.example:80"}},
		{texts{"[2001:db8::1]:443"}, []string{"[2001:db8::1]:443"}, []string{"[2001:db8::2]:443", "2:443"}},
		{texts{"[2001:db8::*]:*", "*.example:80"}, []string{"[2001:db8::7]:1", "a.example:80"}, []string{"a.example:81", "[2001:db9::7]:1"}},
	} {
		allowed := allowList(tc.allow)
		for _, d := range tc.yes {
			assert.True(t, allowed(d), "%q allows %s", tc.allow, d)
		}
		for _, d := range tc.no {
			assert.False(t, allowed(d), "%q allows %s", tc.allow, d)
		}
	}
}
