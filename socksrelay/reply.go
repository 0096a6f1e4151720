package socksrelay

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
)

// ReplyError is an error that knows its reply code. A dial function or resolver may return it, wrapped or not, to
// choose what the client is told.
type ReplyError struct {
	// Code is the reply code.
	Code byte
	// Err is the reason; it may be nil.
	Err error
}

// Error gives code and reason.
func (e *ReplyError) Error() string { return fmt.Sprintf("SOCKS reply %d: %v", e.Code, e.Err) }

// Unwrap returns the reason.
func (e *ReplyError) Unwrap() error { return e.Err }

// replyCode is the reply code of RFC 1928, 6 for a dial error, from what the error is and not from its text.
func replyCode(err error) byte {
	var own *ReplyError
	var dns *net.DNSError
	switch {
	case errors.As(err, &own):
		return own.Code
	case errors.Is(err, syscall.ECONNREFUSED):
		return 5
	case errors.Is(err, syscall.ENETUNREACH):
		return 3
	case errors.Is(err, syscall.EHOSTUNREACH):
		return 4
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded), errors.Is(err, syscall.ETIMEDOUT):
		return 6
	case errors.As(err, &dns):
		return 4
	}
	return 1
}

// rewriteReply gives a reply another code and, if it is valid, another bound address. Code 0 keeps the code.
func rewriteReply(reply []byte, code byte, bound netip.AddrPort) []byte {
	out := append([]byte(nil), reply...)
	if code != 0 {
		out[1] = code
	}
	if bound.IsValid() {
		kind := byte(atypIPv4)
		if bound.Addr().Is6() {
			kind = atypIPv6
		}
		out = append(out[:3:3], kind)
		out = append(out, bound.Addr().AsSlice()...)
		out = append(out, byte(bound.Port()>>8), byte(bound.Port()))
	}
	return out
}
