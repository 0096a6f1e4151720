package endpointretry

import (
	"bytes"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The outcomes that an endpoint can be told, besides a status as a number:
const (
	ok          = "ok"           // 200 and the endpoint's name
	reset       = "reset"        // the connection is reset instead of an answer
	hangUp      = "hang up"      // it ends instead of an answer
	hang        = "hang"         // no answer, for ever
	hangHeaders = "hang headers" // headers of a stream, then nothing
	hangPing    = "hang ping"    // headers and a comment, then nothing
	hangContent = "hang content" // one event of content, then nothing
	errorEvent  = "error event"  // an error as the first event of a stream
	breakPing   = "break ping"   // a comment, then the stream breaks
	breakBody   = "break body"   // one event of content, then the stream breaks
	empty       = "empty"        // 200 and no body
	slow        = "slow"         // ok, after slowness
	fault       = "fault"        // 400 and the text of a client's fault
)

const (
	slowness = time.Second
	content  = "data: {\"text\":\"hello\"}\n\n"
	secret   = "key of upstream: 12345" // in every error body
)

// Call is one request as an endpoint received it.
type Call struct {
	Host string
	Body []byte
}

// answer plays an outcome.
func answer(w http.ResponseWriter, r *http.Request, host, outcome string) {
	stream := func(text string) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
		io.WriteString(w, text)
		w.(http.Flusher).Flush()
	}
	switch kind, rest, _ := strings.Cut(outcome, " "); {
	case outcome == ok:
		io.WriteString(w, "from "+host)
	case outcome == slow:
		select {
		case <-time.After(slowness):
			io.WriteString(w, "from "+host)
		case <-r.Context().Done():
		}
	case outcome == reset:
		if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
			if c, ok := c.(interface{ SetLinger(int) error }); ok {
				c.SetLinger(0)
			}
			c.Close()
			return
		}
		panic(http.ErrAbortHandler) // HTTP/2: the stream is reset
	case outcome == hangUp:
		panic(http.ErrAbortHandler)
	case outcome == empty:
		w.WriteHeader(http.StatusOK)
	case outcome == errorEvent:
		stream("event: error\ndata: {\"error\":\"" + secret + "\"}\n\n")
	case outcome == fault:
		w.WriteHeader(http.StatusBadRequest)
		io.WriteString(w, tooLong)
	case kind == "hang" || kind == "break":
		switch rest {
		case "headers":
			stream("")
		case "ping":
			stream(": ping\n\n")
		case "content", "body":
			stream(content)
		}
		if kind == "break" {
			panic(http.ErrAbortHandler)
		}
		<-r.Context().Done()
	default:
		status, err := strconv.Atoi(outcome)
		if err != nil {
			panic("endpointretry: no outcome " + outcome)
		}
		w.WriteHeader(status)
		io.WriteString(w, secret)
	}
}

// server serves one host until stop is called.
func server(l net.Listener, protocols *http.Protocols, h http.HandlerFunc) (stop func()) {
	s := &http.Server{Handler: h, Protocols: protocols, ErrorLog: log.New(io.Discard, "", 0)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Serve(l)
	}()
	return func() { s.Close(); <-done }
}

// impostor is a TLS listener with a certificate for another name, which nobody
// the proxy trusts has signed.
func impostor(l net.Listener, certificate tls.Certificate) net.Listener {
	return tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{certificate}})
}

func readAll(r io.Reader) []byte {
	var b bytes.Buffer
	b.ReadFrom(r)
	return b.Bytes()
}
