package endpointretry

import (
	"net/http"
	"strings"
	"time"

	"github.com/seed-5a7f77c4/deadair/selection/failover"
	"github.com/seed-5a7f77c4/deadair/selection/retry"
)

// Proxy is a proxy under test: what it serves, and what can be asked of its state.
type Proxy interface {
	http.Handler
	Health(level retry.Level, name string) (retry.Health, bool)
	Bound(conversation string) (provider string, ok bool)
	RecordProbe(endpoint string, ok bool, latency time.Duration) error
}

// Subject makes the proxy under test. Build gets a configuration in which the
// world has set providers, timers and the way to the network; a proxy of another
// make takes from it what it needs and calls Config.Done at the end of a request.
type Subject struct {
	Build func(failover.Config) (Proxy, error)

	// HTTP2 lets the whole world speak HTTP/2, without TLS.
	HTTP2 bool
}

// OverHTTP2 is the same subject in a world that speaks HTTP/2.
func (s Subject) OverHTTP2() Subject {
	s.HTTP2 = true
	return s
}

// Ours is the forwarder of selection/failover.
func Ours() Subject {
	return Subject{Build: func(c failover.Config) (Proxy, error) {
		t, err := failover.New(c)
		if err != nil {
			return nil, err
		}
		return ours{Handler: failover.NewHandler(t, nil), Transport: t}, nil
	}}
}

type ours struct {
	http.Handler
	*failover.Transport
}

// with is the subject with a changed configuration.
func (s Subject) with(change func(*failover.Config)) Subject {
	build := s.Build
	s.Build = func(c failover.Config) (Proxy, error) {
		policy := *c.Policy
		c.Policy = &policy
		change(&c)
		return build(c)
	}
	return s
}

// protocols is what the world's programs speak.
func (s Subject) protocols() *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(!s.HTTP2)
	p.SetUnencryptedHTTP2(s.HTTP2)
	return p
}

// tooLong is the text by which the world's proxies know a client's fault.
const tooLong = "prompt is too long"

// policy is the documented one, with a rule for a client's fault.
func policy() *retry.Policy {
	p := retry.DefaultPolicy()
	p.Classifier = retry.NewClassifier(func(_ int, text string) bool { return strings.Contains(text, tooLong) })
	return &p
}
