package main

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWrongFlagsAreNamed(t *testing.T) {
	for want, args := range map[string][]string{
		"not a loopback address: add -expose": {"-listen", "0.0.0.0:1080"},
		"-api 0.0.0.0:1":                      {"-api", "0.0.0.0:1"},
		"want name:password":                  {"-user", "nobody"},
		"effect \\\"melt\\\" is unknown":      {"-fault", `{"name":"x","phase":"data","effect":"melt"}`},
		"unknown field":                       {"-fault", `{"nmae":"x"}`},
		"flag provided but not defined":       {"-nonsense"},
		"syntax error in pattern":             {"-allow", "["},
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

// curl runs curl; its absence is a failure.
func curl(t *testing.T, args ...string) (string, error) {
	t.Helper()
	path, err := exec.LookPath("curl")
	require.NoError(t, err, "install it: apt-get install curl")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, append([]string{"-sS", "-m", "1"}, args...)...).CombinedOutput()
	return string(out), err
}

func TestCurlThroughTheRelay(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("hello")) }))
	defer web.Close()
	d := testDaemon(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go d.relay.Serve(l)
	_, port, _ := net.SplitHostPort(web.Listener.Addr().String())
	for flag, url := range map[string]string{"--socks5": web.URL, "--socks5-hostname": "http://localhost:" + port} {
		out, err := curl(t, flag, l.Addr().String(), url)
		require.NoError(t, err, out)
		assert.Equal(t, "hello", out)
		d.turn("hole", true)
		out, err = curl(t, flag, l.Addr().String(), url)
		require.Error(t, err)
		assert.Contains(t, out, "timed out")
		d.turn("hole", false)
	}
	out, err := curl(t, "--socks5", l.Addr().String(), "http://192.0.2.1/")
	require.Error(t, err)
	assert.Contains(t, out, "(2)", "a destination that is not allowed")
}
