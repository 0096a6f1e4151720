package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/seed-5a7f77c4/deadair/scenarios/privaterouting"
)

// The plot's area within the picture, in pixels.
const (
	left, top, width, height = 70, 60, 640, 360
	legend                   = left + width + 24
)

// style tells the lines apart even where they lie on each other: the agent as it
// is runs broad beneath, the others thin and dashed above it.
type style struct {
	colour string
	width  float64
	dash   string
}

var styles = map[string]style{
	"old":                    {"#c62828", 2.5, ""},
	"fixed":                  {"#90caf9", 8, ""},
	"exclude failed":         {"#2e7d32", 2.5, ""},
	"count client time-outs": {"#6a1b9a", 2.5, "10 6"},
	"streak expiry":          {"#212121", 1.5, "3 5"},
	"probe another":          {"#ef6c00", 2.5, ""},
}

// plot is the share that has recovered over seconds or Retries.
type plot struct {
	strings.Builder
	span float64
	row  int // of the legend
}

func (p *plot) x(v float64) float64     { return left + width*min(v/p.span, 1) }
func (p *plot) y(share float64) float64 { return top + height*(1-share) }

func newPlot(title, axis string, span, step float64) *plot {
	p := &plot{span: span}
	fmt.Fprintf(p, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="13"><rect width="100%%" height="100%%" fill="white"/>`, legend+200, top+height+60)
	fmt.Fprintf(p, `<text x="%d" y="26" font-size="16">%s</text>`, left, title)
	fmt.Fprintf(p, `<text x="%d" y="46" fill="#555">share of the trials that are connected</text>`, left)
	for i := range 5 {
		share := float64(i) / 4
		fmt.Fprintf(p, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#e0e0e0"/>`, left, p.y(share), left+width, p.y(share))
		fmt.Fprintf(p, `<text x="%d" y="%.1f" text-anchor="end">%.0f %%</text>`, left-8, p.y(share)+4, 100*share)
	}
	for v := 0.0; v <= span; v += step {
		fmt.Fprintf(p, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#e0e0e0"/>`, p.x(v), top, p.x(v), top+height)
		fmt.Fprintf(p, `<text x="%.1f" y="%d" text-anchor="middle">%.0f</text>`, p.x(v), top+height+18, v)
	}
	fmt.Fprintf(p, `<text x="%d" y="%d" text-anchor="middle" fill="#555">%s</text>`, left+width/2, top+height+42, axis)
	return p
}

// steps draws the share of r's trials that have recovered, as it grows.
func (p *plot) steps(r result, values []float64) {
	s := styles[r.name]
	var d strings.Builder
	fmt.Fprintf(&d, "M%.1f %.1f", p.x(0), p.y(0))
	share := 0.0
	for i, v := range values {
		if i+1 < len(values) && p.x(values[i+1])-p.x(v) < 0.05 || v > p.span {
			continue // the next one is on the same spot of the picture
		}
		share = float64(i+1) / float64(r.trials)
		fmt.Fprintf(&d, "H%.1fV%.1f", p.x(v), p.y(share))
	}
	fmt.Fprintf(&d, "H%.1f", p.x(p.span))
	fmt.Fprintf(p, `<path d="%s" fill="none" stroke="%s" stroke-width="%.1f" stroke-dasharray="%s"/>`, d.String(), s.colour, s.width, s.dash)
	y := p.entry(r.name)
	fmt.Fprintf(p, `<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="%s" stroke-width="%.1f" stroke-dasharray="%s"/>`, legend, y, legend+26, y, s.colour, s.width, s.dash)
}

func (p *plot) entry(name string) int {
	y := top + 12 + 22*p.row
	p.row++
	fmt.Fprintf(p, `<text x="%d" y="%d">%s</text>`, legend+34, y+4, name)
	return y
}

// observed marks the field's trials: those that connected where they would be if
// each device were a line of its own, those of the old agent at the bottom.
func (p *plot) observed(trials []privaterouting.Trial) {
	p.row++
	p.entry("observed in the field:")
	for _, where := range []string{"desktop", "Android"} {
		var good []float64
		n := 0
		for _, t := range trials {
			if t.Where != where || t.Old {
				continue
			}
			n++
			if !t.Never {
				good = append(good, t.Value)
			}
		}
		slices.Sort(good)
		for i, v := range good {
			p.mark(where, p.x(v), p.y(float64(i+1)/float64(n)))
		}
		p.mark(where, legend+13, float64(p.entry(fmt.Sprintf("%s, connected (of %d)", where, n))))
	}
	stacked := map[float64]float64{}
	for _, t := range trials {
		if t.Old {
			p.cross(p.x(t.Value), p.y(0)-stacked[t.Value])
			stacked[t.Value] += 11
		}
	}
	p.cross(legend+13, float64(p.entry("old, never (watched so long)")))
}

func (p *plot) mark(where string, x, y float64) {
	if where == "desktop" {
		fmt.Fprintf(p, `<rect x="%.1f" y="%.1f" width="9" height="9" fill="white" stroke="#0d47a1" stroke-width="2"/>`, x-4.5, y-4.5)
		return
	}
	fmt.Fprintf(p, `<circle cx="%.1f" cy="%.1f" r="5" fill="white" stroke="#00695c" stroke-width="2"/>`, x, y)
}

func (p *plot) cross(x, y float64) {
	fmt.Fprintf(p, `<path d="M%.1f %.1fl8 8m0 -8l-8 8" stroke="#c62828" stroke-width="2"/>`, x-4, y-4)
}

func (p *plot) svg() string { return p.String() + "</svg>\n" }

// beneath gives the agents in the order in which they are drawn: broad first.
func beneath(all []result) []result {
	return slices.SortedStableFunc(slices.Values(all), func(a, b result) int {
		return int(styles[b.name].width - styles[a.name].width)
	})
}

func replyPlot(all []result, seen []privaterouting.Trial) string {
	p := newPlot("A contact joins, and the reply goes in the background (P1 silent, P2 good)", "virtual seconds since the first attempt", privaterouting.Watched.Seconds(), 60)
	for _, r := range beneath(all) {
		p.steps(r, r.after)
	}
	p.observed(seen)
	return p.svg()
}

func joinPlot(all []result, seen []privaterouting.Trial) string {
	p := newPlot("The user joins a link and taps Retry after each error (P1 silent, P2 good)", "number of the Retry", privaterouting.Patience, 1)
	for _, r := range beneath(all) {
		p.steps(r, r.retry)
	}
	p.observed(seen)
	return p.svg()
}
