package tcp

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A rig is an end whose peer is the test: what the end sends is written down,
// what the test feeds it is written in the same notation, such as
//
//	SYN-ACK 0 ack 1 win 1001
//	ACK 1:101 ack 1 sack 201-301
//	ACK 1 ack 101 echo 20ms
//
// with sequence numbers from:to, win as the right edge of the window, sent as the
// time at which it was sent, and echo as that at which what it answers was.
type rig struct {
	Endpoint
	t          testing.TB
	pool       Pool
	now        time.Duration
	mss, burst int
	out        []sent
	copies     map[int64]time.Duration // when the last segment with that first number was sent
	echoed     time.Duration           // when the segment was sent that the last acknowledgement answers
}

type sent struct {
	at   time.Duration
	text string
	data string
}

const (
	ms         = time.Millisecond
	testMSS    = 100
	testWindow = 10000
)

var testConfig = Config{SendBuffer: 5000, RecvBuffer: 5000, SYNRetries: 6, SYNACKRetries: 5, Retries: 15}

func newRig(t testing.TB) *rig {
	r := &rig{t: t, mss: testMSS, burst: testMSS, copies: map[int64]time.Duration{}}
	r.Init(r, &r.pool, testConfig)
	r.NoDelay = true
	return r
}

func (r *rig) SegmentSize() (mss, burst int) { return r.mss, r.burst }

func (r *rig) Emit(now time.Duration, s *Segment) {
	require.Equal(r.t, r.now, now, "the time that a segment is sent with")
	require.Equal(r.t, stampOf(now), s.Stamp)
	r.out = append(r.out, sent{now, describe(s), string(s.AppendPayload(nil))})
	r.echoed = s.Echo - stampOf(0)
	if s.end() > s.Seq || s.Flags&SYN != 0 {
		r.copies[s.Seq] = now
	}
	s.Free()
}

// describe writes a segment down.
func describe(s *Segment) string {
	text := fmt.Sprintf("%v %d", s.Flags, s.Seq)
	if s.Len > 0 {
		text += fmt.Sprintf(":%d", s.Seq+int64(s.Len))
	}
	if s.Flags&ACK != 0 {
		text += fmt.Sprintf(" ack %d", s.Ack)
	}
	if len(s.sack) > 0 {
		var ranges []string
		for _, b := range s.sack {
			ranges = append(ranges, fmt.Sprintf("%d-%d", b.From, b.To))
		}
		text += " sack " + strings.Join(ranges, ",")
	}
	if s.Again {
		text += " again"
	}
	if s.Probe {
		text += " probe"
	}
	return text
}

// parse is the reverse. By default win is testWindow beyond the acknowledgement,
// sent is now, and the peer answers the last copy of what was not acknowledged.
func (r *rig) parse(text string) *Segment {
	number := func(s string) int64 {
		v, err := strconv.ParseInt(s, 10, 64)
		require.NoError(r.t, err, text)
		return v
	}
	stamp := func(s string) time.Duration {
		at, err := time.ParseDuration(s)
		require.NoError(r.t, err, text)
		return stampOf(at)
	}
	s := r.pool.NewSegment()
	s.Stamp = stampOf(r.now)
	if sentAt, ok := r.copies[r.una]; ok {
		s.Echo = stampOf(sentAt)
	}
	words := strings.Fields(text)
	for _, f := range strings.Split(words[0], "-") {
		for i := SYN; i <= RST; i <<= 1 {
			if i.String() == f {
				s.Flags |= i
			}
		}
	}
	from, to, data := strings.Cut(words[1], ":")
	s.Seq = number(from)
	if data {
		payload(r.pool.fill, s, int(number(to)-s.Seq))
	}
	explicit := false
	for i := 2; i < len(words); i++ {
		switch words[i] {
		case "probe":
			s.Probe = true
			continue
		case "ack":
			s.Ack = number(words[i+1])
		case "win":
			s.Right, explicit = number(words[i+1]), true
		case "echo":
			s.Echo = stamp(words[i+1])
		case "sent":
			s.Stamp = stamp(words[i+1])
		case "sack":
			for _, b := range strings.Split(words[i+1], ",") {
				from, to, _ := strings.Cut(b, "-")
				s.sack = append(s.sack, Range{number(from), number(to)})
			}
		default:
			require.Fail(r.t, "a segment's text", text)
		}
		i++
	}
	if !explicit {
		s.Right = s.Ack + testWindow
	}
	return s
}

// fill makes a chunk that holds b and that its caller holds.
func (p *Pool) fill(b []byte) *chunk {
	c := p.get(len(b))
	c.b = append(c.b, b...)
	return c
}

// payload gives s the n bytes of the peer's stream that belong at its number.
func payload(fill func([]byte) *chunk, s *Segment, n int) {
	s.Len = n
	for off := 0; off < n; {
		k := min(n-off, classes[len(classes)-1])
		s.parts = append(s.parts, part{fill([]byte(stream(s.Seq+int64(off), k))), 0, k})
		off += k
	}
}

// stream is the n bytes at number seq of the stream that every test sends.
func stream(seq int64, n int) string {
	b := make([]byte, n)
	for i := range b {
		at := seq + int64(i)
		b[i] = 'a' + byte((at^at>>8)%26)
	}
	return string(b)
}

// feed lets the end have segments from its peer.
func (r *rig) feed(texts ...string) {
	for _, text := range texts {
		r.Input(r.now, r.parse(text))
		checkEndpoint(r.t, &r.Endpoint)
	}
}

// run lets time pass until then, with what the timers do meanwhile.
func (r *rig) run(until time.Duration) {
	for steps := 0; r.Next() <= until; steps++ {
		require.Less(r.t, steps, 10000, "timers without end")
		r.now = max(r.now, r.Next())
		r.Timer(r.now)
		checkEndpoint(r.t, &r.Endpoint)
	}
	r.now = until
}

// put writes k bytes of the stream, all of which must fit.
func (r *rig) put(k int) {
	n, err, done := r.Write([]byte(stream(r.end, k)))
	require.NoError(r.t, err)
	require.True(r.t, done)
	require.Equal(r.t, k, n)
	r.flush()
}

// flush is what the end's owner does after a call.
func (r *rig) flush() {
	r.UpdateWindow(r.now)
	r.Output(r.now)
	checkEndpoint(r.t, &r.Endpoint)
}

// shut closes the sending half.
func (r *rig) shut() {
	require.Zero(r.t, r.CloseWrite())
	r.flush()
}

// closeNow closes the end as a program does.
func (r *rig) closeNow(abort bool) {
	r.Close(r.now, abort)
	r.flush()
}

// expect compares what was sent since the last call.
func (r *rig) expect(want ...string) {
	r.t.Helper()
	got := []string{}
	for _, s := range r.out {
		got = append(got, s.text)
	}
	r.out = nil
	require.Equal(r.t, append([]string{}, want...), got)
}

// timeline is what was sent since the last call, each with its time.
func (r *rig) timeline() []string {
	var got []string
	for _, s := range r.out {
		got = append(got, fmt.Sprintf("%v %s", s.at, s.text))
	}
	r.out = nil
	return got
}

// outcome is what the program's next read says.
func (r *rig) outcome() string {
	b := make([]byte, 1000)
	n, err, done := r.Read(b)
	switch {
	case !done:
		return "waits"
	case err == io.EOF:
		return "EOF"
	case err != nil:
		var errno syscall.Errno
		require.ErrorAs(r.t, err, &errno)
		return names[errno]
	}
	return string(b[:n])
}

var names = map[syscall.Errno]string{
	syscall.ECONNREFUSED: "ECONNREFUSED", syscall.ECONNRESET: "ECONNRESET",
	syscall.ETIMEDOUT: "ETIMEDOUT", syscall.EPIPE: "EPIPE",
}

// The ways into each state, by the names of ss(8).

func synSent(r *rig) {
	r.Connect(r.now)
	r.expect("SYN 0")
}

func synReceived(r *rig) {
	s := r.parse("SYN 0")
	r.Accept(r.now, s)
	s.Free()
	r.expect("SYN-ACK 0 ack 1")
}

func established(r *rig) {
	synSent(r)
	r.feed("SYN-ACK 0 ack 1")
	r.expect("ACK 1 ack 1")
}

func finWait1(r *rig) {
	established(r)
	r.shut()
	r.expect("ACK-FIN 1 ack 1")
}

func finWait2(r *rig) {
	finWait1(r)
	r.feed("ACK 1 ack 2")
	r.expect()
}

func closing(r *rig) {
	finWait1(r)
	r.feed("ACK-FIN 1 ack 1")
	r.expect("ACK 2 ack 2")
}

func timeWait(r *rig) {
	finWait2(r)
	r.feed("ACK-FIN 1 ack 2")
	r.expect("ACK 2 ack 2")
}

func closeWait(r *rig) {
	established(r)
	r.feed("ACK-FIN 1 ack 1")
	r.expect("ACK 1 ack 2")
}

func lastAck(r *rig) {
	closeWait(r)
	r.shut()
	r.expect("ACK-FIN 1 ack 2")
}

func closed(r *rig) {
	lastAck(r)
	r.feed("ACK 2 ack 2")
	r.expect()
}

// state is one of the states, with the way into it.
type state struct {
	name  string
	enter func(*rig)
}

var states = []state{
	{"SYN-SENT", synSent}, {"SYN-RECV", synReceived}, {"ESTAB", established},
	{"FIN-WAIT-1", finWait1}, {"FIN-WAIT-2", finWait2}, {"CLOSING", closing}, {"TIME-WAIT", timeWait},
	{"CLOSE-WAIT", closeWait}, {"LAST-ACK", lastAck}, {"CLOSED", closed},
}

// enter gives a new rig in the state of that name.
func enter(t testing.TB, name string) *rig {
	r := newRig(t)
	for _, s := range states {
		if s.name == name {
			s.enter(r)
		}
	}
	require.Equal(t, name, r.StateName())
	return r
}

// checkEndpoint fails the test where an end contradicts itself.
func checkEndpoint(t testing.TB, e *Endpoint) {
	t.Helper()
	if s := contradiction(e); s != "" {
		require.Fail(t, s, "%s: una %d nxt %d end %d right %d rcvNxt %d flight %+v", e.StateName(), e.una, e.nxt, e.end, e.right, e.rcvNxt, e.flight[e.flightHead:])
	}
}

// contradiction says what about an end cannot be; it is empty where all is well.
func contradiction(e *Endpoint) string {
	switch {
	case e.state == Closed && e.Next() != Never:
		return "a closed end waits for something"
	case e.state == Closed && (len(e.flight) > 0 || len(e.beyond) > 0):
		return "a closed end holds what nobody will have"
	case e.una > e.nxt || e.nxt > e.sendable():
		return "the numbers to send are in disorder"
	case e.Space() < 0 || e.Unacknowledged() < 0:
		return "the send buffer has a negative size"
	case e.state != Established:
		return ""
	case (e.una < e.nxt) != (e.rtoAt != never):
		return "the retransmission timer does not run, or runs for nothing"
	case e.cwnd < 1:
		return "the congestion window is shut"
	case e.nxt == e.una && e.nxt < e.end && e.persistAt == never:
		return "data waits, and nothing that would send it"
	}
	at, sacked, lost := e.una, int64(0), int64(0)
	for _, f := range e.flight[e.flightHead:] {
		switch {
		case f.seq != at || f.end <= f.seq:
			return "the flight has a gap"
		case f.sacked && f.lost:
			return "a segment is lost and arrived"
		case f.sacked:
			sacked += f.end - f.seq
		case f.lost:
			lost += f.end - f.seq
		}
		at = f.end
	}
	if at != e.nxt || sacked != e.sacked || lost != e.lost {
		return "the flight is not what is unacknowledged"
	}
	bytes, from := 0, e.rcvNxt
	for _, a := range e.beyond {
		n := 0
		for _, p := range a.parts {
			n += p.n
		}
		if a.seq < from || a.end() <= e.rcvNxt || a.n != n {
			return "what came early is in disorder"
		}
		from, bytes = a.seq, bytes+n
	}
	if bytes != e.beyondBytes {
		return "what came early is miscounted"
	}
	return ""
}
