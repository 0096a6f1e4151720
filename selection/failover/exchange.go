package failover

import (
	"cmp"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"github.com/seed-5a7f77c4/deadair/selection/retry"
)

const (
	firstRead    = 4 << 10  // how much of a body one read asks for before content
	maxPreamble  = 1 << 20  // a stream that has no content by then is taken for content
	maxErrorText = 64 << 10 // how much of an error's body the rules get to see

	// errorTextTimeout bounds how long the body of an error is waited for: the
	// status alone decides what follows unless a rule matches the text.
	errorTextTimeout = 5 * time.Second
)

// errErrorText ends the wait for an error's text.
var errErrorText = errors.New("failover: body of the error not complete in time")

// exchange is one attempt: a round trip, its timers, and the body up to the first
// content.
type exchange struct {
	config *Config
	client context.Context
	ctx    context.Context
	cancel context.CancelCauseFunc

	firstByte, idle, whole *time.Timer // nil when off

	resp   *http.Response // nil: no answer
	err    error          // of the round trip
	refuse error          // the client's request could not be made again
	buf    []byte         // read, and not yet handed to the client
	eof    bool           // the body has been read to its end
	events *scanner       // nil: not a stream of events
}

// open makes the round trip of an attempt.
func (c *call) open(attempt retry.Attempt) *exchange {
	config := &c.transport.config
	x := &exchange{config: config, client: c.client}
	x.ctx, x.cancel = context.WithCancelCause(c.client)
	x.firstByte = x.after(config.Timeouts.FirstByte, retry.ErrFirstByte)
	x.whole = x.after(config.Timeouts.Whole, retry.ErrWhole)

	out, err := c.outgoing(x.ctx, attempt)
	if err != nil {
		x.refuse = err
		return x
	}
	resp, err := config.Base.RoundTrip(out)
	if err != nil {
		x.err = x.own(err)
		return x
	}
	x.resp = resp
	return x
}

// outgoing makes the request of an attempt.
func (c *call) outgoing(ctx context.Context, attempt retry.Attempt) (*http.Request, error) {
	body, err := c.body()
	if err != nil {
		return nil, &RequestBodyError{Err: err}
	}
	out := c.req.WithContext(ctx)
	out.URL = new(url.URL)
	*out.URL = *c.req.URL
	(&httputil.ProxyRequest{In: c.req, Out: out}).SetURL(c.transport.targets[attempt.URL])
	out.Body, out.ContentLength = body, c.length
	if body != http.NoBody {
		out.GetBody = c.body
	}
	if set := c.transport.headers[attempt.Provider]; len(set) > 0 {
		out.Header = out.Header.Clone()
		for name, values := range set {
			if len(values) == 0 {
				out.Header.Del(name)
			} else {
				out.Header[name] = values
			}
		}
	}
	return out, nil
}

func (x *exchange) after(d time.Duration, cause error) *time.Timer {
	if d == 0 {
		return nil
	}
	return time.AfterFunc(d, func() { x.cancel(cause) })
}

// own puts the error of the timer that ended the attempt in place of the error
// that this led to.
func (x *exchange) own(err error) error {
	if x.ctx.Err() == nil || x.client.Err() != nil {
		return err
	}
	return context.Cause(x.ctx)
}

// await reads up to the first content. content says that it is there; otherwise
// the attempt is over and answer is how it ended.
func (x *exchange) await() (answer retry.Answer, content bool) {
	answer.Err = x.err
	if x.resp != nil {
		answer.Status = x.resp.StatusCode
		switch {
		case answer.Status >= 400:
			answer.Text = x.errorText()
		default:
			content, answer.Err = x.awaitContent()
		}
		var event *retry.ErrorEvent
		if errors.As(answer.Err, &event) {
			answer.Text = event.Data
		}
	}
	answer.Client = cmp.Or(x.client.Err(), x.refuse)
	return answer, content && answer.Client == nil
}

func (x *exchange) awaitContent() (content bool, err error) {
	if !hasBody(x.resp) {
		x.eof = true
		return false, nil
	}
	if isEventStream(x.resp) {
		x.events = &scanner{inspect: x.config.Inspect}
	}
	for len(x.buf) < maxPreamble {
		chunk, err := x.more()
		verdict, event := Preamble, Event{}
		switch {
		case x.events == nil && len(chunk) > 0:
			verdict = Content
		case x.events != nil:
			verdict, event = x.events.feed(chunk)
			if verdict == Preamble && err == io.EOF {
				verdict, event = x.events.finish()
			}
		}
		switch {
		case verdict == Content:
			x.eof = err == io.EOF
			return true, nil
		case verdict == Failure:
			return false, &retry.ErrorEvent{Data: event.Data}
		case err == io.EOF:
			x.eof = true
			if x.config.AllowEmpty || !wantsContent(x.resp) {
				return false, nil
			}
			return false, retry.ErrEmptyBody
		case err != nil:
			return false, err
		}
	}
	return true, nil
}

// errorText reads the beginning of an error's body.
func (x *exchange) errorText() string {
	timer := x.after(errorTextTimeout, errErrorText)
	defer timer.Stop()
	for len(x.buf) < maxErrorText {
		if _, err := x.more(); err != nil {
			x.eof = err == io.EOF
			break
		}
	}
	return string(x.buf)
}

// more reads the next chunk into buf.
func (x *exchange) more() (chunk []byte, err error) {
	had := len(x.buf)
	if cap(x.buf)-had < firstRead {
		grown := make([]byte, had, 2*cap(x.buf)+firstRead)
		copy(grown, x.buf)
		x.buf = grown
	}
	n, err := x.read(x.resp.Body, x.buf[had:cap(x.buf)])
	x.buf = x.buf[:had+n]
	return x.buf[had:], err
}

// read reads from the body under the timers. The idle timer runs only while the
// provider is waited for, never while the client is slow to take what there is.
func (x *exchange) read(body io.Reader, p []byte) (int, error) {
	if d := x.config.Timeouts.Idle; d > 0 {
		if x.idle == nil {
			x.idle = x.after(d, retry.ErrIdle)
		} else {
			x.idle.Reset(d)
		}
	}
	n, err := body.Read(p)
	if x.idle != nil {
		x.idle.Stop()
	}
	if n > 0 && x.firstByte != nil {
		x.firstByte.Stop()
	}
	if err != nil && err != io.EOF {
		err = x.own(err)
	}
	return n, err
}

// close ends the exchange and everything that belongs to it.
func (x *exchange) close() {
	if x.resp != nil {
		x.closeBody(x.resp.Body)
	} else {
		x.stop()
	}
}

// closeBody is close for a response whose body has been replaced.
func (x *exchange) closeBody(body io.Closer) {
	x.stop()
	body.Close()
}

func (x *exchange) stop() {
	for _, timer := range []*time.Timer{x.firstByte, x.idle, x.whole} {
		if timer != nil {
			timer.Stop()
		}
	}
	x.cancel(nil)
}

func hasBody(resp *http.Response) bool {
	return resp.Body != nil && resp.Body != http.NoBody || wantsContent(resp)
}

// wantsContent says whether an answer without a body is suspicious.
func wantsContent(resp *http.Response) bool {
	switch {
	case resp.Request != nil && resp.Request.Method == http.MethodHead:
		return false
	case resp.StatusCode == http.StatusNoContent, resp.StatusCode == http.StatusResetContent:
		return false
	default:
		return resp.StatusCode >= 200 && resp.StatusCode < 300
	}
}

func isEventStream(resp *http.Response) bool {
	if resp.Header.Get("Content-Encoding") != "" {
		return false
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return kind == "text/event-stream"
}
