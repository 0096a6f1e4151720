package failover_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/selection/breaker"
	"github.com/seed-5a7f77c4/deadair/selection/failover"
	"github.com/seed-5a7f77c4/deadair/selection/retry"
)

var boom = errors.New("boom")

// base is a RoundTripper that is a function.
type base func(*http.Request) (*http.Response, error)

func (b base) RoundTrip(r *http.Request) (*http.Response, error) { return b(r) }

// pieces is a body that gives one piece a read, and then what end says: an error, or nil to wait until ctx is done.
type pieces struct {
	ctx  context.Context
	left []string
	end  error
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.left) > 0 {
		n := copy(b, p.left[0])
		if p.left[0] = p.left[0][n:]; p.left[0] == "" {
			p.left = p.left[1:]
		}
		return n, nil
	}
	if p.end == nil {
		<-p.ctx.Done()
		return 0, boom
	}
	return 0, p.end
}

func (p *pieces) Close() error { return nil }

const stream = "text/event-stream"

// answered makes a Transport whose only provider, with one attempt, answers so.
func answered(t *testing.T, change func(*failover.Config), status int, kind string, end error, body ...string) (*failover.Transport, *retry.Chain) {
	var chain retry.Chain
	config := failover.Config{
		Providers: []failover.Provider{{Provider: retry.Provider{Name: "A", URL: "http://a", Attempts: 1}}},
		Base: base(func(r *http.Request) (*http.Response, error) {
			resp := &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {kind}}, Request: r, ContentLength: -1}
			resp.Body = &pieces{ctx: r.Context(), left: append([]string(nil), body...), end: end}
			return resp, nil
		}),
		Done: func(_ *http.Request, c retry.Chain) { chain = c },
	}
	if change != nil {
		change(&config)
	}
	transport, err := failover.New(config)
	require.NoError(t, err)
	return transport, &chain
}

func ask(t *testing.T, transport *failover.Transport) (*http.Response, error) {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://anything/", nil)
	require.NoError(t, err)
	return transport.RoundTrip(req)
}

func TestFiguresOfTheBase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := failover.NewBase(func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		began := time.Now()
		_, err := b.DialContext(t.Context(), "tcp", "a:1")
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, 30*time.Second, time.Since(began))
		assert.Equal(t, []time.Duration{30 * time.Second, 600 * time.Second, time.Second, 90 * time.Second},
			[]time.Duration{b.TLSHandshakeTimeout, b.ResponseHeaderTimeout, b.ExpectContinueTimeout, b.IdleConnTimeout})
	})
}

// A body of exactly the limit passes, whether its length was announced or not; one byte more does not. Each attempt can
// have it anew.
func TestLimitOfTheBody(t *testing.T) {
	for _, announced := range []bool{true, false} {
		for _, size := range []int{0, 1, 10, 11} {
			var got string
			transport, _ := answered(t, func(c *failover.Config) {
				c.MaxBody = 10
				c.Base = base(func(r *http.Request) (*http.Response, error) {
					data, _ := io.ReadAll(r.Body)
					got = string(data)
					assert.Equal(t, size == 0, r.GetBody == nil)
					assert.EqualValues(t, size, r.ContentLength)
					return &http.Response{StatusCode: 204, Body: http.NoBody, Request: r}, nil
				})
			}, 0, "", nil)
			req, err := http.NewRequest(http.MethodPost, "http://anything/", io.MultiReader(strings.NewReader(strings.Repeat("x", size))))
			require.NoError(t, err)
			if req.ContentLength = -1; announced {
				req.ContentLength = int64(size)
			}
			_, err = transport.RoundTrip(req)
			var tooLarge *failover.BodyTooLargeError
			if size > 10 {
				require.ErrorAs(t, err, &tooLarge)
				assert.EqualValues(t, 10, tooLarge.Limit)
				continue
			}
			require.NoError(t, err)
			assert.Equal(t, strings.Repeat("x", size), got)
		}
	}
}

// How an attempt ends whose body comes in pieces: what counts as content, as an error, or as a time-out of our own.
func TestEndsOfAnAttempt(t *testing.T) {
	const event = 64 << 10 // the largest event that is looked into
	large := func(n int) string { return "event: error\ndata: " + strings.Repeat("x", n-len("data: ")) + "\n\n" }
	timeouts := func(x failover.Timeouts) func(*failover.Config) {
		return func(c *failover.Config) { c.Timeouts = x }
	}
	allowEmpty := func(c *failover.Config) { c.AllowEmpty = true }
	for _, tc := range []struct {
		name   string
		change func(*failover.Config)
		status int
		kind   string
		body   []string
		end    error
		want   retry.Kind
		took   time.Duration
	}{
		{"an error event that lacks its empty line", nil, 200, stream, []string{"event: error\ndata: x\n"}, io.EOF, retry.ProviderError, 0},
		{"an error event that lacks its last line's end", nil, 200, stream, []string{"event: error\ndata: x"}, io.EOF, retry.ProviderError, 0},
		{"content that lacks its empty line", nil, 200, stream, []string{"data: x\n"}, io.EOF, retry.Success, 0},
		{"an error event in two pieces", nil, 200, stream, []string{`data: {"type":`, "\"error\"}\n\n"}, io.EOF, retry.ProviderError, 0},
		{"a word that is no member", nil, 200, stream, []string{"data: {\"kind\":\"error\"}\n\n"}, io.EOF, retry.Success, 0},
		{"the largest error event", nil, 200, stream, []string{large(event)}, io.EOF, retry.ProviderError, 0},
		{"one that is too large is content", nil, 200, stream, []string{large(event + 1)}, io.EOF, retry.Success, 0},
		{"so is one of two lines", nil, 200, stream, []string{"event: error\ndata: " + strings.Repeat("x", 40_000) + "\ndata: " + strings.Repeat("x", 40_000) + "\n\n"},
			io.EOF, retry.Success, 0},
		{"an empty answer", nil, 200, "", nil, io.EOF, retry.ProviderError, 0},
		{"an empty answer that may be", allowEmpty, 200, "", nil, io.EOF, retry.Success, 0},
		{"a redirection without a body", nil, 302, "", nil, io.EOF, retry.Success, 0},
		{"a body of nothing but a pause", timeouts(failover.Timeouts{FirstByte: time.Second}), 200, "", []string{""}, nil, retry.OwnTimeout, time.Second},
		{"a stream without content in time", timeouts(failover.Timeouts{Whole: time.Second}), 200, stream, []string{": hi\n\n"}, nil, retry.OwnTimeout, time.Second},
		{"a body that breaks", nil, 200, stream, []string{": hi\n\n"}, boom, retry.ProviderError, 0},
		{"the text of an error that goes on", nil, 500, "", []string{strings.Repeat("x", 64<<10)}, nil, retry.ProviderError, 0},
		{"the text of an error that does not come", nil, 500, "", []string{"x"}, nil, retry.ProviderError, 5 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				transport, chain := answered(t, tc.change, tc.status, tc.kind, tc.end, tc.body...)
				began := time.Now()
				resp, err := ask(t, transport)
				assert.Equal(t, tc.took, time.Since(began))
				if err == nil {
					data, err := io.ReadAll(resp.Body)
					assert.NoError(t, err)
					assert.Equal(t, strings.Join(tc.body, ""), string(data))
					assert.NoError(t, resp.Body.Close())
				}
				require.Len(t, *chain, 1)
				assert.Equal(t, tc.want, (*chain)[0].Kind, "%v", (*chain)[0].Err)
				assert.Equal(t, tc.want == retry.Success, err == nil)
			})
		})
	}
}

// The proxy's own timer is the cause of an error, whatever the base makes of it.
func TestOwnTimerWhateverTheBaseSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport, chain := answered(t, func(c *failover.Config) {
			c.Timeouts.FirstByte = time.Second
			c.Base = base(func(r *http.Request) (*http.Response, error) {
				<-r.Context().Done()
				return nil, boom
			})
		}, 0, "", nil)
		_, err := ask(t, transport)
		require.Error(t, err)
		assert.Equal(t, retry.OwnTimeout, (*chain)[0].Kind)
		assert.ErrorIs(t, (*chain)[0].Err, retry.ErrFirstByte)
	})
}

// A mebibyte of mere signs of life is taken for content, without waiting for more.
func TestEndlessPreamble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		life := ":" + strings.Repeat("x", 4093) + "\n\n"
		transport, _ := answered(t, nil, 200, stream, nil, strings.Split(strings.Repeat(life+"|", 256), "|")[:256]...)
		resp, err := ask(t, transport)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
	})
}

// An answer that is passed on unchanged breaks where it broke.
func TestBrokenTextOfAClientFault(t *testing.T) {
	policy := retry.DefaultPolicy()
	policy.Classifier = retry.NewClassifier(func(_ int, text string) bool { return strings.Contains(text, "too long") })
	transport, _ := answered(t, func(c *failover.Config) { c.Policy = &policy }, 400, "", boom, "prompt is too long")
	resp, err := ask(t, transport)
	require.NoError(t, err)
	data, err := io.ReadAll(resp.Body)
	assert.ErrorIs(t, err, boom)
	assert.Equal(t, "prompt is too long", string(data))
	require.NoError(t, resp.Body.Close())
}

// Answers that need no body: a redirection may have one all the same.
func TestBodiesThatNeedNotBe(t *testing.T) {
	for _, tc := range []struct {
		status int
		body   io.ReadCloser
		want   string
	}{
		{302, io.NopCloser(strings.NewReader("moved")), "moved"},
		{302, nil, ""},
		{304, http.NoBody, ""},
		{300, http.NoBody, ""},
		{204, http.NoBody, ""},
	} {
		transport, chain := answered(t, func(c *failover.Config) {
			c.Base = base(func(r *http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: tc.status, Body: tc.body, Request: r, ContentLength: -1}, nil
			})
		}, 0, "", nil)
		resp, err := ask(t, transport)
		require.NoError(t, err, "%d", tc.status)
		data, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		assert.Equal(t, tc.want, string(data))
		require.NoError(t, resp.Body.Close())
		assert.Equal(t, "A#1 request_success", chain.String())
	}
}

// A client that closes has left, unless it has got every byte that was announced; after an error event the provider has
// the blame, whoever closes first.
func TestWhoEndsAStream(t *testing.T) {
	const content = "data: 1\n\n"
	announce := func(n int64) func(*failover.Config) {
		return func(c *failover.Config) {
			inner := c.Base
			c.Base = base(func(r *http.Request) (*http.Response, error) {
				resp, err := inner.RoundTrip(r)
				resp.ContentLength = n
				return resp, err
			})
		}
	}
	for _, tc := range []struct {
		name     string
		announce int64
		body     []string
		read     int
		want     retry.Kind
	}{
		{"all that was announced", 18, []string{content, content}, 18, retry.Success},
		{"not all of it", 19, []string{content, content}, 18, retry.ClientAbort},
		{"an error event after content", -1, []string{content, "event: error\ndata: x\n\n", content}, 31, retry.BrokenStream},
		{"no error event", -1, []string{content, content, content}, 18, retry.ClientAbort},
	} {
		t.Run(tc.name, func(t *testing.T) {
			transport, chain := answered(t, announce(tc.announce), 200, stream, boom, tc.body...)
			resp, err := ask(t, transport)
			require.NoError(t, err)
			_, err = io.ReadFull(resp.Body, make([]byte, tc.read))
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.Len(t, *chain, 1)
			assert.Equal(t, tc.want, (*chain)[0].Kind)
		})
	}
}

// written is a ResponseWriter that keeps what it is told.
type written struct {
	http.ResponseWriter
	header   http.Header
	statuses []int
}

func (w *written) Header() http.Header         { return w.header }
func (w *written) Write(p []byte) (int, error) { return len(p), nil }
func (w *written) WriteHeader(status int)      { w.statuses = append(w.statuses, status) }

func TestTheStatusIsWritten(t *testing.T) {
	transport, _ := answered(t, nil, 200, "", io.EOF, "hello")
	w := &written{header: http.Header{}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://proxy/", nil)
	require.NoError(t, err)
	failover.NewHandler(transport, nil).ServeHTTP(w, req)
	assert.Equal(t, []int{200}, w.statuses)
}

// The log says when a vendor is out.
func TestLogOfAVendor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		transport, _ := answered(t, func(c *failover.Config) {
			c.Logger = slog.New(slog.NewTextHandler(&log, nil))
			c.Timeouts.FirstByte = time.Second
			c.Providers[0].Vendor, c.Providers[0].Attempts = "V", 2
			c.Providers[0].Endpoints = []retry.Endpoint{{ID: "a1", URL: "http://a1"}, {ID: "a2", URL: "http://a2", Order: 1}}
			c.Base = base(func(r *http.Request) (*http.Response, error) {
				<-r.Context().Done()
				return nil, r.Context().Err()
			})
		}, 0, "", nil)
		_, err := ask(t, transport)
		require.Error(t, err)
		lines := strings.Split(log.String(), "\n")
		assert.Contains(t, lines[0], "vendor_out=false")
		assert.Contains(t, lines[1], "vendor_out=true")
	})
}

// A base that panics, which net/http takes for the end of one request, keeps no permit of a breaker: the next request
// has its trial.
func TestAPanicGivesTheTrialBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := func(*http.Request) (*http.Response, error) { return nil, boom }
		policy := retry.DefaultPolicy()
		policy.CountSystemErrors()
		transport, err := failover.New(failover.Config{
			Policy:    &policy,
			Providers: []failover.Provider{{Provider: retry.Provider{Name: "A", URL: "http://a", Attempts: 1}}},
			Base:      base(func(r *http.Request) (*http.Response, error) { return answer(r) }),
		})
		require.NoError(t, err)
		for range policy.ProviderBreaker.Failures {
			_, err = ask(t, transport)
			require.Error(t, err)
		}
		health, _ := transport.Health(retry.ProviderLevel, "A")
		require.Equal(t, breaker.Open, health.State)
		time.Sleep(policy.ProviderBreaker.OpenFor)

		answer = func(*http.Request) (*http.Response, error) { panic(boom) }
		require.PanicsWithValue(t, boom, func() { ask(t, transport) })
		answer = func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusNoContent, Body: http.NoBody, Request: r}, nil
		}
		resp, err := ask(t, transport)
		require.NoError(t, err)
		require.Equal(t, http.StatusNoContent, resp.StatusCode)
	})
}
