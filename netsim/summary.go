package netsim

import (
	"fmt"
	"strings"
)

// notesShown is how many notes from before its end a summary shows.
const notesShown = 6

// Summary is the end of the trace for a reader in a hurry: so many lines or two
// more, in which retransmissions, probes and bare acknowledgements that follow each
// other take three. The last notes from before these lines come first.
func (t *Trace) Summary(lines int) string {
	events := t.Events()
	var shown []string
	first := len(events) // the first event that is shown
	for end := len(events); end > 0 && len(shown) < lines; {
		start := end - 1
		if events[start].routine() {
			for start > 0 && events[start-1].routine() {
				start--
			}
		}
		if n := end - start; n > 3 {
			shown = append(shown, events[end-1].String(),
				fmt.Sprintf("%16s… %d more retransmissions, probes and acknowledgements", "", n-2), events[start].String())
		} else {
			start = end - 1
			shown = append(shown, events[start].String())
		}
		end, first = start, start
	}
	var notes []string
	for i := first - 1; i >= 0 && len(notes) < notesShown; i-- {
		if events[i].Fate == Note {
			notes = append(notes, events[i].String())
		}
	}
	var b strings.Builder
	down := func(lines []string) {
		for i := len(lines) - 1; i >= 0; i-- {
			b.WriteString(lines[i])
			b.WriteByte('\n')
		}
	}
	down(notes)
	if first > 0 {
		fmt.Fprintf(&b, "  … %d events before\n", first)
	}
	down(shown)
	return b.String()
}

// routine reports whether the event says little that one like it did not.
func (e Event) routine() bool {
	return e.Fate != Note && (e.Again || e.Probe || e.Kind == ACK)
}
