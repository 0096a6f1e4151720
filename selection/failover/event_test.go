package failover

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestInspectEvent(t *testing.T) {
	for _, tt := range []struct {
		event Event
		want  Verdict
	}{
		{Event{Data: "hello"}, Content},
		{Event{Type: "error", Data: "x"}, Failure},
		{Event{Type: "error"}, Failure},
		{Event{Type: "ping", Data: "{}"}, Preamble},
		{Event{Data: " "}, Preamble},
		{Event{Data: "[DONE]"}, Preamble},
		{Event{Data: `{"error":{"message":"busy"}}`}, Failure},
		{Event{Data: `{"type":"error"}`}, Failure},
		{Event{Data: `{"error":null,"text":"x"}`}, Content},
		{Event{Data: `{"text":"no \"error\" here"}`}, Content},
		{Event{Data: `{"error`}, Content},
	} {
		assert.Equal(t, tt.want, InspectEvent(tt.event), "%+v", tt.event)
	}
}

// scan feeds a stream in pieces of n bytes and gives all its events.
func scan(stream string, n int) (events []Event) {
	s := &scanner{inspect: func(e Event) Verdict { events = append(events, e); return Preamble }}
	for len(stream) > 0 {
		piece := stream[:min(n, len(stream))]
		stream = stream[len(piece):]
		s.feed([]byte(piece))
	}
	s.finish()
	return events
}

func TestScanner(t *testing.T) {
	for stream, want := range map[string][]Event{
		"data: a\n\n": {{Data: "a"}},
		"\ufeffevent: x\r\ndata: a\r\ndata:b\r\n\r\n":    {{Type: "x", Data: "a\nb"}},
		"data: a\rid: 3\r\rdata\r\r":                     {{Data: "a"}, {}},
		": comment\n\nevent: lost\n\ndata: b\n\n":        {{Data: "b"}},
		"retry: 10\ndata:  two spaces\n\ndata: no end":   {{Data: " two spaces"}, {Data: "no end"}},
		"data: a\n\n\n\ndata: b\n\nevent: error\ndata\n": {{Data: "a"}, {Data: "b"}, {Type: "error"}},
	} {
		for n := 1; n <= len(stream); n++ {
			assert.Equal(t, want, scan(stream, n), "%q in pieces of %d", stream, n)
		}
	}
}

func TestAnEventTooLargeIsContent(t *testing.T) {
	s := &scanner{inspect: InspectEvent}
	verdict := Preamble
	piece := make([]byte, 1000)
	s.feed([]byte("event: error\ndata: "))
	for i := 0; verdict == Preamble; i++ {
		verdict, _ = s.feed(piece)
		if i > 100 {
			t.Fatal("the scanner keeps everything")
		}
	}
	assert.Equal(t, Content, verdict)
	verdict, _ = s.feed([]byte("\n\ndata: next\n\n"))
	assert.Equal(t, Content, verdict)
}

// However a stream is cut, the events are the same.
func FuzzScanner(f *testing.F) {
	f.Add("event: a\r\ndata: b\r\n\r\ndata: c\n\n", 3)
	f.Add("data\r\r\n\ndata:x", 1)
	f.Fuzz(func(t *testing.T, stream string, n int) {
		if n < 1 || len(stream) > 4000 {
			return
		}
		assert.Equal(t, scan(stream, len(stream)+1), scan(stream, n))
	})
}
