package socksrelay

import (
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type broken struct{ op string }

func (b broken) Write([]byte) (int, error) {
	return 0, &net.OpError{Op: b.op, Net: "tcp", Err: syscall.EPIPE}
}
func (b broken) Read([]byte) (int, error) {
	return 0, &net.OpError{Op: b.op, Net: "tcp", Err: syscall.ECONNRESET}
}

// TestAnErrorInWritingEndsOneDirectionOnly: go-socks5 closes both connections at the first error that a copy returns.
func TestAnErrorInWritingEndsOneDirectionOnly(t *testing.T) {
	_, err := carry(broken{"write"}, strings.NewReader("x"))
	require.NoError(t, err)
	_, err = carry(io.Discard, broken{"read"})
	assert.True(t, errors.Is(err, syscall.ECONNRESET), "a sender that has gone ends both")
}
