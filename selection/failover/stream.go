package failover

import (
	"io"
	"net/http"
	"sync"

	"github.com/seed-5a7f77c4/deadair/selection/retry"
)

// response hands the answer of an exchange to the client: what was read already,
// then the rest as it comes. The call ends with the body.
func (x *exchange) response(c *call) *http.Response {
	s := &stream{x: x, call: c, left: x.resp.ContentLength}
	if x.eof && len(x.buf) == 0 {
		x.resp.Body = http.NoBody
		s.finish(nil)
	} else {
		// The struct of the round trip is kept: its trailers are filled in at
		// the end of the body. Only what the client reads from is replaced.
		s.body, x.resp.Body = x.resp.Body, s
	}
	x.resp.Request = c.req
	return x.resp
}

// stream is the body of an answer.
type stream struct {
	x    *exchange
	call *call
	body io.ReadCloser // the provider's

	mu     sync.Mutex // Close may come while a Read waits; never held across one
	left   int64      // bytes that the client has not got yet; negative: unknown
	failed error      // an error event after content
	done   bool
}

func (s *stream) Read(p []byte) (n int, err error) {
	x := s.x
	switch {
	case len(x.buf) > 0:
		n = copy(p, x.buf)
		x.buf = x.buf[n:]
		if x.eof && len(x.buf) == 0 {
			err = io.EOF
		}
	case x.eof:
		return 0, io.EOF
	default:
		n, err = x.read(s.body, p)
		s.inspect(p[:n])
	}
	s.mu.Lock()
	s.left -= int64(n)
	failed := s.failed
	s.mu.Unlock()
	switch {
	case err == io.EOF:
		s.finish(failed)
	case err != nil:
		s.finish(err)
	}
	return n, err
}

// inspect looks for an error event after content: the client gets it as it is,
// and the provider gets the blame.
func (s *stream) inspect(p []byte) {
	if s.x.events == nil {
		return
	}
	if verdict, event := s.x.events.feed(p); verdict == Failure {
		s.mu.Lock()
		s.failed = &retry.ErrorEvent{Data: event.Data}
		s.mu.Unlock()
	}
}

// Close ends the exchange. A client that closes before the end has left, unless
// it has got all the bytes that were announced.
func (s *stream) Close() error {
	s.mu.Lock()
	err := s.failed
	if err == nil && s.left != 0 {
		err = errClosed
	}
	s.mu.Unlock()
	s.finish(err)
	return nil
}

// finish reports the end of the attempt, once, and ends the call.
func (s *stream) finish(err error) {
	s.mu.Lock()
	done := s.done
	s.done = true
	s.mu.Unlock()
	if done {
		return
	}
	answer := retry.Answer{Err: err, Status: s.x.resp.StatusCode, Content: true, Client: s.x.client.Err()}
	if err == nil {
		answer.Client = nil // complete: what the client does next is no concern
	} else if err == errClosed && answer.Client == nil {
		answer.Client = errClosed
	}
	if s.body != nil {
		s.x.closeBody(s.body)
	}
	s.call.finish(&answer)
}
