package failover

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Event is one event of a text/event-stream.
type Event struct {
	Type string // the event field; empty for a plain message
	Data string // the data lines, joined by newlines
}

// Verdict is what an event means for the attempt.
type Verdict uint8

const (
	Preamble Verdict = iota // a sign of life, held back until content follows
	Content                 // content: from here on the client sees the stream
	Failure                 // an error
)

// InspectEvent is the default of Config.Inspect. An event of type "error", or
// whose data is a JSON object of type "error" or with an "error" member, is a
// Failure; events without data, of type "ping", or with the data "[DONE]" are
// Preamble; everything else is Content.
func InspectEvent(e Event) Verdict {
	data := strings.TrimSpace(e.Data)
	switch {
	case e.Type == "error":
		return Failure
	case data == "", data == "[DONE]", e.Type == "ping":
		return Preamble
	}
	// Most events have no such word; only those that do are parsed.
	if strings.HasPrefix(data, "{") && strings.Contains(data, `"error"`) {
		var message struct {
			Type  string          `json:"type"`
			Error json.RawMessage `json:"error"`
		}
		if json.Unmarshal([]byte(data), &message) == nil &&
			(message.Type == "error" || len(message.Error) > 0 && string(message.Error) != "null") {
			return Failure
		}
	}
	return Content
}

// maxEvent bounds what a scanner keeps of one event. A larger one is content.
const maxEvent = 64 << 10

// scanner splits a text/event-stream into events as it comes, by the rules of the
// HTML standard: lines end in CR, LF or CRLF, an empty line ends an event.
type scanner struct {
	inspect func(Event) Verdict

	started  bool
	line     []byte
	afterCR  bool
	kind     string
	data     []byte
	oversize bool
}

// feed takes the next bytes. It gives the first verdict other than Preamble among
// the events that they complete, with the event.
func (s *scanner) feed(p []byte) (Verdict, Event) {
	verdict, found := Preamble, Event{}
	note := func(v Verdict, e Event) {
		if verdict == Preamble {
			verdict, found = v, e
		}
	}
	for len(p) > 0 {
		if s.afterCR {
			s.afterCR = false
			if p[0] == '\n' {
				p = p[1:]
				continue
			}
		}
		end := bytes.IndexAny(p, "\r\n")
		if end < 0 {
			s.keep(p)
			break
		}
		s.keep(p[:end])
		s.afterCR = p[end] == '\r'
		p = p[end+1:]
		note(s.endLine())
	}
	if s.oversize {
		note(Content, Event{})
	}
	return verdict, found
}

// finish takes the end of the stream for the end of an event that lacks its empty
// line.
func (s *scanner) finish() (Verdict, Event) {
	if len(s.line) > 0 {
		s.endLine()
	}
	return s.endEvent()
}

func (s *scanner) keep(p []byte) {
	if len(s.line)+len(s.data)+len(p) > maxEvent {
		s.oversize = true
		return
	}
	s.line = append(s.line, p...)
}

func (s *scanner) endLine() (Verdict, Event) {
	line := s.line
	s.line = s.line[:0]
	if !s.started {
		line = bytes.TrimPrefix(line, []byte("\ufeff"))
		s.started = true
	}
	if len(line) == 0 {
		return s.endEvent()
	}
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "event":
		s.kind = string(value)
	case "data":
		if s.data != nil {
			s.data = append(s.data, '\n')
		}
		s.data = append(s.data, value...)
		if s.data == nil {
			s.data = []byte{}
		}
	}
	return Preamble, Event{}
}

func (s *scanner) endEvent() (Verdict, Event) {
	if s.oversize {
		s.oversize = false
		s.kind, s.data = "", nil
		return Content, Event{}
	}
	if s.data == nil {
		s.kind = ""
		return Preamble, Event{}
	}
	e := Event{Type: s.kind, Data: string(s.data)}
	s.kind, s.data = "", nil
	return s.inspect(e), e
}
