package forward

import (
	"errors"
	"strings"

	"github.com/seed-5a7f77c4/deadair/selection/choice"
	"github.com/seed-5a7f77c4/deadair/selection/share"
)

// Origin tells who an error comes from.
type Origin uint8

const (
	// Broker: the own side. The server that was spoken to gave no answer, or could not be reached.
	Broker Origin = iota
	// Proxy: the proxy answered that it could not do its part.
	Proxy
	// Relay: the destination answered with an error of its own, through the proxy.
	Relay
)

// Code is the kind of an [Error].
type Code uint8

const (
	// Timeout: no answer in time.
	Timeout Code = iota
	// Network: no connection.
	Network
	// Host: no usable host to connect to, as when a proxy without Tor is asked for an onion address.
	Host
	// Transport: TLS or handshake trouble.
	Transport
	// Version: the other side's protocol version is too old.
	Version
	// Unexpected: an answer that does not belong to the question.
	Unexpected
	// Response: an answer that could not be read.
	Response
	// Protocol: the destination refused the forwarded frame.
	Protocol
	// NoSession: the proxy does not know the session with the destination.
	NoSession
	// BasicAuth: the proxy's password is wrong, or it does no proxying.
	BasicAuth
	// Refused: the destination's own error, which Detail names (AUTH, QUOTA, …).
	Refused
	// Unusable: the answer inside the response could not be read.
	Unusable

	// Codes is the number of codes.
	Codes = iota
)

var codeNames = [Codes]string{"TIMEOUT", "NETWORK", "HOST", "TRANSPORT", "TRANSPORT VERSION", "UNEXPECTED", "RESPONSE",
	"PROTOCOL", "NO_SESSION", "BASIC_AUTH", "REFUSED", "UNUSABLE"}

// ofBroker are the codes that a proxy reports of its own connection to the destination.
func (c Code) ofBroker() bool { return c <= Response }

// Quota is the Detail of a destination that has no room for more.
const Quota = "QUOTA"

// Error is a failed command.
type Error struct {
	Origin Origin
	Code   Code
	// Detail is for people; with the code Refused it is the destination's own error name.
	Detail string
	// Err is the cause, if it is known on this side.
	Err error
}

// Error gives the protocol's notation: PROXY(BROKER TIMEOUT), BROKER NETWORK, PROXY NO_SESSION, RELAY AUTH.
func (e *Error) Error() string {
	name := codeNames[e.Code]
	switch {
	case e.Origin == Relay && e.Code == Refused:
		return "RELAY " + e.Detail
	case e.Origin == Relay:
		name = "RELAY " + name
	case e.Origin == Proxy && e.Code.ofBroker():
		name = "PROXY(BROKER " + name + ")"
	case e.Origin == Proxy:
		name = "PROXY " + name
	default:
		name = "BROKER " + name
	}
	if e.Detail != "" {
		name += ": " + e.Detail
	}
	if e.Err != nil && !strings.Contains(name, e.Err.Error()) {
		name += ": " + e.Err.Error()
	}
	return name
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// HostError reports whether the proxy has no way to reach such a destination at all. Only this allows a fallback.
func (e *Error) HostError() bool { return e.Origin == Proxy && (e.Code == Host || e.Code == Version) }

// Retried reports whether a background worker tries again: temporary and host errors. The others end the work.
func (e *Error) Retried() bool {
	switch e.Code {
	case Timeout, Network, Host, Version, NoSession:
		return true
	}
	return e.Full()
}

// Full reports whether the destination has no room for more, which is retried on the slow ladder.
func (e *Error) Full() bool { return e.Code == Refused && e.Detail == Quota }

// AsError finds the *Error in err's chain; nil if there is none, as for a cancelled request.
func AsError(err error) *Error {
	var e *Error
	errors.As(err, &e)
	return e
}

// connectEvent classes the end of a request that got no connection to its proxy. False: it says nothing about the proxy.
func connectEvent(how share.How) (choice.Kind, bool) {
	switch how {
	case share.Made:
		return choice.ConnectFailed, true
	case share.Shared, share.Stored:
		return choice.ConnectErrorShared, true
	case share.WaitedOut:
		return choice.WaitTimedOut, true
	}
	return 0, false
}

// sessionEvent classes the end of a request that got no session with its destination.
func sessionEvent(how share.How, e *Error) (choice.Kind, bool) {
	switch {
	case e == nil:
		return 0, false
	case how == share.WaitedOut:
		return choice.WaitTimedOut, true
	case e.HostError():
		return choice.HostError, true
	}
	return choice.SessionFailed, true
}

// forwardEvent classes the end of a forward. A nil error is a success.
func forwardEvent(e *Error) (choice.Kind, bool) {
	switch {
	case e == nil:
		return choice.RelayReached, true
	case e.Origin == Relay && e.Code == Unusable:
		return choice.AnswerUnusable, true
	case e.Origin == Relay:
		return choice.RelayRefused, true
	case e.Code == Protocol:
		return choice.FrameRefused, true
	case e.Origin == Broker && e.Code == Timeout:
		return choice.ForwardTimedOut, true
	case e.Origin == Broker:
		return 0, false // the connection's end is an event of its own
	case e.HostError():
		return choice.HostError, true
	case e.Code == NoSession:
		return choice.SessionUnknown, true
	case e.Code == BasicAuth:
		return 0, false
	}
	return choice.ForwardFailed, true
}
