package tcp

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

// TestSpuriousTimeout: the round trip grew to a second, and two time-outs
// send the first segment again. The acknowledgement of its first copy undoes
// them: nothing else is sent again, and the windows are what they were.
func TestSpuriousTimeout(t *testing.T) {
	r := tenSegments(t)
	r.cwnd, r.ssthresh = 1000, 2000
	r.run(time.Second)
	require.Equal(t, seconds(0.22, 0.64), r.times())
	r.feed("ACK 1 ack 101 echo 10ms")
	r.expect()
	require.EqualValues(t, 1000+100, r.cwnd)
	require.EqualValues(t, 2000, r.ssthresh)
	require.False(t, r.recovering)
	require.Equal(t, r.now+r.rto(0), r.rtoAt, "no back-off is left")
	for ack := int64(201); ack <= 1001; ack += 100 {
		r.run(r.now + 50*ms)
		r.feed("ACK 1 ack " + decimal(ack) + " echo 10ms")
	}
	r.expect()
	r.put(100)
	r.run(r.now + time.Second)
	require.Len(t, r.out, 1, "the time-out follows the round trip")
}

// TestGenuineTimeout: the acknowledgement of a retransmission undoes nothing,
// were it that of an earlier one than the last.
func TestGenuineTimeout(t *testing.T) {
	for _, echo := range []string{"220ms", "640ms"} {
		r := tenSegments(t)
		r.run(time.Second)
		require.Equal(t, seconds(0.22, 0.64), r.times())
		r.feed("ACK 1 ack 101 echo " + echo)
		r.expect("ACK 101:201 ack 1 again", "ACK 201:301 ack 1 again")
	}
}

// TestSpuriousFastRetransmit: reordering took longer than a quarter of a round
// trip. The window shrinks, and is what it was when the straggler is there.
func TestSpuriousFastRetransmit(t *testing.T) {
	r := tenSegments(t)
	r.cwnd = 1000
	r.run(20 * ms)
	r.feed("ACK 1 ack 1 sack 101-401")
	r.expect("ACK 1:101 ack 1 again")
	require.EqualValues(t, 700, r.cwnd)
	r.run(25 * ms)
	r.feed("ACK 1 ack 401 echo 10ms")
	r.expect()
	require.EqualValues(t, 1000+400, r.cwnd)
	require.EqualValues(t, maxCongestion, r.ssthresh)
}

// TestDoubtIsDecidedOnce: what comes after the acknowledgement of the first
// retransmission is no sign that it was spurious.
func TestDoubtIsDecidedOnce(t *testing.T) {
	r := tenSegments(t)
	r.run(300 * ms)
	r.feed("ACK 1 ack 101 echo 220ms")
	r.out = nil
	r.feed("ACK 1 ack 201 echo 10ms")
	require.EqualValues(t, 500, r.ssthresh)
	require.True(t, r.recovering)
}

// TestDoubtIsAboutItsOwnRetransmissions: a segment that was sent again before
// says nothing about the loss behind it.
func TestDoubtIsAboutItsOwnRetransmissions(t *testing.T) {
	r := tenSegments(t)
	r.run(300 * ms)
	r.feed("ACK 1 ack 101 echo 220ms") // the second and third go again
	r.run(r.rtoAt)                     // and the second once more
	r.feed("ACK 1 ack 201 echo 10ms")
	require.False(t, r.recovering)
	r.srtt = time.Minute // the third may still be on its way
	r.out = nil
	r.feed("ACK 1 ack 201 sack 401-1001")
	r.expect("ACK 301:401 ack 1 again")
	shrunk := r.ssthresh
	r.feed("ACK 1 ack 301 sack 401-1001 echo 10ms")
	require.True(t, r.recovering)
	require.Equal(t, shrunk, r.ssthresh)
}

// TestLossAfterUndo: what was deemed lost, no longer is, and is lost after all,
// is found by what arrives behind it, and otherwise by the next time-out.
func TestLossAfterUndo(t *testing.T) {
	r := tenSegments(t)
	r.run(300 * ms)
	r.out = nil
	r.feed("ACK 1 ack 101 echo 10ms")
	r.expect()
	r.feed("ACK 1 ack 101 sack 201-1001")
	r.expect("ACK 101:201 ack 1 again")

	r = tenSegments(t)
	r.run(300 * ms)
	r.out = nil
	r.feed("ACK 1 ack 101 echo 10ms")
	r.run(r.rtoAt)
	r.expect("ACK 101:201 ack 1 again")
}
