package retry

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
)

// Cause is the part of the way at which a system error happened, for logs. It
// decides nothing: every system error fails over alike.
type Cause string

const (
	CauseNone        Cause = ""
	CauseDNS         Cause = "dns"
	CauseRefused     Cause = "refused"
	CauseReset       Cause = "reset"
	CauseUnreachable Cause = "unreachable"
	CauseTLS         Cause = "tls"
	CauseTimeout     Cause = "timeout"
	CauseEOF         Cause = "eof"
	CauseProtocol    Cause = "protocol" // an answer that is no HTTP, and whatever else there is
)

// CauseOf names the cause of an error of a round trip, from the types and errnos
// of net, crypto/tls, crypto/x509 and syscall; never from the text.
func CauseOf(err error) Cause {
	var (
		dns       *net.DNSError
		verify    *tls.CertificateVerificationError
		authority x509.UnknownAuthorityError
		hostname  x509.HostnameError
		invalid   x509.CertificateInvalidError
		record    tls.RecordHeaderError
		alert     tls.AlertError
		op        *net.OpError
		netErr    net.Error
	)
	switch {
	case err == nil:
		return CauseNone
	case errors.As(err, &dns):
		return CauseDNS
	case errors.As(err, &verify), errors.As(err, &authority), errors.As(err, &hostname),
		errors.As(err, &invalid), errors.As(err, &record), errors.As(err, &alert),
		// crypto/tls has no exported type for an alert of either side.
		errors.As(err, &op) && (op.Op == "remote error" || op.Op == "local error"):
		return CauseTLS
	case errors.Is(err, syscall.ECONNREFUSED):
		return CauseRefused
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ECONNABORTED):
		return CauseReset
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.EADDRNOTAVAIL):
		return CauseUnreachable
	case errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &netErr) && netErr.Timeout():
		return CauseTimeout
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return CauseEOF
	default:
		return CauseProtocol
	}
}
