// Package page shows what happened on a simulated network as one HTML page: a sequence diagram with a line for every
// host and an arrow for every packet, a table of sockets, and figures. The page is one file that loads nothing.
//
//	f, err := os.Create("run.html")
//	...
//	err = page.Page{Title: "client leaves a dead proxy"}.Write(f, n.Trace())
//
// Times are the network's. Gaps in which nothing happens are folded. Boxes choose hosts, flows and kinds of packets;
// what is lost ends in a cross, what was sent again is dashed.
package page

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"time"

	"github.com/seed-5a7f77c4/deadair/netsim"
)

// Trace is what is shown: a *netsim.Trace.
type Trace interface {
	Start() time.Time
	Events() []netsim.Event
	Hash() string
}

// DefaultLimit is how many events a page shows: a browser draws them within a second.
const DefaultLimit = 3000

// Page is what stands around the diagram. The zero value is a page without a title.
type Page struct {
	Title    string
	Seed     uint64
	Replay   string   // the command that plays this run again
	Failures []string // what went wrong, shown first
	Figures  []Figure
	Tables   []Table // sockets, faults and their hits, ...
	Limit    int     // events shown, the last ones; 0 stands for DefaultLimit
}

// Figure is a number with its name, such as {"time to connect", "1.2 s"}.
type Figure struct{ Name, Value string }

// Table is a table with a head: for instance the sockets at the end of a run.
type Table struct {
	Title string
	Head  []string
	Rows  [][]string
}

//go:embed page.html
var source string

//go:embed page.css
var style string

//go:embed page.js
var script string

var tmpl = template.Must(template.New("page").Parse(source))

// Write writes the page. The error is one of writing.
func (p Page) Write(w io.Writer, t Trace) error {
	events := t.Events()
	limit := p.Limit
	if limit <= 0 {
		limit = DefaultLimit
	}
	omitted := max(0, len(events)-limit)
	data, err := json.Marshal(shown(events[omitted:])) // escapes <, > and &, so that it can stand in a script element
	if err != nil {
		return fmt.Errorf("page: %w", err)
	}
	err = tmpl.Execute(w, map[string]any{
		"Page": p, "Hash": t.Hash(), "Start": t.Start().UTC().Format(time.RFC3339Nano),
		"Omitted": omitted, "Tiles": tiles(events), "Events": template.JS(data),
		"Style": template.CSS(style), "Script": template.JS(script),
	})
	if err != nil {
		return fmt.Errorf("page: %w", err)
	}
	return nil
}

// event is an event as the script gets it. Times are microseconds: a number of JavaScript holds nanoseconds for no
// more than 104 days, but microseconds with three places behind the point are read as easily.
type event struct {
	At    float64 `json:"at"`
	Sent  float64 `json:"sent"`
	From  string  `json:"from,omitempty"`
	To    string  `json:"to,omitempty"`
	Src   string  `json:"src,omitempty"`
	Dst   string  `json:"dst,omitempty"`
	Proto string  `json:"proto,omitempty"`
	Kind  string  `json:"kind,omitempty"`
	Fate  string  `json:"fate"`
	Flow  string  `json:"flow,omitempty"`
	Seq   int64   `json:"seq,omitempty"`
	Ack   int64   `json:"ack,omitempty"`
	Len   int     `json:"len,omitempty"`
	Again bool    `json:"again,omitempty"`
	Probe bool    `json:"probe,omitempty"`
	Copy  bool    `json:"copy,omitempty"`
	Why   string  `json:"why,omitempty"`
}

func shown(events []netsim.Event) []event {
	out := make([]event, len(events))
	for i, e := range events {
		out[i] = event{
			At: micros(e.At), Sent: micros(e.Sent), From: e.From, To: e.To, Fate: e.Fate.String(), Flow: e.Flow,
			Seq: e.Seq, Ack: e.Ack, Len: e.Len, Again: e.Again, Probe: e.Probe, Copy: e.Copy, Why: e.Why,
		}
		if e.Fate == netsim.Note {
			continue
		}
		out[i].Proto, out[i].Kind = e.Proto.String(), e.Kind.String()
		if e.Src.IsValid() {
			out[i].Src = e.Src.String()
		}
		if e.Dst.IsValid() {
			out[i].Dst = e.Dst.String()
		}
	}
	return out
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// tiles are the figures that every run has.
func tiles(events []netsim.Event) []Figure {
	var packets, lost, again, bytes int
	flows := make(map[string]struct{})
	var first, last time.Duration
	for i, e := range events {
		if i == 0 {
			first = e.Sent
		}
		last = max(last, e.At)
		if e.Fate == netsim.Note {
			continue
		}
		packets++
		if e.Flow != "" {
			flows[e.Flow] = struct{}{}
		}
		if e.Fate == netsim.Dropped {
			lost++
		} else {
			bytes += e.Len
		}
		if e.Again {
			again++
		}
	}
	return []Figure{
		{"virtual time", (last - first).Round(time.Microsecond).String()},
		{"flows", fmt.Sprint(len(flows))},
		{"packets", fmt.Sprint(packets)},
		{"lost", fmt.Sprint(lost)},
		{"sent again", fmt.Sprint(again)},
		{"payload delivered", size(bytes)},
	}
}

func size(n int) string {
	switch {
	case n >= 10<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 10<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	default:
		return fmt.Sprintf("%d B", n)
	}
}
