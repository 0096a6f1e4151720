package failover

import (
	"context"
	"net"
	"net/http"
	"time"
)

const (
	// ConnectTimeout is NewBase's limit for DNS and TCP together, and again for
	// the TLS handshake.
	ConnectTimeout = 30 * time.Second

	// HeaderTimeout is NewBase's limit for the response headers, counted from
	// the end of the request's body.
	HeaderTimeout = 600 * time.Second
)

// DialFunc is the type of net.Dialer.DialContext.
type DialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// NewBase gives the http.Transport that a Transport calls by default: HTTP/1.1 and
// 2, ConnectTimeout and HeaderTimeout, 64 idle connections per host kept for 90 s,
// compression left to the client. dial makes the connections; nil means
// net.Dialer. Without a dial of one's own the proxy settings of the environment
// hold.
func NewBase(dial DialFunc) *http.Transport {
	proxy := http.ProxyFromEnvironment
	if dial == nil {
		dial = (&net.Dialer{KeepAlive: 30 * time.Second}).DialContext
	} else {
		proxy = nil
	}
	return &http.Transport{
		Proxy: proxy,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, ConnectTimeout)
			defer cancel()
			return dial(ctx, network, address)
		},
		ForceAttemptHTTP2:     true,
		TLSHandshakeTimeout:   ConnectTimeout,
		ResponseHeaderTimeout: HeaderTimeout,
		ExpectContinueTimeout: time.Second,
		MaxIdleConnsPerHost:   64,
		IdleConnTimeout:       90 * time.Second,
		DisableCompression:    true,
	}
}
