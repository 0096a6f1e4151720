package main

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// browse opens a page in headless Chromium through the relay and returns the page's text, as far as it came in time.
func browse(t *testing.T, relay, url string, patience time.Duration) (string, error) {
	t.Helper()
	path, err := exec.LookPath("chromium")
	require.NoError(t, err, "install it: apt-get install chromium")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--user-data-dir="+t.TempDir(),
		"--proxy-server=socks5://"+relay, "--proxy-bypass-list=<-loopback>", "--dump-dom", url)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	return string(out), err
}

func TestAPageHangsInTheHoleAndComesBack(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("<h1>hello</h1>")) }))
	defer web.Close()
	d := testDaemon(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go d.relay.Serve(l)
	d.turn("hole", true)
	out, err := browse(t, l.Addr().String(), web.URL, 5*time.Second)
	require.Error(t, err, "the page hangs")
	assert.NotContains(t, out, "hello")
	require.Positive(t, d.specs["hole"].fault.Hits(), "the browser came as far as the hole")
	d.turn("hole", false)
	out, err = browse(t, l.Addr().String(), web.URL, 30*time.Second)
	require.NoError(t, err)
	assert.Contains(t, out, "hello")
}
