package retry_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/selection/retry"
)

// serve runs one connection after another through handle, on loopback.
func serve(t *testing.T, handle func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			handle(c)
			c.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return l.Addr().String()
}

func readRequest(c net.Conn) {
	if req, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
		io.Copy(io.Discard, req.Body)
	}
}

// get is one round trip, body included, as a driver makes it.
func get(t *testing.T, transport *http.Transport, url string) retry.Answer {
	t.Helper()
	t.Cleanup(transport.CloseIdleConnections)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return retry.Answer{Err: err}
	}
	defer resp.Body.Close()
	_, err = io.ReadAll(resp.Body)
	return retry.Answer{Status: resp.StatusCode, Err: err}
}

// Every error here is a real one, of net, net/http and crypto/tls on loopback.
func TestRealErrors(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	silent := serve(t, func(c net.Conn) { io.Copy(io.Discard, c) })
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = quiet
	secure.StartTLS()
	t.Cleanup(secure.Close)
	trusting := func() *http.Transport { return secure.Client().Transport.(*http.Transport).Clone() }
	ask := func(transport *http.Transport, url string) func(*testing.T) retry.Answer {
		return func(t *testing.T) retry.Answer { return get(t, transport, url) }
	}
	raw := func(answer string, then func(net.Conn)) string {
		return "http://" + serve(t, func(c net.Conn) {
			readRequest(c)
			io.WriteString(c, answer)
			then(c)
		})
	}
	hangUp := func(net.Conn) {}
	reset := func(c net.Conn) { c.(*net.TCPConn).SetLinger(0) }

	for name, tt := range map[string]struct {
		answer func(*testing.T) retry.Answer
		kind   retry.Kind
		cause  retry.Cause
	}{
		"refused": {ask(&http.Transport{}, "http://"+closed.Addr().String()), retry.SystemError, retry.CauseRefused},
		"unknown name": {ask(&http.Transport{DialContext: (&net.Dialer{Resolver: emptyResolver(t)}).DialContext},
			"http://nobody.test"), retry.SystemError, retry.CauseDNS},
		"silent resolver": {ask(&http.Transport{DialContext: (&net.Dialer{Timeout: 10 * time.Millisecond, Resolver: &net.Resolver{
			PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() },
		}}).DialContext}, "http://nobody.test"), retry.SystemError, retry.CauseDNS},
		"connect time-out": {ask(&http.Transport{DialContext: (&net.Dialer{Deadline: time.Now().Add(-time.Second)}).DialContext},
			"http://"+silent), retry.SystemError, retry.CauseTimeout},
		"header time-out": {ask(&http.Transport{ResponseHeaderTimeout: 10 * time.Millisecond}, "http://"+silent), retry.SystemError, retry.CauseTimeout},
		"TLS handshake time-out": {ask(&http.Transport{TLSHandshakeTimeout: 10 * time.Millisecond}, "https://"+silent),
			retry.SystemError, retry.CauseTimeout},
		"unknown authority":   {ask(&http.Transport{}, secure.URL), retry.SystemError, retry.CauseTLS},
		"wrong host name":     {ask(wrongName(trusting()), secure.URL), retry.SystemError, retry.CauseTLS},
		"TLS version refused": {ask(oldTLS(trusting()), secure.URL), retry.SystemError, retry.CauseTLS},
		"not TLS at all": {ask(&http.Transport{}, "https://"+serve(t, func(c net.Conn) { io.WriteString(c, "220 smtp.example ready for you\r\n") })),
			retry.SystemError, retry.CauseTLS},
		"EOF before headers":      {ask(&http.Transport{}, raw("", hangUp)), retry.SystemError, retry.CauseEOF},
		"EOF in the headers":      {ask(&http.Transport{}, raw("HTTP/1.1 200 OK\r\nServer: x\r\n", hangUp)), retry.SystemError, retry.CauseEOF},
		"reset before headers":    {ask(&http.Transport{}, raw("", reset)), retry.SystemError, retry.CauseReset},
		"no HTTP":                 {ask(&http.Transport{}, raw("220 hello\r\n\r\n", hangUp)), retry.SystemError, retry.CauseProtocol},
		"EOF in the body":         {ask(&http.Transport{}, raw("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", hangUp)), retry.ProviderError, retry.CauseEOF},
		"reset in the body":       {ask(&http.Transport{}, raw("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", reset)), retry.ProviderError, retry.CauseReset},
		"not found":               {ask(trusting(), secure.URL), retry.NotFound, retry.CauseNone},
		"unauthorized":            {ask(&http.Transport{}, raw("HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n", hangUp)), retry.ProviderError, retry.CauseNone},
		"too many requests":       {ask(&http.Transport{}, raw("HTTP/1.1 429 No\r\nContent-Length: 0\r\n\r\n", hangUp)), retry.ProviderError, retry.CauseNone},
		"499 made by an upstream": {ask(&http.Transport{}, raw("HTTP/1.1 499 Gone\r\nContent-Length: 0\r\n\r\n", hangUp)), retry.ProviderError, retry.CauseNone},
		"524 made by an upstream": {ask(&http.Transport{}, raw("HTTP/1.1 524 Slow\r\nContent-Length: 0\r\n\r\n", hangUp)), retry.ProviderError, retry.CauseNone},
		"success":                 {ask(&http.Transport{}, raw("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", hangUp)), retry.Success, retry.CauseNone},
		"redirection":             {ask(&http.Transport{}, raw("HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n", hangUp)), retry.Success, retry.CauseNone},
	} {
		t.Run(name, func(t *testing.T) {
			answer := tt.answer(t)
			assert.Equal(t, tt.kind, retry.NewClassifier().Classify(&answer), "%#v", answer.Err)
			assert.Equal(t, tt.cause, retry.CauseOf(answer.Err), "%#v", answer.Err)
			answer.Client = context.Canceled
			assert.Equal(t, retry.ClientAbort, retry.NewClassifier().Classify(&answer), "the client's context comes first")
		})
	}
}

// The end of the client's context and that of the proxy's own timer arrive as one
// error of net/http; only the causes tell them apart.
func TestOneContextTwoCauses(t *testing.T) {
	silent := "http://" + serve(t, func(c net.Conn) { io.Copy(io.Discard, c) })
	for name, tt := range map[string]struct {
		client func(context.CancelFunc)
		timer  error
		kind   retry.Kind
	}{
		"client":             {func(cancel context.CancelFunc) { cancel() }, nil, retry.ClientAbort},
		"first byte":         {func(context.CancelFunc) {}, retry.ErrFirstByte, retry.OwnTimeout},
		"whole":              {func(context.CancelFunc) {}, retry.ErrWhole, retry.OwnTimeout},
		"idle":               {func(context.CancelFunc) {}, retry.ErrIdle, retry.SystemError}, // no answer yet
		"client, then timer": {func(cancel context.CancelFunc) { cancel() }, retry.ErrWhole, retry.ClientAbort},
	} {
		t.Run(name, func(t *testing.T) {
			client, leave := context.WithCancel(t.Context())
			defer leave()
			attempt, stop := context.WithCancelCause(client)
			defer stop(nil)
			tt.client(leave)
			if tt.timer != nil {
				stop(tt.timer)
			}
			transport := &http.Transport{}
			defer transport.CloseIdleConnections()
			req, err := http.NewRequestWithContext(attempt, http.MethodGet, silent, nil)
			require.NoError(t, err)
			_, err = transport.RoundTrip(req)
			require.Error(t, err)
			if client.Err() == nil {
				err = context.Cause(attempt)
			}
			answer := retry.Answer{Client: client.Err(), Err: err}
			assert.Equal(t, tt.kind, retry.NewClassifier().Classify(&answer))
		})
	}
}

func TestClientFaultRules(t *testing.T) {
	c := retry.NewClassifier(
		func(_ int, text string) bool { return strings.Contains(text, "too long") },
		func(status int, _ string) bool { return status == 422 },
	)
	event := &retry.ErrorEvent{Data: "prompt is too long"}
	for name, tt := range map[string]struct {
		answer retry.Answer
		kind   retry.Kind
	}{
		"matches":                {retry.Answer{Status: 400, Text: "prompt is too long"}, retry.ClientFault},
		"second rule":            {retry.Answer{Status: 422, Text: "?"}, retry.ClientFault},
		"no match":               {retry.Answer{Status: 400, Text: "busy"}, retry.ProviderError},
		"never on a 5xx":         {retry.Answer{Status: 500, Text: "prompt is too long"}, retry.ProviderError},
		"never on a 404":         {retry.Answer{Status: 404, Text: "prompt is too long"}, retry.NotFound},
		"error event":            {retry.Answer{Status: 200, Text: event.Data, Err: event}, retry.ClientFault},
		"never on a success":     {retry.Answer{Status: 200, Text: "prompt is too long"}, retry.Success},
		"never after content":    {retry.Answer{Status: 200, Text: event.Data, Err: event, Content: true}, retry.BrokenStream},
		"never without answer":   {retry.Answer{Text: "prompt is too long", Err: io.EOF}, retry.SystemError},
		"empty body":             {retry.Answer{Status: 200, Err: retry.ErrEmptyBody}, retry.ProviderError},
		"idle before content":    {retry.Answer{Status: 200, Err: retry.ErrIdle}, retry.ProviderError},
		"idle after content":     {retry.Answer{Status: 200, Err: retry.ErrIdle, Content: true}, retry.BrokenStream},
		"whole after content":    {retry.Answer{Status: 200, Err: retry.ErrWhole, Content: true}, retry.BrokenStream},
		"whole before content":   {retry.Answer{Status: 200, Err: fmt.Errorf("read: %w", retry.ErrWhole)}, retry.OwnTimeout},
		"client after content":   {retry.Answer{Status: 200, Err: io.EOF, Content: true, Client: context.Canceled}, retry.ClientAbort},
		"client with own timer":  {retry.Answer{Err: retry.ErrWhole, Client: context.Canceled}, retry.ClientAbort},
		"client deadline passed": {retry.Answer{Err: context.DeadlineExceeded, Client: context.DeadlineExceeded}, retry.ClientAbort},
	} {
		assert.Equal(t, tt.kind, c.Classify(&tt.answer), name)
	}
	answer := retry.Answer{Status: 404, Client: context.Canceled}
	assert.Equal(t, retry.NotFound, c.Last("client-abort").Classify(&answer))
	assert.Equal(t, retry.ProviderError, c.First("provider-error").Classify(&answer))
	assert.Panics(t, func() { c.First("nobody") })
	assert.Equal(t, "own time-out", fmt.Sprint(retry.OwnTimeout))
	assert.Contains(t, event.Error(), "too long")
}

func TestCauseOfBareErrors(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want retry.Cause
	}{
		{nil, retry.CauseNone},
		{errors.New("odd"), retry.CauseProtocol},
		{io.ErrUnexpectedEOF, retry.CauseEOF},
		{fmt.Errorf("x: %w", context.DeadlineExceeded), retry.CauseTimeout},
	} {
		assert.Equal(t, tt.want, retry.CauseOf(tt.err))
	}
}

func wrongName(transport *http.Transport) *http.Transport {
	transport.TLSClientConfig.ServerName = "somebody.else.test"
	return transport
}

func oldTLS(transport *http.Transport) *http.Transport {
	transport.TLSClientConfig.MinVersion = tls.VersionTLS10
	transport.TLSClientConfig.MaxVersion = tls.VersionTLS10
	return transport
}

// emptyResolver is a resolver whose name server, on loopback, knows no name.
func emptyResolver(t *testing.T) *net.Resolver {
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 512)
		for {
			n, from, err := server.ReadFrom(buf)
			if err != nil {
				return
			}
			answer := append([]byte(nil), buf[:n]...)
			answer[2] |= 0x80                 // an answer
			answer[3] = answer[3]&0xf0 | 3    // NXDOMAIN
			copy(answer[10:12], []byte{0, 0}) // no additional records
			server.WriteTo(questionOnly(answer), from)
		}
	}()
	t.Cleanup(func() { server.Close(); <-done })
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
}

// questionOnly cuts a DNS message after its first question.
func questionOnly(m []byte) []byte {
	i := 12
	for m[i] != 0 {
		i += int(m[i]) + 1
	}
	return m[:i+5]
}
