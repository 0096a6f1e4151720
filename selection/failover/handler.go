package failover

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"strings"
)

// StatusClientClosedRequest is the status of a request whose client left, as
// nginx has it. The client does not see it; logs and middleware do.
const StatusClientClosedRequest = 499

// NewHandler makes a reverse proxy of a Transport: httputil.ReverseProxy, which
// removes hop-by-hop headers, carries trailers, flushes streams chunk by chunk and
// breaks off an answer that broke off upstream, with the statuses of this package.
//
// rewrite may change what is sent on, X-Forwarded-For for instance
// (httputil.ProxyRequest.SetXForwarded); nil leaves the request as it is, without
// the client's forwarding headers.
func NewHandler(t *Transport, rewrite func(*httputil.ProxyRequest)) http.Handler {
	if rewrite == nil {
		rewrite = func(*httputil.ProxyRequest) {}
	}
	return &handler{proxy: httputil.ReverseProxy{
		Transport:    t,
		Rewrite:      rewrite,
		ErrorHandler: answerError,
		ErrorLog:     log.New(io.Discard, "", 0), // the Transport logs what happened
	}}
}

type handler struct {
	proxy httputil.ReverseProxy
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if upgrade := r.Header.Get("Upgrade"); upgrade != "" {
		if !strings.EqualFold(upgrade, "h2c") {
			http.Error(w, "upgrades are not supported", http.StatusNotImplemented)
			return
		}
		r = r.Clone(r.Context())
		r.Header.Del("Upgrade")
	}
	if r.Method == http.MethodConnect {
		http.Error(w, "CONNECT is not supported", http.StatusNotImplemented)
		return
	}
	h.proxy.ServeHTTP(finalOnly{w}, r)
}

// finalOnly keeps informational answers from the client: the attempt that sent
// them may still fail.
type finalOnly struct{ http.ResponseWriter }

func (w finalOnly) WriteHeader(status int) {
	if status >= 200 {
		w.ResponseWriter.WriteHeader(status)
	}
}

// Unwrap lets http.ResponseController reach the writer's other methods.
func (w finalOnly) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// answerError gives the client a status and nothing about the providers.
func answerError(w http.ResponseWriter, r *http.Request, err error) {
	var (
		tooLarge *BodyTooLargeError
		body     *RequestBodyError
	)
	status := http.StatusServiceUnavailable
	switch {
	case r.Context().Err() != nil, errors.Is(err, context.Canceled):
		status = StatusClientClosedRequest
	case errors.As(err, &tooLarge):
		status = http.StatusRequestEntityTooLarge
	case errors.As(err, &body):
		status = http.StatusBadRequest
	}
	text := http.StatusText(status)
	if status == StatusClientClosedRequest {
		text = "Client Closed Request"
	}
	http.Error(w, text, status)
}
