package failover_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-5a7f77c4/deadair/selection/failover"
	"github.com/seed-5a7f77c4/deadair/selection/retry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func single(name, url string) []failover.Provider {
	return []failover.Provider{{Provider: retry.Provider{Name: name, URL: url, Attempts: 1}}}
}

func TestRefusedRequests(t *testing.T) {
	transport, err := failover.New(failover.Config{Providers: single("A", "http://nobody.invalid"), MaxBody: 10})
	require.NoError(t, err)
	proxy := failover.NewHandler(transport, nil)
	ask := func(change func(*http.Request), body io.Reader) int {
		req := httptest.NewRequest(http.MethodPost, "/", body)
		change(req)
		rec := httptest.NewRecorder()
		proxy.ServeHTTP(rec, req)
		return rec.Code
	}
	asIs := func(*http.Request) {}
	assert.Equal(t, 413, ask(asIs, strings.NewReader("01234567890")))
	assert.Equal(t, 413, ask(func(r *http.Request) { r.ContentLength = -1 }, strings.NewReader("01234567890")))
	assert.Equal(t, 400, ask(func(r *http.Request) { r.ContentLength = -1 }, io.MultiReader(strings.NewReader("0"), failing{})))
	assert.Equal(t, 501, ask(func(r *http.Request) { r.Header.Set("Upgrade", "websocket"); r.Header.Set("Connection", "Upgrade") }, nil))
	assert.Equal(t, 501, ask(func(r *http.Request) { r.Method = http.MethodConnect }, nil))
	assert.Equal(t, 499, ask(func(r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context())
		cancel()
		*r = *r.WithContext(ctx)
	}, nil))
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("broken") }

func TestHopByHopTrailersAndInformationalAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, "A")
		var seen http.Header
		w.serve(t, "A", func(rw http.ResponseWriter, r *http.Request) {
			seen = r.Header
			rw.Header().Set("Link", "</x>")
			rw.WriteHeader(http.StatusEarlyHints)
			rw.Header().Set("Trailer", "X-Sum")
			rw.Header().Set("Keep-Alive", "timeout=5")
			io.WriteString(rw, "body")
			rw.Header().Set("X-Sum", "4")
		})
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://proxy/", nil)
		req.Header.Set("Connection", "X-Mine, Upgrade")
		req.Header.Set("Upgrade", "h2c")
		req.Header.Set("X-Mine", "1")
		req.Header.Set("X-Forwarded-For", "10.0.0.1")
		resp, err := w.client.Do(req)
		require.NoError(t, err)
		data, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		resp.Body.Close()
		assert.Equal(t, "body", string(data))
		assert.Equal(t, "4", resp.Trailer.Get("X-Sum"))
		assert.Empty(t, resp.Header.Get("Keep-Alive"))
		for _, name := range []string{"X-Mine", "Upgrade", "X-Forwarded-For"} {
			assert.Empty(t, seen.Get(name), name)
		}
	})
}

func TestAnswersWithoutContent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, "A", "B")
		w.serve(t, "B", answer(200, "from B"))
		for _, tt := range []struct {
			method string
			status int
			body   string
		}{{"GET", 204, ""}, {"GET", 304, ""}, {"HEAD", 200, ""}, {"GET", 302, ""}, {"GET", 200, "from B"}, {"POST", 201, "from B"}} {
			w.serve(t, "A", func(rw http.ResponseWriter, _ *http.Request) {
				rw.Header().Set("Location", "/x")
				rw.WriteHeader(tt.status)
			})
			req, _ := http.NewRequestWithContext(t.Context(), tt.method, "http://proxy/", nil)
			resp, err := w.client.Transport.RoundTrip(req)
			require.NoError(t, err)
			data, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			assert.Equal(t, tt.body, string(data), "%s %d", tt.method, tt.status)
			if tt.body == "" {
				assert.Equal(t, tt.status, resp.StatusCode)
			}
		}
	})
}

// A program that uses the Transport without the Handler.
func TestRoundTripperOfOnesOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, "A")
		w.serve(t, "A", answer(200, "0123456789"))
		client := &http.Client{Transport: w.transport}
		resp, err := client.Post("http://anything/", "text/plain", strings.NewReader("body"))
		require.NoError(t, err)
		buf := make([]byte, 10)
		_, err = io.ReadFull(resp.Body, buf)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.NoError(t, resp.Body.Close())
		assert.Equal(t, "A#1 request_success", w.chain(0).String(), "all announced bytes were read")

		resp, err = client.Get("http://anything/")
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		assert.Equal(t, "A#1 client_abort", w.chain(1).String())

		nobody, err := failover.New(failover.Config{Providers: single("N", "http://nobody"), Base: failover.NewBase(w.memory.DialContext)})
		require.NoError(t, err)
		_, err = (&http.Client{Transport: nobody}).Get("http://anything/")
		var exhausted *failover.ExhaustedError
		require.ErrorAs(t, err, &exhausted)
		assert.Len(t, exhausted.Chain, 1)
		assert.NotContains(t, err.Error(), "nobody")

		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://anything/", strings.NewReader("x"))
		req.GetBody = func() (io.ReadCloser, error) { return nil, errors.New("no more") }
		_, err = w.transport.RoundTrip(req)
		require.ErrorContains(t, err, "no more")
		w.transport.CloseIdleConnections()
	})
}

// Both versions of HTTP on both sides, on loopback.
func TestVersions(t *testing.T) {
	for _, version := range []int{1, 2} {
		t.Run(fmt.Sprint("HTTP/", version), func(t *testing.T) {
			server := func(h http.Handler) *httptest.Server {
				s := httptest.NewUnstartedServer(h)
				s.EnableHTTP2 = version == 2
				s.StartTLS()
				t.Cleanup(s.Close)
				return s
			}
			calls := 0
			upstream := server(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				calls++
				data, _ := io.ReadAll(r.Body)
				switch {
				case calls == 1:
					panic(http.ErrAbortHandler) // before the headers
				case r.URL.Path == "/broken":
					io.WriteString(w, "some content")
					w.(http.Flusher).Flush()
					panic(http.ErrAbortHandler)
				default:
					fmt.Fprintf(w, "%s %s", r.Proto, data)
				}
			}))
			base := upstream.Client().Transport.(*http.Transport).Clone()
			defer base.CloseIdleConnections()
			transport, err := failover.New(failover.Config{Base: base, Providers: []failover.Provider{{Provider: retry.Provider{
				Name: "A", Endpoints: []retry.Endpoint{{ID: "1", URL: upstream.URL}, {ID: "2", URL: upstream.URL}}}}}})
			require.NoError(t, err)
			front := server(failover.NewHandler(transport, (*httputil.ProxyRequest).SetXForwarded))
			client := front.Client()
			resp, err := client.Post(front.URL, "text/plain", io.MultiReader(strings.NewReader("hello")))
			require.NoError(t, err)
			data, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			resp.Body.Close()
			assert.Equal(t, version, resp.ProtoMajor)
			assert.Contains(t, string(data), fmt.Sprintf("HTTP/%d", version))
			assert.Contains(t, string(data), " hello")
			assert.Equal(t, 2, calls)

			resp, err = client.Get(front.URL + "/broken")
			require.NoError(t, err)
			data, err = io.ReadAll(resp.Body)
			resp.Body.Close()
			assert.Equal(t, "some content", string(data))
			assert.Error(t, err, "the client has to see the break")
		})
	}
}

func Example() {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "from the second endpoint") }))
	defer upstream.Close()
	closed, _ := net.Listen("tcp", "127.0.0.1:0")
	closed.Close()

	transport, err := failover.New(failover.Config{
		Providers: []failover.Provider{{Provider: retry.Provider{Name: "a", Endpoints: []retry.Endpoint{
			{ID: "a1", URL: "http://" + closed.Addr().String()},
			{ID: "a2", URL: upstream.URL, Order: 1},
		}}}},
		Done: func(_ *http.Request, chain retry.Chain) { fmt.Println(chain) },
	})
	if err != nil {
		panic(err)
	}
	defer transport.CloseIdleConnections()
	proxy := httptest.NewServer(failover.NewHandler(transport, nil))
	defer proxy.Close()

	resp, err := http.Get(proxy.URL)
	if err != nil {
		panic(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	fmt.Println(resp.StatusCode, string(body))
	http.DefaultClient.CloseIdleConnections()
	// Output:
	// a/a1#1 system_error, a/a2#2 retry_success
	// 200 from the second endpoint
}

// BenchmarkOverhead sends requests on loopback through httputil.ReverseProxy and
// through this package in turn. The metric "×ReverseProxy" is how many times as
// long the latter takes.
func BenchmarkOverhead(b *testing.B) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		io.WriteString(w, strings.Repeat("x", 1000))
	}))
	defer upstream.Close()
	base := failover.NewBase(nil)
	defer base.CloseIdleConnections()
	transport, err := failover.New(failover.Config{Base: base, Providers: []failover.Provider{{Provider: retry.Provider{
		Name: "A", Vendor: "A", Endpoints: []retry.Endpoint{{ID: "1", URL: upstream.URL}, {ID: "2", URL: upstream.URL}}}}}})
	if err != nil {
		b.Fatal(err)
	}
	target, _ := url.Parse(upstream.URL)
	fronts := []*httptest.Server{
		httptest.NewServer(&httputil.ReverseProxy{Transport: base, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}),
		httptest.NewServer(failover.NewHandler(transport, nil)),
	}
	for _, front := range fronts {
		defer front.Close()
	}
	for _, size := range []int{0, 1000, 100_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			payload := strings.Repeat("y", size)
			var took [2]time.Duration
			for b.Loop() {
				for i, front := range fronts {
					begin := time.Now()
					resp, err := front.Client().Post(front.URL, "text/plain", strings.NewReader(payload))
					if err != nil {
						b.Fatal(err)
					}
					io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
					took[i] += time.Since(begin)
				}
			}
			b.ReportMetric(float64(took[0])/float64(b.N), "ns/ReverseProxy")
			b.ReportMetric(float64(took[1])/float64(b.N), "ns/failover")
			b.ReportMetric(float64(took[1])/float64(took[0]), "×ReverseProxy")
		})
	}
}
