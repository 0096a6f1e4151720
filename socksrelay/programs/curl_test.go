package programs

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/proxy"
)

func hello(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") }

func curl(t *testing.T, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, program(t, "curl"), append([]string{"-sS", "-m", "1"}, args...)...).CombinedOutput()
	return string(out), err
}

func TestCurl(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(hello))
	defer web.Close()
	_, port, err := net.SplitHostPort(web.Listener.Addr().String())
	require.NoError(t, err)
	r := start(t)
	for flag, url := range map[string]string{"--socks5": web.URL, "--socks5-hostname": "http://localhost:" + port} {
		t.Run(flag, func(t *testing.T) {
			out, err := curl(t, flag, r.socks, url)
			require.NoError(t, err, out)
			assert.Equal(t, "hello", out)

			r.turn("hole", true)
			out, err = curl(t, flag, r.socks, url)
			require.Error(t, err)
			assert.Contains(t, out, "timed out")

			r.turn("hole", false)
			out, err = curl(t, flag, r.socks, url)
			require.NoError(t, err, out)
			assert.Equal(t, "hello", out)
		})
	}
	out, err := curl(t, "--socks5", r.socks, "http://192.0.2.1/")
	require.Error(t, err)
	assert.Contains(t, out, "(2)", "a destination that is not allowed")
}

func TestGoProxyClient(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(hello))
	defer web.Close()
	r := start(t, "-user", "u:p")
	for password, want := range map[string]string{"p": "", "wrong": "username/password authentication failed"} {
		d, err := proxy.SOCKS5("tcp", r.socks, &proxy.Auth{User: "u", Password: password}, proxy.Direct)
		require.NoError(t, err)
		client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DialContext: d.(proxy.ContextDialer).DialContext, DisableKeepAlives: true}}
		answer, err := client.Get(web.URL)
		if want != "" {
			require.ErrorContains(t, err, want)
			continue
		}
		require.NoError(t, err)
		body, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		answer.Body.Close()
		assert.Equal(t, "hello", string(body))
	}
}
