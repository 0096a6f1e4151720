// Command racechart draws two pictures of the transport race: a cold connect on cellular as a Gantt chart and a walk
// through networks as a timeline.
//
//	go run ./scenarios/cmd/racechart docs/img
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-5a7f77c4/deadair/clock"
	"github.com/seed-5a7f77c4/deadair/scenarios"
	"github.com/seed-5a7f77c4/deadair/scenarios/transportrace"
)

func main() {
	dir := "docs/img"
	if len(os.Args) > 1 {
		dir = os.Args[1]
	}
	clock.Main(func(t *testing.T) {
		var cold transportrace.Raced
		var walk transportrace.Walked
		scenarios.Run(t, transportrace.Connecting(&cold), transportrace.Ours(), scenarios.Seed(1)).Require(t)
		scenarios.Run(t, transportrace.Walking(&walk, transportrace.Commute...), transportrace.Ours(), scenarios.Seed(1)).Require(t)
		for name, svg := range map[string]string{"race.svg": gantt(cold), "walk.svg": timeline(walk)} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(svg), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	})
}

const (
	left, width, row = 260, 640, 34
	frame            = `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="13"><rect width="100%%" height="100%%" fill="white"/>`
)

var colours = map[string]string{"lan": "#2e7d32", "tailnet": "#1565c0", "relay": "#ef6c00", "up": "#90a4ae", "race": "#6a1b9a", "stream": "#78909c"}

// chart places bars on a common axis.
type chart struct {
	strings.Builder
	span time.Duration
	rows int
}

func (c *chart) x(d time.Duration) float64 { return left + float64(width)*float64(d)/float64(c.span) }

func (c *chart) row(label string) int {
	y := 40 + c.rows*row
	c.rows++
	fmt.Fprintf(c, `<text x="10" y="%d">%s</text>`, y+17, label)
	return y
}

func (c *chart) bar(y int, from, to time.Duration, colour, opacity string) {
	fmt.Fprintf(c, `<rect x="%.1f" y="%d" width="%.1f" height="22" fill="%s" opacity="%s"/>`, c.x(from), y, max(c.x(to)-c.x(from), 2), colour, opacity)
}

func (c *chart) text(y int, at time.Duration, s string) {
	fmt.Fprintf(c, `<text x="%.1f" y="%d" font-size="11">%s</text>`, c.x(at)+4, y+15, s)
}

// finish puts the title and the axis around the rows.
func (c *chart) finish(title string, step time.Duration) string {
	bottom := 40 + c.rows*row
	var axis strings.Builder
	for d := time.Duration(0); d <= c.span; d += step {
		fmt.Fprintf(&axis, `<line x1="%.1f" y1="34" x2="%.1f" y2="%d" stroke="#ddd"/><text x="%.1f" y="%d" text-anchor="middle" font-size="11">%v</text>`,
			c.x(d), c.x(d), bottom, c.x(d), bottom+16, fmt.Sprintf("%g s", d.Seconds()))
	}
	return fmt.Sprintf(frame, left+width+110, bottom+30) + fmt.Sprintf(`<text x="10" y="22" font-size="16">%s</text>`, title) + axis.String() + c.String() + "</svg>\n"
}

func gantt(r transportrace.Raced) string {
	slots, lanes := r.Dialled()
	c := &chart{}
	for _, l := range lanes {
		c.span = max(c.span, l.Ended)
	}
	for i, l := range lanes {
		y := c.row(fmt.Sprintf("%s %s", slots[i].Class, strings.TrimPrefix(slots[i].Target(), "wss://")))
		colour := colours[slots[i].Class.String()]
		c.bar(y, l.Started, l.Ended, colour, "0.4")
		if l.Opened > 0 {
			c.bar(y, l.Opened, l.Ended, colour, "1")
		}
		c.text(y, l.Ended, fmt.Sprintf("%v %v", l.State, l.Ended.Round(time.Millisecond)))
	}
	return c.finish("Cold connect on cellular: pale = socket opening, full = open, hello under way", 100*time.Millisecond)
}

func timeline(r transportrace.Walked) string {
	c := &chart{span: r.Ended}
	for _, i := range []struct {
		name string
		up   func(transportrace.Leg) bool
	}{
		{"Wi-Fi", func(l transportrace.Leg) bool { return l.WiFi != "" }},
		{"cellular", func(l transportrace.Leg) bool { return l.Cell }},
		{"tailnet", func(l transportrace.Leg) bool { return l.Tail }},
	} {
		y := c.row(i.name)
		var at time.Duration
		for _, l := range r.Legs {
			if i.up(l) {
				c.bar(y, at, at+l.For, colours["up"], "1")
			}
			if i.name == "Wi-Fi" && l.WiFi != "" {
				c.text(y, at, l.WiFi)
			}
			at += l.For
		}
	}
	y := c.row("class in use")
	for _, u := range r.Connections {
		end := u.Ended
		if end == 0 {
			end = r.Ended
		}
		c.bar(y, u.Adopted, end, colours[u.Class.String()], "1")
		c.text(y, u.Adopted, u.Class.String())
	}
	y = c.row("races")
	for _, race := range r.Races {
		c.bar(y, race.Began, race.Ended, colours["race"], "1")
	}
	y = c.row("sockets dialled")
	for _, d := range r.Dials {
		if colour := colours[d.To]; colour != "" {
			c.bar(y, d.At, d.At, colour, "1")
		}
	}
	y = c.row("the machine's stream")
	at := time.Duration(0)
	for _, s := range append(r.Silences, transportrace.Silence{From: r.Ended}) {
		c.bar(y, at, s.From, colours["stream"], "1")
		at = s.To
	}
	for _, s := range r.Silences {
		c.text(y, s.From, (s.To - s.From).Round(10*time.Millisecond).String())
	}
	return c.finish("A walk: green = LAN, blue = tailnet, orange = relay, grey = interfaces and the stream", 10*time.Second)
}
