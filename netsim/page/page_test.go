package page_test

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/netsim"
	"github.com/seed-5a7f77c4/deadair/netsim/page"
)

// play is a client that is answered, loses its path for a while, and is reset at the end.
func play(t *testing.T) (trace *netsim.Trace) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		app, p1, relay := n.Host("app"), n.Host("p1"), n.Host("relay")
		n.Link(app, p1).SetConditions(netsim.Conditions{Latency: 10 * time.Millisecond})
		n.Link(app, relay).SetConditions(netsim.Conditions{Latency: 25 * time.Millisecond})
		for _, h := range []*netsim.Host{p1, relay} {
			l, err := h.Listen("tcp", ":443")
			require.NoError(t, err)
			go func() {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					go func() { io.Copy(c, c); c.Close() }()
				}
			}()
		}
		talk := func(to string, size int) {
			c, err := app.DialContext(t.Context(), "tcp", to)
			require.NoError(t, err)
			defer c.Close()
			_, err = c.Write(make([]byte, size))
			require.NoError(t, err)
			_, err = io.ReadFull(c, make([]byte, size))
			require.NoError(t, err)
		}
		talk("p1:443", 20_000)
		n.Notef("the train enters a tunnel")
		n.Link(app, relay).Cut()
		time.AfterFunc(3500*time.Millisecond, func() { n.Link(app, relay).Heal() })
		talk("relay:443", 700)
		_, err := app.DialContext(t.Context(), "tcp", "relay:9")
		require.Error(t, err)
		trace = n.Trace()
	})
	return trace
}

func write(t *testing.T, p page.Page, trace page.Trace) string {
	var out bytes.Buffer
	require.NoError(t, p.Write(&out, trace))
	return out.String()
}

var embedded = regexp.MustCompile(`(?s)<script id="events" type="application/json">(.*?)</script>`)

func eventsIn(t *testing.T, html string) (events []map[string]any) {
	found := embedded.FindStringSubmatch(html)
	require.NotNil(t, found)
	require.NoError(t, json.Unmarshal([]byte(found[1]), &events))
	return events
}

func TestPageHoldsTheWholeTrace(t *testing.T) {
	trace := play(t)
	html := write(t, page.Page{
		Title: "Client leaves a dead path", Seed: 7, Replay: "go test -run TestX",
		Failures: []string{"connected after 7 s, want less than 5 s"},
		Figures:  []page.Figure{{Name: "time to connect", Value: "7.02 s"}},
		Tables:   []page.Table{{Title: "Sockets", Head: []string{"host", "local", "remote", "state"}, Rows: [][]string{{"app", "10.0.0.1:40000", "10.0.0.2:443", "TIME_WAIT"}}}},
	}, trace)
	assert.Len(t, eventsIn(t, html), trace.Len())
	for _, part := range []string{
		"Client leaves a dead path", trace.Hash(), "go test -run TestX", "connected after 7 s", "7.02 s", "TIME_WAIT",
		"the train enters a tunnel",
	} {
		assert.Contains(t, html, part)
	}
	if path := os.Getenv("PAGE_FILE"); path != "" { // to look at
		require.NoError(t, os.WriteFile(path, []byte(html), 0o644))
	}
}

// A name is anything: it must not become part of the page's own language.
func TestNothingInATraceBreaksThePage(t *testing.T) {
	const nasty = `</script><script>alert("x")</script><!--`
	events := made{
		{From: nasty, To: "b", Fate: netsim.Delivered, Proto: netsim.UDP, Kind: netsim.Datagram, Flow: nasty, Why: nasty},
		{Fate: netsim.Note, Why: nasty},
	}
	html := write(t, page.Page{Title: nasty, Replay: nasty, Failures: []string{nasty}}, events)
	assert.NotContains(t, html, `<script>alert`)
	assert.Len(t, eventsIn(t, html), 2)
	assert.Equal(t, nasty, eventsIn(t, html)[1]["why"])
	assert.NotRegexp(t, `(src|href)="?https?:`, html, "the page loads nothing")
}

func TestLimitKeepsTheEnd(t *testing.T) {
	events := make(made, 10)
	for i := range events {
		events[i] = netsim.Event{Fate: netsim.Note, At: time.Duration(i) * time.Second}
	}
	html := write(t, page.Page{Limit: 3}, events)
	shown := eventsIn(t, html)
	require.Len(t, shown, 3)
	assert.InDelta(t, 9e6, shown[2]["at"], 0)
	assert.Contains(t, html, "The first 7 events are not shown.")
	assert.Empty(t, eventsIn(t, write(t, page.Page{}, made{})), "an empty trace makes a page, too")
}

func TestErrorsOfWritingComeOut(t *testing.T) {
	assert.ErrorIs(t, page.Page{}.Write(broken{}, made{}), os.ErrClosed)
}

type made []netsim.Event

func (m made) Start() time.Time       { return time.Unix(0, 0) }
func (m made) Events() []netsim.Event { return m }
func (m made) Hash() string           { return "0" }

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, os.ErrClosed }
