package failover

import (
	"errors"
	"fmt"

	"github.com/seed-5a7f77c4/deadair/selection/retry"
)

// ExhaustedError says that every provider failed, or that none was available. Its
// text tells nothing about the providers; the chain does.
type ExhaustedError struct {
	Chain retry.Chain
}

// Error implements error.
func (e *ExhaustedError) Error() string {
	return fmt.Sprintf("failover: all providers failed after %d attempts", len(e.Chain))
}

// BodyTooLargeError says that a request's body is larger than Config.MaxBody. No
// attempt was made.
type BodyTooLargeError struct {
	Limit int64 // bytes
}

// Error implements error.
func (e *BodyTooLargeError) Error() string {
	return fmt.Sprintf("failover: request body is larger than %d bytes", e.Limit)
}

// RequestBodyError says that reading the request's body failed. No attempt was
// made.
type RequestBodyError struct {
	Err error
}

// Error implements error.
func (e *RequestBodyError) Error() string {
	return "failover: reading the request body: " + e.Err.Error()
}

// Unwrap is what reading the body returned.
func (e *RequestBodyError) Unwrap() error { return e.Err }

// errClosed stands for a client that closed the answer's body before its end.
var errClosed = errors.New("failover: answer closed by the client before its end")
