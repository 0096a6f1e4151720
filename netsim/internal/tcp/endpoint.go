// Package tcp is one end of a TCP connection as a state machine: fed with the
// time, segments and the program's calls, it emits segments and says when it
// wants to be called again. It has no goroutine, no clock, no lock and does no
// I/O; its owner serialises the calls.
//
// It follows Linux where a program can tell: handshake and retransmission
// schedule (RFC 6298 with Linux's 200 ms minimum), round-trip times by timestamps
// (RFC 7323), selective acknowledgement with time-based loss detection (RFC
// 8985's idea), the undoing of spurious retransmissions (RFC 3522, 4015), slow
// start and congestion avoidance, flow control with persist probes, delayed
// acknowledgement, Nagle, keep-alive, TCP_USER_TIMEOUT, half-close, TIME_WAIT, and
// what each error is.
package tcp

import (
	"syscall"
	"time"
)

// Figures of Linux, from include/net/tcp.h.
const (
	MinRTO         = 200 * time.Millisecond // TCP_RTO_MIN
	MaxRTO         = 120 * time.Second      // TCP_RTO_MAX
	InitialRTO     = time.Second            // TCP_TIMEOUT_INIT
	DelayedACK     = 40 * time.Millisecond  // TCP_DELACK_MIN
	TimeWait       = 60 * time.Second       // TCP_TIMEWAIT_LEN
	FinTimeout     = 60 * time.Second       // TCP_FIN_TIMEOUT
	InitialWindow  = 10                     // segments, TCP_INIT_CWND
	orphanRetries  = 8                      // tcp_orphan_retries
	maxCongestion  = 1 << 30
	duplicateACKs  = 3
	maxSackRanges  = 3
	never          = time.Duration(1<<63 - 1)
	windowFraction = 4 // a reader that frees a quarter of its buffer says so
)

// Config are the settings of an end that its network gives it.
type Config struct {
	SendBuffer, RecvBuffer int // bytes
	SYNRetries             int // tcp_syn_retries, 6
	SYNACKRetries          int // tcp_synack_retries, 5
	Retries                int // tcp_retries2, 15
}

// Env is what an end needs of the world.
type Env interface {
	// Emit sends s; the callee owns it from then on.
	Emit(now time.Duration, s *Segment)
	// SegmentSize is the most payload one segment may carry towards the peer at
	// present: mss for the network, burst for what may leave in one piece
	// because nothing on the way would treat its parts differently.
	SegmentSize() (mss, burst int)
}

// State is where an end is in its life.
type State uint8

// The states. Established covers the closing states too; see [Endpoint.StateName].
const (
	Closed State = iota
	SynSent
	SynReceived
	Established
	TimeWaiting
)

// Event says what a call changed that somebody may wait for.
type Event uint8

// Events are a set.
const (
	Readable Event = 1 << iota
	Writable
	Opened // the handshake is done
	Died   // the end is closed for good
)

// An Endpoint is one end. Make it with Init.
type Endpoint struct {
	env  Env
	pool *Pool
	cfg  Config

	NoDelay      bool
	KeepIdle     time.Duration // 0: no keep-alive
	KeepInterval time.Duration
	KeepCount    int
	UserTimeout  time.Duration // 0: the budget of Retries

	state       State
	active      bool // it was this end that opened
	events      Event
	err         syscall.Errno // pending, given once
	shutRead    bool
	detached    bool // the program closed it
	finQueued   bool
	activeClose bool
	finReceived bool
	ackNow      bool
	ackPending  bool
	recovering  bool
	restarting  bool // recovering from a time-out: the window grows meanwhile
	resend      bool // one lost segment goes out whatever the window says

	// Sending. una ≤ nxt ≤ end (+1 with the FIN).
	una, nxt, end int64
	right         int64 // the peer's window
	maxWindow     int64
	sendq         sendQueue
	flight        []inflight
	flightHead    int
	sacked, lost  int64 // bytes in flight that are with the peer, or deemed lost
	cwnd          int64
	ssthresh      int64
	recover       int64
	doubt         doubt

	srtt, rttvar, minRTT time.Duration
	backoff              int
	rtoAt                time.Duration
	reorderAt            time.Duration
	persistAt            time.Duration
	persisted            int           // window probes since the window closed
	stalledAt            time.Duration // first unanswered window probe
	rackAt               time.Duration
	rackEnd              int64

	// Receiving.
	rcvNxt      int64
	advertised  int64
	echo        time.Duration // the stamp that an acknowledgement answers
	ackSent     int64         // the last acknowledgement
	unacked     int           // received since the last acknowledgement
	recvq       recvQueue
	beyond      []ahead // out of order, sorted
	latest      int64   // where what came last of it starts
	beyondBytes int

	delackAt time.Duration
	strayAt  time.Duration // when the next stray acknowledgement may be answered
	heardAt  time.Duration
	probedAt time.Duration
	probes   int
	closeAt  time.Duration // end of TIME_WAIT, or of an orphan's FIN_WAIT2
}

// inflight is a segment that was sent and not acknowledged.
type inflight struct {
	seq, end        int64
	firstAt, sentAt time.Duration
	fin             bool
	sacked, lost    bool
	again           bool
}

// ahead is what arrived before its turn.
type ahead struct {
	seq   int64
	n     int
	fin   bool
	parts []part
}

// end is the number after its last.
func (a *ahead) end() int64 {
	if a.fin {
		return a.seq + int64(a.n) + 1
	}
	return a.seq + int64(a.n)
}

// Init prepares e. The zero Endpoint is closed.
func (e *Endpoint) Init(env Env, pool *Pool, cfg Config) {
	*e = Endpoint{
		env: env, pool: pool, cfg: cfg,
		rtoAt: never, reorderAt: never, persistAt: never, delackAt: never, closeAt: never, stalledAt: never,
		ssthresh: maxCongestion, minRTT: never, doubt: doubt{since: never},
		end: 1, advertised: int64(cfg.RecvBuffer) + 1,
	}
}

// State is where e is.
func (e *Endpoint) State() State { return e.state }

// StateName is the state as ss and netstat call it.
func (e *Endpoint) StateName() string {
	switch e.state {
	case SynSent:
		return "SYN-SENT"
	case SynReceived:
		return "SYN-RECV"
	case TimeWaiting:
		return "TIME-WAIT"
	case Closed:
		return "CLOSED"
	}
	switch {
	case !e.finQueued && !e.finReceived:
		return "ESTAB"
	case !e.finQueued:
		return "CLOSE-WAIT"
	case e.finReceived && !e.activeClose:
		return "LAST-ACK"
	case e.finReceived:
		return "CLOSING"
	case e.finAcked():
		return "FIN-WAIT-2"
	}
	return "FIN-WAIT-1"
}

// TakeEvents gives what changed since the last call.
func (e *Endpoint) TakeEvents() Event {
	ev := e.events
	e.events = 0
	return ev
}

// Connect starts an active open.
func (e *Endpoint) Connect(now time.Duration) {
	e.state, e.active = SynSent, true
	e.sendSYN(now)
}

// Accept starts a passive open, in answer to the SYN s.
func (e *Endpoint) Accept(now time.Duration, s *Segment) {
	e.state = SynReceived
	e.rcvNxt = 1
	e.heardAt, e.echo = now, s.Stamp
	e.setRight(s.Right)
	e.sendSYN(now)
}

func (e *Endpoint) sendSYN(now time.Duration) {
	s := e.pool.NewSegment()
	s.Flags = SYN
	s.Again = len(e.flight) > 0
	s.Right = e.advertised
	if e.state == SynReceived {
		s.Flags |= ACK
		s.Ack, s.Echo, e.ackSent = e.rcvNxt, e.echo, e.rcvNxt
	}
	if !s.Again {
		e.flight = append(e.flight, inflight{seq: 0, end: 1, firstAt: now, sentAt: now})
	} else {
		e.flight[0].sentAt, e.flight[0].again = now, true
	}
	e.nxt = 1
	e.rtoAt = now + min(InitialRTO<<e.backoff, MaxRTO)
	e.emit(now, s)
}

// setRight takes the peer's window.
func (e *Endpoint) setRight(right int64) {
	if right > e.right {
		e.right = right
	}
	e.maxWindow = max(e.maxWindow, right-e.una)
}

func (e *Endpoint) open(now time.Duration) {
	e.state = Established
	e.events |= Opened | Writable
	mss, _ := e.env.SegmentSize()
	e.cwnd = InitialWindow * int64(mss)
	e.heardAt = now
}

// fail ends the connection with an error for the program.
func (e *Endpoint) fail(err syscall.Errno) {
	e.err = err
	e.die()
}

// die ends the connection. What was received stays readable.
func (e *Endpoint) die() {
	e.state = Closed
	e.events |= Readable | Writable | Died
	e.sendq.drop(e.pool)
	e.dropBeyond()
	e.flight, e.flightHead, e.sacked, e.lost = nil, 0, 0, 0
	e.rtoAt, e.reorderAt, e.persistAt, e.delackAt, e.closeAt = never, never, never, never, never
}

func (e *Endpoint) dropBeyond() {
	for _, a := range e.beyond {
		for _, p := range a.parts {
			e.pool.release(p.c)
		}
	}
	e.beyond, e.beyondBytes = nil, 0
}

func (e *Endpoint) finAcked() bool { return e.finQueued && e.una > e.end }

// sendable is the number after the last that there is to send.
func (e *Endpoint) sendable() int64 {
	if e.finQueued {
		return e.end + 1
	}
	return e.end
}
