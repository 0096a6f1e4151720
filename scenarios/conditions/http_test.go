package conditions_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"

	"github.com/seed-5a7f77c4/deadair/clock"
	"github.com/seed-5a7f77c4/deadair/netsim"
	"github.com/seed-5a7f77c4/deadair/scenarios/conditions"
)

// golang/go#30702: one request a second meets a connection whose answers vanish.
func TestSilentTowards(t *testing.T) {
	for _, tc := range []struct {
		name            string
		h2              bool
		ping            time.Duration
		failures, dials int
		text            string
	}{
		{"HTTP/1.1", false, 0, 1, 2, "deadline exceeded"},
		{"HTTP/2", true, 0, 10, 1, "deadline exceeded"},
		{"HTTP/2 with pings", true, 500 * ms, 1, 2, "client connection lost"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			netsim.Run(t, func(t *testing.T, n *netsim.Network) {
				app, api := n.Host("app"), n.Host("api")
				s := &http.Server{Protocols: protocols(tc.h2), Handler: http.HandlerFunc(ok)}
				go s.Serve(listen(t, api, ":80"))
				defer s.Close()
				tr := &http.Transport{
					DialContext: app.DialContext, Protocols: protocols(tc.h2),
					HTTP2: &http.HTTP2Config{SendPingTimeout: tc.ping, PingTimeout: tc.ping},
				}
				defer tr.CloseIdleConnections()
				client := &http.Client{Transport: tr, Timeout: time.Second}
				require.NoError(t, get(client, "http://api/"))
				time.Sleep(100 * ms)
				conditions.SilentTowards(n, app, "app>api:80#1")
				failures := 0
				for range 10 {
					start := time.Now()
					if err := get(client, "http://api/"); err != nil {
						failures++
						assert.ErrorContains(t, err, tc.text)
					}
					time.Sleep(time.Until(start.Add(time.Second + ms)))
				}
				assert.Equal(t, tc.failures, failures)
				assert.Equal(t, tc.dials, dials(n, 80))
			}, tenms)
		})
	}
}

// golang/go#63422: four requests are under way to one host when every second of
// its flows goes dead. HTTP/1.1 has four flows and loses the two that are on the
// dead ones; the next requests pass. HTTP/2 has one: if that is dead, all of them
// are lost, and all that follow until the pings of the connection fail.
func TestRequestsOnFlowsHashedAway(t *testing.T) {
	for _, tc := range []struct {
		name            string
		h2              bool
		inFlight, later int // requests that fail, of 4 and of 10
		dials           int
	}{
		{"HTTP/1.1", false, 2, 0, 4},
		{"HTTP/2", true, 4, 3, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			netsim.Run(t, func(t *testing.T, n *netsim.Network) {
				app, api := n.Host("app"), n.Host("api")
				s := &http.Server{Protocols: protocols(tc.h2), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					time.Sleep(100 * ms)
					io.WriteString(w, "ok")
				})}
				go s.Serve(listen(t, api, ":80"))
				defer s.Close()
				tr := &http.Transport{
					DialContext: app.DialContext, Protocols: protocols(tc.h2), MaxIdleConnsPerHost: 4,
					HTTP2: &http.HTTP2Config{SendPingTimeout: 2 * time.Second, PingTimeout: 1500 * ms},
				}
				defer tr.CloseIdleConnections()
				client := &http.Client{Transport: tr, Timeout: time.Second}
				four := func(then func()) (failures int) {
					results := make(chan error, 4)
					for range 4 {
						go func() { results <- get(client, "http://api/") }()
					}
					time.Sleep(50 * ms)
					then()
					for range 4 {
						if err := <-results; err != nil {
							failures++
							assert.ErrorContains(t, err, "deadline exceeded")
						}
					}
					return failures
				}
				if tc.h2 {
					require.NoError(t, get(client, "http://api/"), "one connection for all")
				}
				assert.Zero(t, four(func() {}), "they open the flows")
				k := 2
				if tc.h2 {
					k = 1 // the one flow there is
				}
				assert.Equal(t, tc.inFlight, four(func() { conditions.FlowsHashedAway(n, n.Link(app, api), k) }))
				later := 0
				for range 10 {
					if get(client, "http://api/") != nil {
						later++
					}
				}
				assert.Equal(t, tc.later, later)
				assert.Equal(t, tc.dials, dials(n, 80))
			}, tenms)
		})
	}
}

// slowReader is an API that reads no more than 4 KiB of each connection, with 64
// KiB of buffer at both ends, and a client for it.
func slowReader(t *testing.T, n *netsim.Network, h2 bool, writeByteTimeout time.Duration) *http.Client {
	app, api := n.Host("app"), n.Host("api")
	s := &http.Server{Protocols: protocols(h2), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		io.WriteString(w, "ok")
	})}
	go s.Serve(conditions.StopsReading(listen(t, api, ":80"), 4096))
	t.Cleanup(func() { s.Close() })
	tr := &http.Transport{
		DialContext: app.DialContext, Protocols: protocols(h2),
		HTTP2: &http.HTTP2Config{WriteByteTimeout: writeByteTimeout},
	}
	t.Cleanup(tr.CloseIdleConnections)
	client := &http.Client{Transport: tr}
	require.NoError(t, get(client, "http://api/"), "the connection is made, and its settings are exchanged")
	return client
}

// call sends a POST of some bytes, or a GET, and says how long it took.
func call(client *http.Client, body int, limit time.Duration) (took time.Duration, err error) {
	method := http.MethodGet
	if body > 0 {
		method = http.MethodPost
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	took = after(func() {
		var req *http.Request
		if req, err = http.NewRequestWithContext(ctx, method, "http://api/", bytes.NewReader(make([]byte, body))); err != nil {
			return
		}
		var resp *http.Response
		if resp, err = client.Do(req); err == nil {
			_, err = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
	})
	return took, err
}

var small = netsim.Buffers(64<<10, 64<<10)

// golang/go#33425: the POST fails at its own time-out. Over HTTP/1.1 the next
// request has a connection of its own; over HTTP/2 it has one only if the write
// has a limit.
func TestStopsReading(t *testing.T) {
	for _, tc := range []struct {
		name             string
		h2               bool
		writeByteTimeout time.Duration
		fails            time.Duration
		with             error
	}{
		{"HTTP/1.1", false, 0, time.Second, context.DeadlineExceeded},
		{"HTTP/2 with WriteByteTimeout", true, 250 * ms, 500 * ms, os.ErrDeadlineExceeded}, // some bytes left in the first 250 ms, none in the next,
	} {
		t.Run(tc.name, func(t *testing.T) {
			netsim.Run(t, func(t *testing.T, n *netsim.Network) {
				client := slowReader(t, n, tc.h2, tc.writeByteTimeout)
				took, err := call(client, 200<<10, time.Second)
				assert.ErrorIs(t, err, tc.with)
				assert.InDelta(t, tc.fails, took, float64(150*ms))
				took, err = call(client, 0, time.Second)
				assert.NoError(t, err)
				assert.Equal(t, 40*ms, took.Round(ms), "a dial and a round trip")
				assert.Equal(t, 2, dials(n, 80))
			}, tenms, small)
		})
	}
}

// golang/go#33425 as it still is in Go 1.26: the second request waits for the
// mutex that the first one's write holds. In real time it fails at its own
// time-out and no connection is dialled for it; in a bubble, whose time stands
// still then, the watchdog names the mutex.
func TestStopsReadingUnderTheMutex(t *testing.T) {
	t.Run("in real time", func(t *testing.T) {
		n := netsim.New(small)
		defer n.Close()
		client := slowReader(t, n, true, 0)
		for _, body := range []int{200 << 10, 0} {
			took, err := call(client, body, time.Second) // time enough to connect on a busy machine
			assert.ErrorIs(t, err, context.DeadlineExceeded)
			assert.GreaterOrEqual(t, took, 900*ms)
		}
		assert.Equal(t, 1, dials(n, 80))
	})
	t.Run("in a bubble", func(t *testing.T) {
		err := netsim.Bubble(t, func(t *testing.T, n *netsim.Network) {
			client := slowReader(t, n, true, 0)
			_, err := call(client, 200<<10, time.Second)
			assert.ErrorIs(t, err, context.DeadlineExceeded)
			call(client, 0, time.Second)
		}, tenms, small, netsim.Clock(clock.Patience(500*ms)))
		require.ErrorIs(t, err, clock.ErrFrozen)
		assert.ErrorContains(t, err, "sync.Mutex")
		assert.ErrorContains(t, err, "http2ClientConn")
	})
}

const tooLarge = "HTTP/1.1 413 Request Entity Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"

// refusing is a server that refuses an upload after 4 KiB.
func refusing(t *testing.T, l net.Listener, linger time.Duration) {
	t.Cleanup(func() { l.Close() })
	go func() {
		c, err := l.Accept()
		if err == nil {
			conditions.RefuseUpload(c, 4<<10, tooLarge, linger)
		}
	}()
}

// golang/go#51109: of 8 MiB the server reads 4 KiB. What net/http makes of it.
func TestRefuseUpload(t *testing.T) {
	for _, tc := range []struct {
		name   string
		linger time.Duration
		lost   bool
		err    error
	}{
		{"the answer, then the RST", 0, false, nil},
		{"the answer, FIN, and the RST later", 500 * ms, false, nil},
		{"the RST alone", 0, true, syscall.ECONNRESET},
	} {
		t.Run(tc.name, func(t *testing.T) {
			netsim.Run(t, func(t *testing.T, n *netsim.Network) {
				app, api := n.Host("app"), n.Host("api")
				refusing(t, listen(t, api, ":80"), tc.linger)
				if tc.lost {
					conditions.AnswerLost(n, api, 80)
				}
				tr := &http.Transport{DialContext: app.DialContext}
				defer tr.CloseIdleConnections()
				resp, err := (&http.Client{Transport: tr}).Post("http://api/", "", strings.NewReader(strings.Repeat(".", 8<<20)))
				if tc.err == nil {
					require.NoError(t, err)
					assert.Equal(t, http.StatusRequestEntityTooLarge, resp.StatusCode)
					resp.Body.Close()
				} else {
					// Of net/http's two goroutines the one that comes second finds the connection closed by the first.
					assert.True(t, errors.Is(err, tc.err) || errors.Is(err, net.ErrClosed), "%v", err)
				}
				assert.Equal(t, 1, dials(n, 80), "a POST is not sent again")
			}, tenms, small)
		})
	}
}

// golang/go#51109: a program that writes everything before it reads gets one of
// two errors, as the server closed, and can read the answer after it.
func TestRefuseUploadOfAWriter(t *testing.T) {
	for linger, want := range map[time.Duration]error{0: syscall.ECONNRESET, 500 * ms: syscall.EPIPE} {
		t.Run(want.Error(), func(t *testing.T) {
			netsim.Run(t, func(t *testing.T, n *netsim.Network) {
				app, api := n.Host("app"), n.Host("api")
				refusing(t, listen(t, api, ":80"), linger)
				c := dial(t, app, "api:80")
				_, err := c.Write(make([]byte, 8<<20))
				assert.ErrorIs(t, err, want)
				answer, err := io.ReadAll(c)
				assert.NoError(t, err, "the error is given once")
				assert.Equal(t, tooLarge, string(answer))
			}, tenms, small)
		})
	}
}

// golang/go#78968: the second request leaves the client while GOAWAY is on its
// way to it; the server closes without having read it.
func TestGoAway(t *testing.T) {
	for _, tc := range []struct {
		name  string
		last  []uint32
		lost  bool
		dials int
	}{
		{"one step", []uint32{conditions.AllStreams}, true, 1},
		{"two steps", []uint32{conditions.AllStreams, 1}, false, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			netsim.Run(t, func(t *testing.T, n *netsim.Network) {
				app, api := n.Host("app"), n.Host("api")
				l := listen(t, api, ":80")
				defer l.Close()
				go func() {
					c, err := l.Accept()
					if err != nil {
						return
					}
					if !assert.NoError(t, answerOne(c)) {
						return
					}
					time.Sleep(100 * ms)
					assert.NoError(t, conditions.GoAway(c, 50*ms, tc.last...))
					s := &http.Server{Protocols: protocols(true), Handler: http.HandlerFunc(ok)}
					s.Serve(l)
				}()
				tr := &http.Transport{DialContext: app.DialContext, Protocols: protocols(true)}
				client := &http.Client{Transport: tr, Timeout: 10 * time.Second}
				require.NoError(t, get(client, "http://api/"))
				time.Sleep(100*ms + ms - 25*ms) // the answer took 25 ms; GOAWAY left a moment ago
				err := get(client, "http://api/")
				if tc.lost {
					assert.ErrorContains(t, err, "GOAWAY")
				} else {
					assert.NoError(t, err)
				}
				assert.Equal(t, tc.dials, dials(n, 80))
				assert.NoError(t, get(client, "http://api/"), "later ones go to a new connection")
				assert.Equal(t, 2, dials(n, 80))
				tr.CloseIdleConnections()
			}, netsim.Defaults(netsim.Conditions{Latency: 25 * ms}))
		})
	}
}

// answerOne answers the first request on an HTTP/2 connection with 200.
func answerOne(c net.Conn) error {
	if _, err := io.ReadFull(c, make([]byte, len(http2.ClientPreface))); err != nil {
		return err
	}
	f := http2.NewFramer(c, c)
	if err := f.WriteSettings(); err != nil {
		return err
	}
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return err
		}
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				err = f.WriteSettingsAck()
			}
		case *http2.HeadersFrame:
			const status200 = 0x88 // of HPACK's static table
			return f.WriteHeaders(http2.HeadersFrameParam{
				StreamID: frame.StreamID, BlockFragment: []byte{status200}, EndStream: true, EndHeaders: true,
			})
		}
		if err != nil {
			return fmt.Errorf("answerOne: %w", err)
		}
	}
}
