package tcp

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// wide is an established end whose congestion window is not in the way.
func wide(t testing.TB) *rig {
	r := withRTT(t, 10*ms)
	r.cwnd = 1 << 20
	return r
}

// TestSegments: what is written is cut into segments, and what is left of a
// segment goes at once.
func TestSegments(t *testing.T) {
	r := wide(t)
	r.put(250)
	require.Equal(t, stream(101, 100), r.out[1].data)
	r.expect("ACK 1:101 ack 1", "ACK 101:201 ack 1", "ACK 201:251 ack 1")
	r.burst = 300
	r.put(350)
	r.expect("ACK 251:551 ack 1", "ACK 551:601 ack 1")
}

func TestNagle(t *testing.T) {
	r := wide(t)
	r.NoDelay = false
	r.put(10)
	r.expect("ACK 1:11 ack 1")
	r.put(10)
	r.put(10)
	r.expect()
	r.feed("ACK 1 ack 11")
	r.expect("ACK 11:31 ack 1")
	r.put(120)
	r.expect("ACK 31:131 ack 1")
	r.shut() // the last bytes go with the FIN
	r.expect("ACK-FIN 131:151 ack 1")
}

// TestFINGoesBehindTheData, in the same segment where it fits, whatever the window.
func TestFINGoesBehindTheData(t *testing.T) {
	r := wide(t)
	_, _, done := r.Write([]byte(stream(1, 120)))
	require.True(t, done)
	r.shut()
	r.expect("ACK 1:101 ack 1", "ACK-FIN 101:121 ack 1")
	n, err, done := r.Write([]byte("x"))
	require.Zero(t, n)
	require.EqualError(t, err, "broken pipe")
	require.True(t, done)

	r = wide(t)
	r.right = 1
	r.shut()
	r.expect("ACK-FIN 1 ack 1")

	r = wide(t)
	r.right = 101
	r.put(120)
	r.expect("ACK 1:101 ack 1")
	r.shut()
	r.expect() // 20 bytes wait for room, and the FIN behind them
	r.feed("ACK 1 ack 101 win 200")
	r.expect("ACK-FIN 101:121 ack 1")
}

// TestSendWindow: no byte goes beyond the peer's window, nor a part of a segment
// while what is in flight may bring more room.
func TestSendWindow(t *testing.T) {
	r := wide(t)
	r.right = 251
	r.put(500)
	r.expect("ACK 1:101 ack 1", "ACK 101:201 ack 1")
	r.feed("ACK 1 ack 101 win 251")
	r.expect()
	r.feed("ACK 1 ack 201 win 301")
	r.expect("ACK 201:301 ack 1")
	r.feed("ACK 1 ack 301 win 200") // a window is never taken back
	require.EqualValues(t, 301, r.right)
}

// TestSendBuffer: a write takes what fits; the rest when a third is free.
func TestSendBuffer(t *testing.T) {
	r := wide(t)
	n, err, done := r.Write(make([]byte, 6000))
	require.Equal(t, 5000, n)
	require.NoError(t, err)
	require.False(t, done)
	r.flush()
	require.Zero(t, r.Space())
	require.Equal(t, 5000, r.Unacknowledged())
	r.TakeEvents()
	r.feed("ACK 1 ack 1001")
	require.Zero(t, r.TakeEvents()&Writable)
	require.Equal(t, 1000, r.Space())
	r.feed("ACK 1 ack 2001")
	require.NotZero(t, r.TakeEvents()&Writable)
	require.False(t, r.Flushed())
	r.feed("ACK 1 ack 5001")
	require.True(t, r.Flushed())
}

// TestReceiveWindow: the buffer's room is what the peer may send; a reader that
// frees a quarter says so.
func TestReceiveWindow(t *testing.T) {
	r := newRig(t)
	r.cfg.RecvBuffer, r.advertised = 400, 401
	established(r)
	r.feed("ACK 1:101 ack 1", "ACK 101:201 ack 1", "ACK 201:301 ack 1", "ACK 301:401 ack 1")
	require.EqualValues(t, 401, r.advertised)
	r.out = nil
	r.feed("ACK 401:402 ack 1") // a window probe with a byte: no room
	r.expect("ACK 1 ack 401")
	b := make([]byte, 50)
	for i := range 3 {
		n, err, _ := r.Read(b)
		require.Equal(t, 50, n)
		require.NoError(t, err)
		require.Equal(t, i == 1, r.WantsWindowUpdate())
		r.flush()
	}
	r.expect("ACK 1 ack 401") // one update, at the second read
	require.EqualValues(t, 501, r.advertised)
}

// TestSetBuffers: what was advertised is not taken back.
func TestSetBuffers(t *testing.T) {
	r := wide(t)
	r.SetBuffers(100, 50)
	send, recv := r.Buffers()
	require.Equal(t, []int{100, 50}, []int{send, recv})
	n, _, done := r.Write(make([]byte, 200))
	require.Equal(t, 100, n)
	require.False(t, done)
	r.flush()
	require.EqualValues(t, 5001, r.advertised)
	r.feed("ACK 1:101 ack 101", "ACK 101:201 ack 101")
	require.Equal(t, stream(1, 200), r.outcome())
}

// TestCongestionWindow: ten segments at first, twice as many a round trip later.
func TestCongestionWindow(t *testing.T) {
	r := withRTT(t, 10*ms)
	_, _, done := r.Write([]byte(stream(1, 5000)))
	require.True(t, done)
	r.flush()
	require.Len(t, r.out, 10)
	r.out = nil
	r.run(20 * ms)
	r.feed("ACK 1 ack 1001")
	require.Len(t, r.out, 20)
}

// TestCongestionWindowOfSmallSegments does not hold up a segment of a path whose
// MTU grew meanwhile.
func TestCongestionWindowOfSmallSegments(t *testing.T) {
	r := withRTT(t, 10*ms)
	r.mss, r.burst = 4000, 4000
	r.put(5000)
	r.expect("ACK 1:4001 ack 1")
}

// TestReordered: what comes early is kept, told to the sender, and read in order.
func TestReordered(t *testing.T) {
	r := enter(t, "ESTAB")
	r.feed("ACK 101:201 ack 1")
	r.expect("ACK 1 ack 1 sack 101-201")
	r.feed("ACK 301:401 ack 1")
	r.expect("ACK 1 ack 1 sack 301-401,101-201")
	r.feed("ACK 101:201 ack 1") // again
	r.expect("ACK 1 ack 1 sack 101-201")
	require.Equal(t, "waits", r.outcome())
	r.feed("ACK 1:51 ack 1")
	r.expect("ACK 1 ack 51 sack 101-201") // not delayed while something is missing
	r.feed("ACK 51:101 ack 1")
	r.expect("ACK 1 ack 201 sack 301-401")
	require.Equal(t, stream(1, 200), r.outcome())
	r.feed("ACK-FIN 401:451 ack 1")
	r.expect("ACK 1 ack 201 sack 301-452")
	r.feed("ACK 201:301 ack 1")
	r.expect("ACK 1 ack 452")
	require.Equal(t, stream(201, 250), r.outcome())
	require.Equal(t, "EOF", r.outcome())
}

// TestOverlaps: pieces of all cuts make one stream, each byte once.
func TestOverlaps(t *testing.T) {
	for _, cuts := range []string{
		"1:101 1:101 1:201 101:201",
		"51:151 1:101 101:201",
		"51:151 51:101 51:201 1:61",
		"101:201 51:151 1:201",
		"61:71 51:151 62:72 61:141 101:201 1:51",
		"1:61 21:81 41:201",
		"151:201 101:201 51:201 1:201",
	} {
		r := enter(t, "ESTAB")
		for _, c := range strings.Fields(cuts) {
			r.feed("ACK " + c + " ack 1")
		}
		require.Equal(t, stream(1, 200), r.outcome(), cuts)
		require.Equal(t, "waits", r.outcome(), cuts)
		require.Zero(t, r.beyondBytes)
	}
}

// TestPoolIsWhole: every chunk is let go of in the end.
func TestPoolIsWhole(t *testing.T) {
	r := enter(t, "ESTAB")
	r.put(3000)
	r.feed("ACK 101:201 ack 1", "ACK 1:51 ack 501", "ACK 1:101 ack 501 sack 601-701", "ACK 301:401 ack 501")
	held := map[*chunk]bool{}
	for _, p := range r.recvq.parts {
		held[p.c] = true
	}
	for _, a := range r.beyond {
		for _, p := range a.parts {
			held[p.c] = true
		}
	}
	for _, q := range r.sendq.chunks[r.sendq.head:] {
		held[q.c] = true
	}
	require.NotEmpty(t, held)
	aborts(r)
	for c := range held {
		require.Zero(t, c.refs)
	}
}
