package failover

import (
	"bytes"
	"io"
	"net/http"
)

// maxTrusted is how much memory a request gets on its word, before its bytes come.
const maxTrusted = 1 << 20

// replay gives a function that makes the request's body anew for each attempt,
// and its length (-1: unknown). It takes over the request's own body.
func replay(req *http.Request, limit int64) (body func() (io.ReadCloser, error), length int64, err error) {
	none := func() (io.ReadCloser, error) { return http.NoBody, nil }
	if req.Body == nil || req.Body == http.NoBody {
		return none, 0, nil
	}
	if req.GetBody != nil {
		req.Body.Close()
		return req.GetBody, req.ContentLength, nil
	}
	defer req.Body.Close()
	if req.ContentLength > limit {
		return nil, 0, &BodyTooLargeError{Limit: limit}
	}
	var buf bytes.Buffer
	if req.ContentLength > 0 {
		// An announced length is taken on trust only so far.
		buf.Grow(int(min(req.ContentLength, maxTrusted)) + bytes.MinRead)
	}
	if _, err := buf.ReadFrom(io.LimitReader(req.Body, limit+1)); err != nil {
		return nil, 0, &RequestBodyError{Err: err}
	}
	if int64(buf.Len()) > limit {
		return nil, 0, &BodyTooLargeError{Limit: limit}
	}
	data := buf.Bytes()
	if len(data) == 0 {
		return none, 0, nil
	}
	return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }, int64(len(data)), nil
}
