package wire

import "github.com/seed-5a7f77c4/deadair/selection/forward"

// Version is the protocol version that both sides say in their hello.
const Version = 2

// Message is the content of a frame. The types of this file are all there are.
type Message interface {
	// Tag is the message's name on the wire: four capital letters.
	Tag() string
	put(*writer)
	get(*reader)
}

// Hello opens a connection, both ways.
type Hello struct {
	Version uint16
	// Name is the server's name; empty from a client.
	Name string
}

// SessionRequest asks a proxy for a session with a relay.
type SessionRequest struct {
	Relay    string
	Password string
}

// SessionGranted names a session with a relay, and the version that the relay speaks.
type SessionGranted struct {
	Session uint64
	Version uint16
}

// Forward asks a proxy to forward a command through a session. The command is an encoded message.
type Forward struct {
	Session uint64
	Command []byte
}

// ForwardAnswer is the relay's answer, as the proxy hands it back. It is an encoded message.
type ForwardAnswer struct{ Answer []byte }

// RelayForward is a command that a proxy forwards to a relay.
type RelayForward struct{ Command []byte }

// RelayAnswer is the relay's answer to a forwarded command.
type RelayAnswer struct{ Answer []byte }

// NewQueue makes a queue on the server.
type NewQueue struct{ Queue string }

// Subscribe asks for a queue's messages, from now on, on this connection.
type Subscribe struct{ Queue string }

// Secure lets nobody but the sender with this key send to a queue.
type Secure struct{ Queue, Key string }

// Send puts a message into a queue.
type Send struct {
	Queue, Key string
	ID         uint64
	Body       []byte
}

// PutLink stores the data of a 1-time link.
type PutLink struct {
	Link string
	Data []byte
}

// GetLink looks a link up.
type GetLink struct{ Link string }

// LinkData is what a link stands for.
type LinkData struct{ Data []byte }

// Delivery is a message of a subscribed queue. It comes unasked, with correlation 0.
type Delivery struct {
	Queue string
	ID    uint64
	Body  []byte
}

// Done says that a command was carried out.
type Done struct{}

// Ping asks whether the other side is alive.
type Ping struct{}

// Pong answers a ping.
type Pong struct{}

// Failure is an error answer, of any class.
type Failure struct {
	Origin forward.Origin
	Code   forward.Code
	Detail string
}

// Err is the failure as an error.
func (m *Failure) Err() *forward.Error {
	return &forward.Error{Origin: m.Origin, Code: m.Code, Detail: m.Detail}
}

func (*Hello) Tag() string          { return "HELO" }
func (*SessionRequest) Tag() string { return "PRXY" }
func (*SessionGranted) Tag() string { return "PKEY" }
func (*Forward) Tag() string        { return "PFWD" }
func (*ForwardAnswer) Tag() string  { return "PRES" }
func (*RelayForward) Tag() string   { return "RFWD" }
func (*RelayAnswer) Tag() string    { return "RRES" }
func (*NewQueue) Tag() string       { return "QNEW" }
func (*Subscribe) Tag() string      { return "QSUB" }
func (*Secure) Tag() string         { return "SKEY" }
func (*Send) Tag() string           { return "SEND" }
func (*PutLink) Tag() string        { return "LPUT" }
func (*GetLink) Tag() string        { return "LGET" }
func (*LinkData) Tag() string       { return "LINK" }
func (*Delivery) Tag() string       { return "QMSG" }
func (*Done) Tag() string           { return "DONE" }
func (*Ping) Tag() string           { return "PING" }
func (*Pong) Tag() string           { return "PONG" }
func (*Failure) Tag() string        { return "FAIL" }

// blank returns an empty message for a tag; nil if there is none of that name.
func blank(tag string) Message {
	switch tag {
	case "HELO":
		return new(Hello)
	case "PRXY":
		return new(SessionRequest)
	case "PKEY":
		return new(SessionGranted)
	case "PFWD":
		return new(Forward)
	case "PRES":
		return new(ForwardAnswer)
	case "RFWD":
		return new(RelayForward)
	case "RRES":
		return new(RelayAnswer)
	case "QNEW":
		return new(NewQueue)
	case "QSUB":
		return new(Subscribe)
	case "SKEY":
		return new(Secure)
	case "SEND":
		return new(Send)
	case "LPUT":
		return new(PutLink)
	case "LGET":
		return new(GetLink)
	case "LINK":
		return new(LinkData)
	case "QMSG":
		return new(Delivery)
	case "DONE":
		return new(Done)
	case "PING":
		return new(Ping)
	case "PONG":
		return new(Pong)
	case "FAIL":
		return new(Failure)
	}
	return nil
}

func (m *Hello) put(w *writer)          { w.uint16(m.Version); w.text(m.Name) }
func (m *Hello) get(r *reader)          { m.Version = r.uint16("version"); m.Name = r.text("name") }
func (m *SessionRequest) put(w *writer) { w.text(m.Relay); w.text(m.Password) }
func (m *SessionRequest) get(r *reader) { m.Relay = r.name("relay"); m.Password = r.text("password") }
func (m *SessionGranted) put(w *writer) { w.uint64(m.Session); w.uint16(m.Version) }
func (m *SessionGranted) get(r *reader) {
	m.Session = r.uint64("session")
	m.Version = r.uint16("version")
}
func (m *Forward) put(w *writer)       { w.uint64(m.Session); w.bytes(m.Command) }
func (m *Forward) get(r *reader)       { m.Session = r.uint64("session"); m.Command = r.bytes("command") }
func (m *ForwardAnswer) put(w *writer) { w.bytes(m.Answer) }
func (m *ForwardAnswer) get(r *reader) { m.Answer = r.bytes("answer") }
func (m *RelayForward) put(w *writer)  { w.bytes(m.Command) }
func (m *RelayForward) get(r *reader)  { m.Command = r.bytes("command") }
func (m *RelayAnswer) put(w *writer)   { w.bytes(m.Answer) }
func (m *RelayAnswer) get(r *reader)   { m.Answer = r.bytes("answer") }
func (m *NewQueue) put(w *writer)      { w.text(m.Queue) }
func (m *NewQueue) get(r *reader)      { m.Queue = r.name("queue") }
func (m *Subscribe) put(w *writer)     { w.text(m.Queue) }
func (m *Subscribe) get(r *reader)     { m.Queue = r.name("queue") }
func (m *Secure) put(w *writer)        { w.text(m.Queue); w.text(m.Key) }
func (m *Secure) get(r *reader)        { m.Queue = r.name("queue"); m.Key = r.name("key") }
func (m *Send) put(w *writer)          { w.text(m.Queue); w.text(m.Key); w.uint64(m.ID); w.bytes(m.Body) }
func (m *Send) get(r *reader) {
	m.Queue, m.Key = r.name("queue"), r.text("key")
	m.ID, m.Body = r.uint64("id"), r.bytes("body")
}
func (m *PutLink) put(w *writer)  { w.text(m.Link); w.bytes(m.Data) }
func (m *PutLink) get(r *reader)  { m.Link = r.name("link"); m.Data = r.bytes("data") }
func (m *GetLink) put(w *writer)  { w.text(m.Link) }
func (m *GetLink) get(r *reader)  { m.Link = r.name("link") }
func (m *LinkData) put(w *writer) { w.bytes(m.Data) }
func (m *LinkData) get(r *reader) { m.Data = r.bytes("data") }
func (m *Delivery) put(w *writer) { w.text(m.Queue); w.uint64(m.ID); w.bytes(m.Body) }
func (m *Delivery) get(r *reader) {
	m.Queue, m.ID, m.Body = r.name("queue"), r.uint64("id"), r.bytes("body")
}
func (*Done) put(*writer) {}
func (*Done) get(*reader) {}
func (*Ping) put(*writer) {}
func (*Ping) get(*reader) {}
func (*Pong) put(*writer) {}
func (*Pong) get(*reader) {}
func (m *Failure) put(w *writer) {
	w.byte(byte(m.Origin))
	w.byte(byte(m.Code))
	w.text(m.Detail)
}
func (m *Failure) get(r *reader) {
	m.Origin = forward.Origin(r.enum("origin", int(forward.Relay)+1))
	m.Code = forward.Code(r.enum("code", forward.Codes))
	m.Detail = r.text("detail")
}
