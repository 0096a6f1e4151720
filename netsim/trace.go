package netsim

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"time"
)

// Fate is what became of a packet.
type Fate uint8

// The fates. A Note is no packet: somebody did something, such as cutting a
// link, or a connection ended with an error.
const (
	Delivered Fate = iota + 1
	Dropped
	Note
)

// String is the fate in a word.
func (f Fate) String() string {
	switch f {
	case Delivered:
		return "delivered"
	case Dropped:
		return "dropped"
	}
	return "note"
}

// MarshalText is the fate's name.
func (f Fate) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// MarshalText is the kind's name, as in the trace's text.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// MarshalText is the transport's name.
func (p Proto) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// An Event is one line of a trace: a packet whose fate is known, or a note.
type Event struct {
	At    time.Duration  `json:"at"`             // since the network was made, when the fate was known
	Sent  time.Duration  `json:"sent"`           // when the packet was sent
	From  string         `json:"from"`           // the host that sent it
	To    string         `json:"to,omitempty"`   // the host that it was for
	Src   netip.AddrPort `json:"src,omitzero"`   // as on the wire when the fate was known
	Dst   netip.AddrPort `json:"dst,omitzero"`   //
	Proto Proto          `json:"proto,omitzero"` //
	Kind  Kind           `json:"kind,omitzero"`  //
	Fate  Fate           `json:"fate"`           //
	Flow  string         `json:"flow,omitempty"` // the connection, such as "app>relay:443#1": the first that app opened there
	Seq   int64          `json:"seq,omitempty"`  // relative: the SYN is 0, the first byte 1
	Ack   int64          `json:"ack,omitempty"`
	Right int64          `json:"right,omitempty"` // the right edge of the window: the first number the sender will not take
	Len   int            `json:"len,omitempty"`   // payload, in bytes
	Size  int            `json:"size,omitempty"`  // with IP and transport headers
	Again bool           `json:"again,omitempty"` // a retransmission
	Probe bool           `json:"probe,omitempty"` // a keep-alive or window probe
	Copy  bool           `json:"copy,omitempty"`  // a duplicate that the network made
	Why   string         `json:"why,omitempty"`   // why it was dropped, or the note's text
	// Payload is the packet's content if the network was made with [Payloads].
	Payload []byte `json:"payload,omitempty"`
}

// String is the event as a line of text.
func (e Event) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%14.9f  ", e.At.Seconds())
	if e.Fate == Note {
		b.WriteString("-- ")
		if e.From != "" {
			b.WriteString(e.From)
			if e.To != "" {
				b.WriteString(" - " + e.To)
			}
			b.WriteString(": ")
		}
		b.WriteString(e.Why)
		if e.Flow != "" {
			b.WriteString("  [" + e.Flow + "]")
		}
		return b.String()
	}
	arrow := "→"
	if e.Fate == Dropped {
		arrow = "✗"
	}
	fmt.Fprintf(&b, "%s %s %s  %s %s", e.From, arrow, e.To, e.Proto, e.Kind)
	if e.Len > 0 {
		fmt.Fprintf(&b, " %dB", e.Len)
	}
	if e.Proto == TCP {
		fmt.Fprintf(&b, " seq %d ack %d", e.Seq, e.Ack)
	}
	for _, m := range []struct {
		on   bool
		text string
	}{{e.Again, "again"}, {e.Probe, "probe"}, {e.Copy, "copy"}} {
		if m.on {
			b.WriteString(" " + m.text)
		}
	}
	if e.Fate == Dropped {
		b.WriteString("  lost: " + e.Why)
	} else {
		fmt.Fprintf(&b, "  after %v", e.At-e.Sent)
		if e.Why != "" {
			b.WriteString(", " + e.Why)
		}
	}
	b.WriteString("  [" + e.Flow + "]")
	return b.String()
}

// A Trace is what happened on a network, in order. Read it when the network is
// quiet: from the test's goroutine, or after Close.
type Trace struct {
	n       *Network
	events  []Event
	limit   int
	count   int
	hash    uint64
	start   time.Time
	names   map[string]uint64
	payload int
}

func newTrace(n *Network, o *options) *Trace {
	return &Trace{n: n, limit: o.traceLimit, payload: o.payloads, names: map[string]uint64{}, start: n.sched.Epoch()}
}

// nameHash is the hash of a name, computed once.
func (t *Trace) nameHash(s string) uint64 {
	h, ok := t.names[s]
	if !ok {
		h = drawKey(0, s, false)
		t.names[s] = h
	}
	return h
}

// add writes e down. It runs under the network's lock, while an event runs.
func (t *Trace) add(e Event) {
	t.count++
	h := t.hash
	for _, v := range [...]uint64{
		uint64(e.At), uint64(e.Sent), t.nameHash(e.From), t.nameHash(e.To), t.nameHash(e.Flow), t.nameHash(e.Why),
		uint64(e.Proto)<<32 | uint64(e.Kind)<<16 | uint64(e.Fate), uint64(e.Seq), uint64(e.Ack), uint64(e.Len),
		uint64(e.Src.Port())<<16 | uint64(e.Dst.Port()),
	} {
		h = mix(h*golden ^ v)
	}
	t.hash = h
	if len(t.events) < t.limit {
		t.events = append(t.events, e)
	}
}

// Events gives what was written down so far. Beyond the network's [TraceLimit]
// events only count and enter the hash.
func (t *Trace) Events() []Event {
	t.n.enter()
	defer t.n.mu.Unlock()
	return t.events[:len(t.events):len(t.events)]
}

// Len is the number of events, also of those beyond the limit.
func (t *Trace) Len() int {
	t.n.enter()
	defer t.n.mu.Unlock()
	return t.count
}

// Start is the date at which the network was made, to which all times relate.
func (t *Trace) Start() time.Time { return t.start }

// Hash stands for the whole trace: two runs with the same hash saw the same
// packets at the same instants with the same fates.
func (t *Trace) Hash() string {
	t.n.enter()
	defer t.n.mu.Unlock()
	return fmt.Sprintf("%016x", t.hash)
}

// Count is how many events match.
func (t *Trace) Count(match func(Event) bool) int {
	n := 0
	for _, e := range t.Events() {
		if match(e) {
			n++
		}
	}
	return n
}

// Find gives the events that match.
func (t *Trace) Find(match func(Event) bool) []Event {
	var found []Event
	for _, e := range t.Events() {
		if match(e) {
			found = append(found, e)
		}
	}
	return found
}

// First gives the first event that matches; ok is false when none does.
func (t *Trace) First(match func(Event) bool) (e Event, ok bool) {
	for _, e := range t.Events() {
		if match(e) {
			return e, true
		}
	}
	return Event{}, false
}

// WriteTo writes the trace as text, a line an event.
func (t *Trace) WriteTo(w io.Writer) (int64, error) {
	var n int64
	b := bufio.NewWriter(w)
	events := t.Events()
	for _, e := range events {
		k, _ := fmt.Fprintln(b, e)
		n += int64(k)
	}
	if more := t.Len() - len(events); more > 0 {
		k, _ := fmt.Fprintf(b, "… and %d more events beyond the trace's limit\n", more)
		n += int64(k)
	}
	return n, b.Flush()
}

// WriteJSON writes the trace as JSON lines, an object an event.
func (t *Trace) WriteJSON(w io.Writer) error {
	b := bufio.NewWriter(w)
	enc := json.NewEncoder(b)
	for _, e := range t.Events() {
		if err := enc.Encode(e); err != nil {
			return err
		}
	}
	return b.Flush()
}

// Tail is the last n events as text.
func (t *Trace) Tail(n int) string {
	events := t.Events()
	var b strings.Builder
	if skipped := len(events) - max(n, 0); skipped > 0 {
		fmt.Fprintf(&b, "  … %d events before\n", skipped)
		events = events[skipped:]
	}
	for _, e := range events {
		b.WriteString(e.String())
		b.WriteByte('\n')
	}
	return b.String()
}
