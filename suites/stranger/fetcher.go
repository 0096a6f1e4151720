package stranger

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// A Fetcher is the stranger's production code: an HTTP client that hands out a
// dial function to whoever builds it, and knows nothing of simulators.
type Fetcher struct{ client *http.Client }

// Health is how the fetcher keeps watch over its HTTP/2 connections; the zero
// Health is Go's default: not at all.
type Health struct{ PingAfter, PingTimeout time.Duration }

// NewFetcher makes one. Each request gets at most a second.
func NewFetcher(dial func(ctx context.Context, network, address string) (net.Conn, error), h Health) *Fetcher {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	t := &http.Transport{DialContext: dial, Protocols: protocols}
	if h.PingAfter > 0 {
		t.HTTP2 = &http.HTTP2Config{SendPingTimeout: h.PingAfter, PingTimeout: h.PingTimeout}
	}
	return &Fetcher{client: &http.Client{Transport: t, Timeout: time.Second}}
}

// Get fetches a page.
func (f *Fetcher) Get(url string) (string, error) {
	resp, err := f.client.Get(url)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", err
	}
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s", url, resp.Status)
	}
	return string(body), nil
}

// Close ends its connections.
func (f *Fetcher) Close() { f.client.CloseIdleConnections() }
