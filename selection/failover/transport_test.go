package failover_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
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

func TestNextEndpointAfterASystemError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, "A: a1 a2")
		var path string
		w.serve(t, "a2", func(rw http.ResponseWriter, r *http.Request) {
			path = r.Host + r.RequestURI
			io.WriteString(rw, "hello")
		})
		begin := time.Now()
		status, body := w.get("/v1/x?y=%2F")
		assert.Equal(t, 200, status)
		assert.Equal(t, "hello", body)
		assert.Equal(t, "a2/base/v1/x?y=%2F", path)
		chain := w.chain(0)
		assert.Equal(t, "A/a1#1 system_error, A/a2#2 retry_success", chain.String())
		assert.Equal(t, 100*time.Millisecond, chain[1].Started.Sub(begin))
		h, _ := w.transport.Health(retry.EndpointLevel, "a1")
		assert.Equal(t, 1, h.Failures)
	})
}

func TestEverythingFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, "A: a1 a2", "B")
		w.serve(t, "B", answer(500, "secret detail"))
		status, body := w.get("/")
		assert.Equal(t, 503, status)
		assert.Equal(t, "Service Unavailable\n", body)
		assert.Equal(t, "A/a1#1 system_error, A/a2#2 system_error, B#1 retry_failed, B#2 retry_failed", w.chain(0).String())
	})
}

func TestBodyIsReplayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *failover.Config) {
			c.Providers[1].Header = http.Header{"authorization": {"B's key"}, "X-Drop": nil}
		}, "A", "B")
		payload := bytes.Repeat([]byte("0123456789\x00"), 50_000)
		var got [][]byte
		var header http.Header
		take := func(status int) http.HandlerFunc {
			return func(rw http.ResponseWriter, r *http.Request) {
				data, _ := io.ReadAll(r.Body)
				got, header = append(got, data), r.Header
				rw.WriteHeader(status)
				io.WriteString(rw, "answer")
			}
		}
		w.serve(t, "A", take(429))
		w.serve(t, "B", take(200))
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://proxy/", io.MultiReader(bytes.NewReader(payload)))
		require.NoError(t, err)
		req.Header.Set("Authorization", "client's")
		req.Header.Set("X-Drop", "1")
		req.Header.Set("X-Keep", "1")
		resp, err := w.client.Do(req)
		require.NoError(t, err)
		resp.Body.Close()
		require.Len(t, got, 3)
		for _, data := range got {
			assert.True(t, bytes.Equal(payload, data))
		}
		assert.Equal(t, []string{"B's key"}, header["Authorization"])
		assert.NotContains(t, header, "X-Drop")
		assert.Equal(t, "1", header.Get("X-Keep"))
	})
}

func TestClientFaultIsReturnedUnchanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		policy := retry.DefaultPolicy()
		policy.Classifier = retry.NewClassifier(func(_ int, text string) bool { return strings.Contains(text, "too long") })
		w := newWorld(t, func(c *failover.Config) { c.Policy = &policy }, "A", "B", "C")
		long := "prompt too long" + strings.Repeat(".", 100_000)
		w.serve(t, "A", func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("X-Reason", "r")
			rw.WriteHeader(400)
			io.WriteString(rw, long)
		})
		resp, err := w.client.Get("http://proxy/")
		require.NoError(t, err)
		data, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		assert.Equal(t, 400, resp.StatusCode)
		assert.Equal(t, "r", resp.Header.Get("X-Reason"))
		assert.Equal(t, long, string(data))
		assert.Equal(t, "A#1 client_error", w.chain(0).String())
	})
}

func TestStreams(t *testing.T) {
	const content = "event: delta\ndata: {\"text\":\"hi\"}\n\n"
	for name, tt := range map[string]struct {
		first    http.HandlerFunc // of provider A; B answers "from B"
		timeouts failover.Timeouts
		body     string
		broken   bool
		chain    string
		provider int // failures of A
	}{
		"error event first": {events("event: error\ndata: {}\n\n"), failover.Timeouts{}, "from B", false,
			"A#1 retry_failed, A#2 retry_failed, B#1 retry_success", 1},
		"error object first": {events(": hi\n\n", "data: {\"error\":{\"message\":\"busy\"}}\n\n"), failover.Timeouts{}, "from B", false,
			"A#1 retry_failed, A#2 retry_failed, B#1 retry_success", 1},
		"ends before content": {events(": hi\n\nevent: ping\ndata: {}\n\n"), failover.Timeouts{}, "from B", false,
			"A#1 retry_failed, A#2 retry_failed, B#1 retry_success", 1},
		"breaks before content": {events(": hi\n\n", "break"), failover.Timeouts{}, "from B", false,
			"A#1 retry_failed, A#2 retry_failed, B#1 retry_success", 1},
		"content with preamble": {events(": hi\n\n", content, content), failover.Timeouts{}, ": hi\n\n" + content + content, false,
			"A#1 request_success", 0},
		"last event without its empty line": {events("data: x"), failover.Timeouts{}, "data: x", false, "A#1 request_success", 0},
		"breaks after content":              {events(content, "break"), failover.Timeouts{}, content, true, "A#1 retry_failed", 1},
		"error event after content": {events(content, "event: error\ndata: {}\n\n"), failover.Timeouts{},
			content + "event: error\ndata: {}\n\n", false, "A#1 retry_failed", 1},
		"first byte": {events("hang"), failover.Timeouts{FirstByte: time.Second}, "from B", false,
			"A#1 retry_failed, A#2 retry_failed, B#1 retry_success", 1},
		"no headers": {hang, failover.Timeouts{FirstByte: time.Second}, "from B", false,
			"A#1 retry_failed, A#2 retry_failed, B#1 retry_success", 1},
		"slow but in time": {events("pause", content, "pause", content, "pause"), failover.Timeouts{FirstByte: 2 * time.Second, Idle: 2 * time.Second}, content + content, false,
			"A#1 request_success", 0},
		"idle before content": {events(": hi\n\n", "hang"), failover.Timeouts{Idle: time.Second}, "from B", false,
			"A#1 retry_failed, A#2 retry_failed, B#1 retry_success", 1},
		"idle after content":   {events(content, "hang"), failover.Timeouts{Idle: time.Second}, content, true, "A#1 retry_failed", 1},
		"whole before content": {hang, failover.Timeouts{Whole: time.Second}, "from B", false, "A#1 retry_failed, A#2 retry_failed, B#1 retry_success", 1},
		"whole after content":  {events(content, "hang"), failover.Timeouts{Whole: time.Second}, content, true, "A#1 retry_failed", 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, func(c *failover.Config) { c.Timeouts = tt.timeouts }, "A", "B")
				w.serve(t, "A", tt.first)
				w.serve(t, "B", answer(200, "from B"))
				resp, err := w.client.Get("http://proxy/")
				require.NoError(t, err)
				data, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				assert.Equal(t, tt.broken, err != nil, "%v", err)
				assert.Equal(t, tt.body, string(data))
				assert.Equal(t, tt.chain, w.chain(0).String())
				h, _ := w.transport.Health(retry.ProviderLevel, "A")
				assert.Equal(t, tt.provider, h.Failures)
			})
		})
	}
}

func TestContentFlowsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, "A: a1")
		w.serve(t, "a1", events("data: 1\n\n", "pause", "data: 2\n\n"))
		begin := time.Now()
		resp, err := w.client.Get("http://proxy/")
		require.NoError(t, err)
		defer resp.Body.Close()
		buf := make([]byte, 100)
		n, err := resp.Body.Read(buf)
		require.NoError(t, err)
		assert.Equal(t, "data: 1\n\n", string(buf[:n]))
		assert.Zero(t, time.Since(begin))
		n, _ = resp.Body.Read(buf)
		assert.Equal(t, "data: 2\n\n", string(buf[:n]))
		assert.Equal(t, time.Second, time.Since(begin))
	})
}

// The client leaves at every stage; the provider's handler sees the end at once.
func TestClientLeaves(t *testing.T) {
	for name, tt := range map[string]struct {
		first http.HandlerFunc
		after time.Duration
		chain string
	}{
		"before the headers": {hang, time.Second, "A#1 client_abort"},
		"before content":     {events(": hi\n\n", "hang"), time.Second, "A#1 client_abort"},
		"after content":      {events("data: 1\n\n", "hang"), time.Second, "A#1 client_abort"},
		"during the wait":    {answer(500, ""), 50 * time.Millisecond, "A#1 retry_failed"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, nil, "A", "B")
				calls := 0
				var over time.Time
				w.serve(t, "A", func(rw http.ResponseWriter, r *http.Request) {
					calls++
					defer func() { over = time.Now() }()
					tt.first(rw, r)
				})
				ctx, cancel := context.WithTimeout(t.Context(), tt.after)
				defer cancel()
				begin := time.Now()
				req, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://proxy/", nil)
				resp, err := w.client.Do(req)
				if err == nil {
					_, err = io.ReadAll(resp.Body)
					resp.Body.Close()
				}
				require.ErrorIs(t, err, context.DeadlineExceeded)
				synctest.Wait()
				assert.Equal(t, tt.after, time.Since(begin))
				assert.Equal(t, tt.chain, w.chain(0).String())
				assert.Equal(t, 1, calls)
				assert.False(t, over.IsZero(), "the provider is still working")
				assert.LessOrEqual(t, over.Sub(begin), tt.after)
				h, _ := w.transport.Health(retry.ProviderLevel, "A")
				assert.Zero(t, h.Failures)
			})
		})
	}
}

func TestASlowClientIsNoIdleProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *failover.Config) { c.Timeouts.Idle = time.Second }, "A")
		w.serve(t, "A", events("data: 1\n\n", "data: 2\n\n", "data: 3\n\n"))
		resp, err := (&http.Client{Transport: w.transport}).Get("http://anything/")
		require.NoError(t, err)
		defer resp.Body.Close()
		time.Sleep(time.Minute) // of the bubble; the pipe has no buffer, so the provider waits for us
		data, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		assert.Equal(t, "data: 1\n\ndata: 2\n\ndata: 3\n\n", string(data))
	})
}

func TestErrorBodyThatNeverComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, "A", "B")
		w.serve(t, "A", func(rw http.ResponseWriter, r *http.Request) {
			rw.WriteHeader(429)
			rw.(http.Flusher).Flush()
			<-r.Context().Done()
		})
		w.serve(t, "B", answer(200, "from B"))
		begin := time.Now()
		status, _ := w.get("/")
		assert.Equal(t, 200, status)
		assert.Equal(t, 10*time.Second+100*time.Millisecond, time.Since(begin), "two attempts of 5 s and a wait")
		assert.Equal(t, 429, w.chain(0)[0].Status)
	})
}

func TestConversationsAndPassThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *failover.Config) {
			c.Conversation = func(r *http.Request) string { return r.URL.Query().Get("c") }
			c.PassThrough = func(r *http.Request) bool { return r.URL.Path == "/models" }
		}, "A: a1", "B: b1")
		w.serve(t, "b1", answer(200, "from b1"))
		w.serve(t, "A", answer(200, "from A itself"))
		w.get("/?c=7")
		bound, _ := w.transport.Bound("7")
		assert.Equal(t, "B", bound)
		w.get("/?c=7")
		assert.Equal(t, "B/b1#1 request_success", w.chain(1).String())
		time.Sleep(300 * time.Second)
		_, ok := w.transport.Bound("7")
		assert.False(t, ok)
		_, body := w.get("/models")
		assert.Equal(t, "from A itself", body)
	})
}

func TestVendorOpens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		w := newWorld(t, func(c *failover.Config) {
			c.Timeouts.FirstByte = time.Second
			c.Logger = slog.New(slog.NewTextHandler(&log, nil))
		}, "A: a1 a2", "B")
		w.serve(t, "a1", hang)
		w.serve(t, "a2", hang)
		w.serve(t, "B", answer(200, "ok"))
		w.get("/")
		assert.Equal(t, "A/a1#1 retry_failed, A/a2#2 vendor_timeout, B#1 retry_success", w.chain(0).String())
		h, _ := w.transport.Health(retry.VendorLevel, "A")
		assert.Equal(t, breaker.Open, h.State)
		assert.Equal(t, 2, strings.Count(log.String(), "attempt failed"))
		assert.Contains(t, log.String(), "vendor_out=true")
	})
}

func TestBadConfigurations(t *testing.T) {
	good := []failover.Provider{{Provider: retry.Provider{Name: "A", URL: "http://a"}}}
	for want, config := range map[string]failover.Config{
		"no providers":         {},
		"Config.MaxBody is -1": {Providers: good, MaxBody: -1},
		"Config.Timeouts is":   {Providers: good, Timeouts: failover.Timeouts{Idle: -1}},
		`base URL "ftp://x"`:   {Providers: []failover.Provider{{Provider: retry.Provider{Name: "A", URL: "ftp://x"}}}},
		"invalid control":      {Providers: []failover.Provider{{Provider: retry.Provider{Name: "A", URL: "http://\x00"}}}},
	} {
		_, err := failover.New(config)
		require.ErrorContains(t, err, "failover.New: ")
		assert.ErrorContains(t, err, want)
	}
}
