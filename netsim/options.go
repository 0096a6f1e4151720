package netsim

import (
	"fmt"
	"time"

	"github.com/seed-5a7f77c4/deadair/clock"
	"github.com/seed-5a7f77c4/deadair/netsim/internal/tcp"
)

// An Option sets something for a whole network; a wrong value panics and names
// itself.
type Option func(*options)

type options struct {
	seed       uint64
	noSeed     error // why there is no default
	defaults   Conditions
	stream     tcp.Config
	backlog    int
	ports      [2]uint16
	udpBuffer  int
	payloads   int
	traceLimit int
	strict     bool
	clock      []clock.Option
	artifacts  []func(dir string, n *Network) error
}

func defaultOptions() options {
	seed, err := clock.DefaultSeed()
	return options{
		seed: seed, noSeed: err,
		stream: tcp.Config{
			SendBuffer: 4 << 20, RecvBuffer: 4 << 20,
			SYNRetries: 6, SYNACKRetries: 5, Retries: 15,
		},
		backlog:    4096,
		ports:      [2]uint16{32768, 60999},
		udpBuffer:  212992,
		traceLimit: 1 << 20,
	}
}

// Seed is what all randomness comes from. Default: the environment's
// DEADAIR_SEED, or 1.
func Seed(seed uint64) Option {
	return func(o *options) {
		o.seed, o.noSeed = seed, nil
		o.clock = append(o.clock, clock.Seed(seed))
	}
}

// Defaults are the conditions on every path that has none of its own. Default:
// [Perfect], no delay at all.
func Defaults(c Conditions) Option {
	if err := c.Validate(); err != nil {
		panic(fmt.Errorf("netsim: Defaults(%v): %w", c, err))
	}
	return func(o *options) { o.defaults = c }
}

// StartAt is the date at which [Run] starts. Default: the bubble's own
// 2000-01-01, midnight UTC. [New] takes the clock as it finds it.
func StartAt(t time.Time) Option {
	return func(o *options) { o.clock = append(o.clock, clock.StartAt(t)) }
}

// Clock passes options on to [clock.Run].
func Clock(opts ...clock.Option) Option {
	return func(o *options) { o.clock = append(o.clock, opts...) }
}

// Strict pins a [Run] to one processor, which removes the races that a program
// has with itself within one instant. It slows everything else that the test
// binary does meanwhile.
func Strict() Option { return func(o *options) { o.strict = true } }

// Buffers are the sizes of every stream's send and receive buffers, in bytes.
// Default: 4 MiB each. They are roomy so that a program which writes under a
// sync.Mutex rarely blocks in it, which would stop a bubble's time.
func Buffers(send, recv int) Option {
	if send < 1 || recv < 1 {
		panic(fmt.Errorf("netsim: Buffers(%d, %d): a buffer has at least 1 byte", send, recv))
	}
	return func(o *options) { o.stream.SendBuffer, o.stream.RecvBuffer = send, recv }
}

// SYNRetries is how often a SYN is sent again: Linux's tcp_syn_retries. Default:
// 6, so that a dial fails with ETIMEDOUT after 127 s.
func SYNRetries(n int) Option {
	if n < 0 || n > 16 {
		panic(fmt.Errorf("netsim: SYNRetries(%d): 0 to 16", n))
	}
	return func(o *options) { o.stream.SYNRetries = n }
}

// Retries is how often unanswered data is sent again: Linux's tcp_retries2.
// Default: 15, so that a connection fails with ETIMEDOUT after 924.6 s.
func Retries(n int) Option {
	if n < 1 || n > 50 {
		panic(fmt.Errorf("netsim: Retries(%d): 1 to 50", n))
	}
	return func(o *options) { o.stream.Retries = n }
}

// Backlog is what listen(2) is given: as on Linux, one connection more waits at
// a listener for Accept. Handshakes under way do not count. While the queue is
// full, a SYN is dropped, so that the dial takes one of its retries longer, and
// so is the acknowledgement that would end a handshake: the client believes that
// it is connected, the SYN-ACK is sent again after 1, 3, 7, 15 and 31 s, and
// after 63 s the client's next data is answered by RST. Default: 4096, Linux's
// somaxconn, which Go asks for.
func Backlog(n int) Option {
	if n < 0 {
		panic(fmt.Errorf("netsim: Backlog(%d): at least 0", n))
	}
	return func(o *options) { o.backlog = n }
}

// EphemeralPorts is the range from which a host takes local ports. Default:
// 32768 to 60999, Linux's ip_local_port_range.
func EphemeralPorts(first, last uint16) Option {
	if first < 1 || last < first {
		panic(fmt.Errorf("netsim: EphemeralPorts(%d, %d): the range is empty", first, last))
	}
	return func(o *options) { o.ports = [2]uint16{first, last} }
}

// DatagramBuffer is how many bytes wait at a packet connection to be read; what
// comes beyond is dropped. Default: 212992, Linux's rmem_default.
func DatagramBuffer(n int) Option {
	if n < 1 {
		panic(fmt.Errorf("netsim: DatagramBuffer(%d): at least 1", n))
	}
	return func(o *options) { o.udpBuffer = n }
}

// Payloads keeps up to n bytes of each packet's content in the trace. Default: 0.
func Payloads(n int) Option {
	if n < 0 {
		panic(fmt.Errorf("netsim: Payloads(%d): not a size", n))
	}
	return func(o *options) { o.payloads = n }
}

// TraceLimit is how many events the trace keeps; later ones only count and
// enter the hash. Default: 1 048 576.
func TraceLimit(n int) Option {
	if n < 0 {
		panic(fmt.Errorf("netsim: TraceLimit(%d): not a number of events", n))
	}
	return func(o *options) { o.traceLimit = n }
}

// Artifacts are called when a [Run] fails, with the folder that the test's
// files go to. The trace as text and as JSON is written there anyway; package
// pcap and package page add theirs.
func Artifacts(write ...func(dir string, n *Network) error) Option {
	return func(o *options) { o.artifacts = append(o.artifacts, write...) }
}
