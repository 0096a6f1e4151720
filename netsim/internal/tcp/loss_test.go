package tcp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// tenSegments are in flight since 10 ms, over a path of 10 ms.
func tenSegments(t *testing.T) *rig {
	r := wide(t)
	r.put(1000)
	require.Len(t, r.out, 10)
	r.out = nil
	return r
}

// TestFastRetransmit: three segments beyond a hole, and it is filled a round
// trip after it was made; the time-out has no part in it.
func TestFastRetransmit(t *testing.T) {
	r := tenSegments(t)
	r.run(20 * ms)
	r.feed("ACK 1 ack 1 sack 101-201", "ACK 1 ack 1 sack 101-301")
	r.expect()
	r.feed("ACK 1 ack 1 sack 101-401")
	require.Equal(t, []string{"20ms ACK 1:101 ack 1 again"}, r.timeline())
	r.feed("ACK 1 ack 1 sack 101-1001") // the rest arrives: nothing else was lost
	r.expect()
	r.run(30 * ms)
	r.feed("ACK 1 ack 1001")
	require.Equal(t, Never, r.Next())
}

// TestFewSegmentsBeyondTheHole: fewer than three, and a quarter of a round trip
// must pass, since the path may have reordered.
func TestFewSegmentsBeyondTheHole(t *testing.T) {
	r := wide(t)
	r.put(200)
	r.out = nil
	r.run(20 * ms)
	r.feed("ACK 1 ack 1 sack 101-201")
	r.expect()
	r.run(40 * ms)
	require.Equal(t, []string{"22.5ms ACK 1:101 ack 1 again"}, r.timeline())
}

// TestReorderedIsNotLost: an acknowledgement within that quarter, nothing is sent.
func TestReorderedIsNotLost(t *testing.T) {
	r := wide(t)
	r.put(200)
	r.out = nil
	r.run(20 * ms)
	r.feed("ACK 1 ack 1 sack 101-201")
	r.run(22 * ms)
	r.feed("ACK 1 ack 201")
	r.run(time.Hour)
	r.expect()
}

// TestSeveralHoles are all filled in one round trip, and nothing else is sent.
func TestSeveralHoles(t *testing.T) {
	r := tenSegments(t)
	r.run(20 * ms)
	r.feed("ACK 1 ack 101", "ACK 1 ack 101 sack 201-301", "ACK 1 ack 101 sack 401-501,201-301", "ACK 1 ack 101 sack 601-1001,401-501,201-301")
	r.expect("ACK 101:201 ack 1 again", "ACK 301:401 ack 1 again", "ACK 501:601 ack 1 again")
	r.run(30 * ms)
	r.feed("ACK 1 ack 1001")
	require.Equal(t, Never, r.Next())
}

// TestRetransmissionLost: the time-out has to do it, which starts anew with the
// retransmission.
func TestRetransmissionLost(t *testing.T) {
	r := tenSegments(t)
	r.run(20 * ms)
	r.feed("ACK 1 ack 1 sack 101-1001")
	r.expect("ACK 1:101 ack 1 again")
	r.run(229 * ms)
	r.expect()
	r.run(231 * ms)
	require.Equal(t, []string{"230ms ACK 1:101 ack 1 again"}, r.timeline())
}

// TestRetransmissionOvertaken: what was sent behind a retransmission arrives
// before it, which is no reason to send it a third time at once.
func TestRetransmissionOvertaken(t *testing.T) {
	r := tenSegments(t)
	r.run(20 * ms)
	r.feed("ACK 1 ack 1 sack 101-401")
	r.put(100)
	r.expect("ACK 1:101 ack 1 again", "ACK 1001:1101 ack 1")
	r.run(30 * ms)
	r.feed("ACK 1 ack 1 sack 101-1101")
	r.expect()
	r.run(32 * ms)
	r.feed("ACK 1 ack 1101")
	r.run(time.Hour)
	r.expect()
}

// TestTailLost: nothing came behind it that could tell, so it takes an RTO; what
// the peer has is not sent again.
func TestTailLost(t *testing.T) {
	r := tenSegments(t)
	r.run(20 * ms)
	r.feed("ACK 1 ack 701")
	r.run(300 * ms)
	require.Equal(t, []string{"230ms ACK 701:801 ack 1 again"}, r.timeline())
	r.feed("ACK 1 ack 801")
	r.expect("ACK 801:901 ack 1 again", "ACK 901:1001 ack 1 again")
}

// TestLossShrinksTheWindow to CUBIC's seven tenths; a time-out to one segment.
func TestLossShrinksTheWindow(t *testing.T) {
	r := tenSegments(t)
	r.cwnd = 1000
	r.run(20 * ms)
	r.feed("ACK 1 ack 1 sack 101-401")
	require.EqualValues(t, 700, r.cwnd)
	r.feed("ACK 1 ack 1001") // all is well again: it grows, by a segment a round trip
	require.EqualValues(t, 700, r.cwnd-1000*testMSS/700)

	r = tenSegments(t)
	r.run(220 * ms)
	require.EqualValues(t, testMSS, r.cwnd)
	require.EqualValues(t, 500, r.ssthresh)
	r.expect("ACK 1:101 ack 1 again")
}

// TestSmallerMTU: what was sent in one piece is sent again in pieces that fit.
func TestSmallerMTU(t *testing.T) {
	r := wide(t)
	_, _, done := r.Write([]byte(stream(1, 180)))
	require.True(t, done)
	r.shut()
	r.expect("ACK 1:101 ack 1", "ACK-FIN 101:181 ack 1")
	r.mss, r.burst = 40, 40
	r.run(221 * ms)
	r.expect("ACK 1:41 ack 1 again")
	r.feed("ACK 1 ack 41")
	r.expect("ACK 41:81 ack 1 again", "ACK 81:101 ack 1 again")
	r.feed("ACK 1 ack 101")
	r.expect("ACK 101:141 ack 1 again", "ACK-FIN 141:181 ack 1 again")
	r.feed("ACK 1 ack 182")
	require.Equal(t, "FIN-WAIT-2", r.StateName())
}

// TestPartOfASegmentAcknowledged: only its rest is sent again.
func TestPartOfASegmentAcknowledged(t *testing.T) {
	r := wide(t)
	r.put(100)
	r.out = nil
	r.feed("ACK 1 ack 41")
	r.run(300 * ms)
	require.Equal(t, "ACK 41:101 ack 1 again", r.out[0].text)
	require.Equal(t, stream(41, 60), r.out[0].data)
}

// TestFINLost: the peer sees the end of the stream with the retransmission.
func TestFINLost(t *testing.T) {
	r := withRTT(t, 10*ms)
	r.shut()
	r.run(300 * ms)
	require.Equal(t, []string{"10ms ACK-FIN 1 ack 1", "220ms ACK-FIN 1 ack 1 again"}, r.timeline())
}

// TestRenegedSACK: a receiver may drop what it acknowledged selectively; after a
// time-out the sender forgets what it was told (RFC 2018, section 8).
func TestRenegedSACK(t *testing.T) {
	r := wide(t)
	r.put(300)
	r.out = nil
	r.feed("ACK 1 ack 1 sack 1-301")
	r.run(221 * ms)
	r.expect("ACK 1:101 ack 1 again")

	r = wide(t)
	r.put(300)
	r.out = nil
	r.feed("ACK 1 ack 101 sack 101-301")
	r.run(221 * ms)
	r.expect("ACK 101:201 ack 1 again")
}
