package tcp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestEcho: an acknowledgement answers the segment with the first number that
// was not acknowledged, whatever came behind it meanwhile (RFC 7323, 4.3).
func TestEcho(t *testing.T) {
	r := enter(t, "ESTAB")
	r.run(time.Second)
	r.feed("ACK 1:11 ack 1 sent 900ms", "ACK 11:21 ack 1 sent 950ms")
	r.run(time.Second + 40*ms)
	r.expect("ACK 1 ack 21")
	require.Equal(t, 900*ms, r.echoed, "with how long it was delayed")

	r.feed("ACK 121:221 ack 1 sent 1020ms")
	r.expect("ACK 1 ack 21 sack 121-221")
	require.Equal(t, 900*ms, r.echoed, "what came early does not count")
	r.feed("ACK 21:121 ack 1 sent 1030ms")
	r.expect("ACK 1 ack 221")
	require.Equal(t, 1030*ms, r.echoed, "what fills a hole does")
	r.feed("ACK 21:121 ack 1 sent 1010ms")
	r.expect("ACK 1 ack 221")
	require.Equal(t, 1030*ms, r.echoed, "nor what is older")
}

// TestEchoOfASYN: a SYN-ACK answers the SYN that it is for.
func TestEchoOfASYN(t *testing.T) {
	r := newRig(t)
	r.now = time.Second
	s := r.parse("SYN 0 sent 970ms")
	r.Accept(r.now, s)
	s.Free()
	require.Equal(t, 970*ms, r.echoed)
	r.run(1500 * ms)
	r.feed("SYN 0 sent 1460ms")
	require.Equal(t, 1460*ms, r.echoed)
}

// TestSampleOfARetransmission: the time-out follows the round trip though every
// segment is sent twice.
func TestSampleOfARetransmission(t *testing.T) {
	r := withRTT(t, 10*ms)
	for range 20 {
		r.put(5)
		sent := r.now
		r.run(sent + 2*time.Second)
		r.feed("ACK 1 ack " + decimal(r.nxt) + " echo " + sent.String())
	}
	r.out = nil
	r.put(5)
	r.run(r.now + 1900*ms)
	require.Len(t, r.out, 1)
}

// TestNoSample where the peer's echo is none of our stamps.
func TestNoSample(t *testing.T) {
	r := withRTT(t, 10*ms)
	r.put(5)
	r.feed("ACK 1 ack 6 echo 1h")
	require.Equal(t, 10*ms, r.srtt)
}
