package stranger

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/seed-5a7f77c4/deadair/netsim"
)

// serve starts the server that the fetcher talks to.
func serve(t *testing.T, h *netsim.Host) {
	l, err := h.Listen("tcp", ":80")
	if err != nil {
		t.Fatal(err)
	}
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	srv := &http.Server{Protocols: protocols, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "hello")
	})}
	go srv.Serve(l)
	t.Cleanup(func() { srv.Close() })
}

// poll asks once a second for so long and counts the failures.
func poll(t *testing.T, f *Fetcher, seconds int) (failures int) {
	for range seconds {
		if _, err := f.Get("http://server/"); err != nil {
			t.Log(err)
			failures++
		}
		time.Sleep(time.Second)
	}
	return failures
}

// The hanging HTTP/2 connection: one established flow loses what the server
// sends, for ever, while new flows would pass. This is golang/go#30702.
func TestHangingHTTP2Connection(t *testing.T) {
	for _, tc := range []struct {
		name            string
		health          Health
		failures, dials int
	}{
		{"Go's default never notices", Health{}, 20, 1},
		{"a ping does", Health{PingAfter: 500 * time.Millisecond, PingTimeout: 500 * time.Millisecond}, 1, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			netsim.Run(t, func(t *testing.T, n *netsim.Network) {
				app, server := n.Host("app"), n.Host("server")
				serve(t, server)
				f := NewFetcher(app.DialContext, tc.health)
				defer f.Close()
				if failures := poll(t, f, 3); failures != 0 {
					t.Fatalf("%d failures while all is well", failures)
				}
				n.Apply(netsim.Rule{
					From: server, To: app, Established: true,
					Verdict: netsim.Verdict{Action: netsim.Drop},
				})
				if failures := poll(t, f, 20); failures != tc.failures {
					t.Errorf("%d requests failed, want %d", failures, tc.failures)
				}
				dials := n.Trace().Count(func(e netsim.Event) bool { return e.Kind == netsim.SYN && !e.Again })
				if dials != tc.dials {
					t.Errorf("%d dials, want %d", dials, tc.dials)
				}
			}, netsim.Defaults(netsim.Conditions{Latency: 10 * time.Millisecond}))
		})
	}
}
