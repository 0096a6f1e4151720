package tcp

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// times are those of what was sent, in whole milliseconds.
func (r *rig) times() []time.Duration {
	var at []time.Duration
	for _, s := range r.out {
		at = append(at, s.at.Truncate(ms))
	}
	r.out = nil
	return at
}

func seconds(s ...float64) []time.Duration {
	var at []time.Duration
	for _, x := range s {
		at = append(at, time.Duration(x*float64(time.Second)))
	}
	return at
}

func TestSYNSchedule(t *testing.T) {
	r := newRig(t)
	r.Connect(0)
	r.run(127*time.Second - 1)
	require.Equal(t, []string{
		"0s SYN 0", "1s SYN 0 again", "3s SYN 0 again", "7s SYN 0 again",
		"15s SYN 0 again", "31s SYN 0 again", "1m3s SYN 0 again",
	}, r.timeline())
	require.Equal(t, "SYN-SENT", r.StateName())
	r.run(127 * time.Second)
	require.Equal(t, "ETIMEDOUT", r.outcome())
	require.Empty(t, r.out)
}

// TestSYNScheduleIsBounded: the doubling ends at 120 s.
func TestSYNScheduleIsBounded(t *testing.T) {
	r := newRig(t)
	r.cfg.SYNRetries = 16
	r.Connect(0)
	r.run(2 * time.Hour)
	require.Equal(t, "ETIMEDOUT", r.outcome())
	at := r.times()
	require.Equal(t, seconds(63, 127, 247, 367), at[6:10])
	require.Len(t, at, 17)
}

func TestSYNACKSchedule(t *testing.T) {
	r := newRig(t)
	synReceived(r)
	r.run(time.Hour)
	require.Equal(t, seconds(1, 3, 7, 15, 31), r.times())
	require.Equal(t, "CLOSED", r.StateName())
}

// TestHandshakeAtTheThirdSYN: it is the next SYN that opens, no redial.
func TestHandshakeAtTheThirdSYN(t *testing.T) {
	r := newRig(t)
	r.Connect(0)
	r.run(3100 * ms)
	r.out = nil
	r.feed("SYN-ACK 0 ack 1")
	r.expect("ACK 1 ack 1")
	require.Equal(t, "ESTAB", r.StateName())
	r.put(1) // which SYN was answered is known, so 100 ms are a sample of the round trip
	r.run(3500 * ms)
	require.Equal(t, []string{"3.1s ACK 1:2 ack 1", "3.4s ACK 1:2 ack 1 again"}, r.timeline())
}

// withRTT is an established end that has measured one round trip.
func withRTT(t testing.TB, rtt time.Duration) *rig {
	r := newRig(t)
	synSent(r)
	r.run(rtt)
	r.feed("SYN-ACK 0 ack 1")
	r.expect("ACK 1 ack 1")
	return r
}

// TestRTO: 200 ms and the round trip, doubling to 120 s; 15 retries, 924.6 s.
func TestRTO(t *testing.T) {
	require.Equal(t, 924600*ms, Budget(15))
	r := enter(t, "ESTAB")
	r.put(5)
	r.run(2000 * time.Second)
	require.Equal(t, seconds(0, 0.2, 0.6, 1.4, 3, 6.2, 12.6, 25.4, 51, 102.2, 204.6, 324.6, 444.6, 564.6, 684.6, 804.6), r.times())
	require.Equal(t, "ETIMEDOUT", r.outcome())
	require.Equal(t, "EOF", r.outcome())

	r = enter(t, "ESTAB")
	r.put(5)
	r.run(924599 * ms)
	require.Equal(t, "ESTAB", r.StateName())
	r.run(924601 * ms)
	require.Equal(t, "CLOSED", r.StateName())
}

// TestRTOFollowsTheRoundTrip (RFC 6298): the first sample r gives r and 2 r.
func TestRTOFollowsTheRoundTrip(t *testing.T) {
	for _, c := range []struct{ rtt, rto time.Duration }{
		{0, 200 * ms}, {10 * ms, 210 * ms}, {100 * ms, 300 * ms}, {300 * ms, 900 * ms},
	} {
		r := withRTT(t, c.rtt)
		r.put(5)
		r.run(c.rtt + c.rto + ms)
		require.Equal(t, []time.Duration{c.rtt, c.rtt + c.rto}, r.times(), c.rtt)
	}
}

// TestRTOStartsAnew when something is acknowledged.
func TestRTOStartsAnew(t *testing.T) {
	r := enter(t, "ESTAB")
	r.put(250)
	r.run(3100 * ms) // four time-outs
	r.out = nil
	r.feed("ACK 1 ack 101 echo 3.1s")
	r.expect("ACK 101:201 ack 1 again", "ACK 201:251 ack 1 again")
	r.run(3400 * ms)
	require.Equal(t, seconds(3.3), r.times())
}

func TestHealedJustInTime(t *testing.T) {
	r := enter(t, "ESTAB")
	r.put(5)
	r.run(900 * time.Second)
	r.feed("ACK 1 ack 6")
	r.run(3000 * time.Second)
	require.Equal(t, "ESTAB", r.StateName())
	r.put(5)
	require.Equal(t, "ACK 6:11 ack 1", r.out[len(r.out)-1].text)
}

// TestUserTimeout is TCP_USER_TIMEOUT: it counts from the first sending of what
// is unacknowledged, and ends the connection at that time, not at the next RTO.
func TestUserTimeout(t *testing.T) {
	for _, timeout := range []time.Duration{50 * ms, time.Second, 30 * time.Second, time.Hour} {
		r := enter(t, "ESTAB")
		r.UserTimeout = timeout
		r.put(5)
		r.run(timeout - ms)
		require.Equal(t, "ESTAB", r.StateName(), timeout)
		r.run(timeout)
		require.Equal(t, "ETIMEDOUT", r.outcome(), timeout)
	}
}

func TestUserTimeoutOfLaterData(t *testing.T) {
	r := enter(t, "ESTAB")
	r.UserTimeout = time.Second
	r.put(5)
	r.run(700 * ms)
	r.put(5)
	r.feed("ACK 1 ack 6")
	r.run(1699 * ms)
	require.Equal(t, "ESTAB", r.StateName())
	r.run(1700 * ms)
	require.Equal(t, "ETIMEDOUT", r.outcome())
}

// keepAlive are Go's defaults.
func keepAlive(r *rig) {
	r.KeepIdle, r.KeepInterval, r.KeepCount = 15*time.Second, 15*time.Second, 9
}

// TestKeepAlive: Go's 15 s, 15 s and 9 probes are 150 s.
func TestKeepAlive(t *testing.T) {
	for _, state := range []string{"ESTAB", "CLOSE-WAIT", "FIN-WAIT-2"} {
		r := enter(t, state)
		keepAlive(r)
		r.run(150*time.Second - 1)
		require.Len(t, r.out, 9)
		require.Contains(t, r.out[8].text, "probe")
		require.Equal(t, seconds(15, 30, 45, 60, 75, 90, 105, 120, 135), r.times(), state)
		require.Equal(t, state, r.StateName())
		r.run(150 * time.Second)
		require.Len(t, r.out, 1)
		require.Contains(t, r.out[0].text, "RST", "as tcp_keepalive_timer, it tells the peer")
		require.Equal(t, "CLOSED", r.StateName(), state)
	}
	r := enter(t, "ESTAB")
	keepAlive(r)
	r.run(150 * time.Second)
	require.Equal(t, "ETIMEDOUT", r.outcome())
}

// TestLostProbe: any answer starts the count anew.
func TestLostProbe(t *testing.T) {
	r := enter(t, "ESTAB")
	keepAlive(r)
	r.run(140 * time.Second) // nine probes are lost
	r.out = nil
	r.feed("ACK 1 ack 1")
	r.run(155*time.Second - 1)
	require.Empty(t, r.out)
	r.run(155 * time.Second)
	require.Equal(t, []string{"2m35s ACK 0 ack 1 probe"}, r.timeline())
	r.run(290*time.Second - 1)
	require.Equal(t, "ESTAB", r.StateName())
	r.run(290 * time.Second)
	require.Equal(t, "ETIMEDOUT", r.outcome())
}

// TestProbeIsAnswered by an acknowledgement, even one that carries nothing new.
func TestProbeIsAnswered(t *testing.T) {
	r := enter(t, "ESTAB")
	r.feed("ACK 0 ack 1 probe")
	r.expect("ACK 1 ack 1")
}

// TestKeepAliveOnlyWhenIdle: with data in flight the retransmission timer rules.
func TestKeepAliveOnlyWhenIdle(t *testing.T) {
	r := enter(t, "ESTAB")
	keepAlive(r)
	r.put(5)
	r.run(300 * time.Second)
	require.Equal(t, "ESTAB", r.StateName())
	for _, s := range r.out {
		require.NotContains(t, s.text, "probe")
	}

	r = enter(t, "ESTAB") // nor with data that waits for room, which has probes of its own
	keepAlive(r)
	r.right = 1
	r.put(5)
	r.run(300 * time.Second)
	require.Equal(t, "ESTAB", r.StateName())
}

func TestKeepAliveWithUserTimeout(t *testing.T) {
	r := enter(t, "ESTAB")
	keepAlive(r)
	r.UserTimeout = 20 * time.Second
	r.run(30*time.Second - 1)
	require.Equal(t, "ESTAB", r.StateName())
	r.run(30 * time.Second) // the first time-out of a probe at which 20 s are over
	require.Equal(t, "ETIMEDOUT", r.outcome())
}

func TestNoKeepAlive(t *testing.T) {
	for _, s := range []string{"ESTAB", "CLOSE-WAIT", "FIN-WAIT-2"} {
		require.Equal(t, Never, enter(t, s).Next(), s)
	}
}

// TestPersist: a closed window is probed at doubling intervals for as long as
// the peer answers.
func TestPersist(t *testing.T) {
	r := enter(t, "ESTAB")
	r.feed("ACK 1 ack 1 win 1")
	r.right = 1 // it never had room
	r.put(5)
	r.expect()
	for _, at := range seconds(0.2, 0.6, 1.4, 3, 6.2, 12.6, 25.4, 51, 102.2, 204.6, 324.6, 444.6, 564.6, 684.6, 804.6, 924.6, 1044.6, 1164.6) {
		r.run(at + ms)
		require.Len(t, r.out, 1, fmt.Sprint(at))
		require.InDelta(t, at.Seconds(), r.out[0].at.Seconds(), 0.001)
		r.expect("ACK 0 ack 1 probe")
		r.feed("ACK 1 ack 1 win 1")
	}
}

// TestPersistStartsAnew when the window closes again after it was open.
func TestPersistStartsAnew(t *testing.T) {
	r := enter(t, "ESTAB")
	r.right = 1
	r.put(5)
	r.run(20 * time.Second)
	r.feed("ACK 1 ack 1 win 6")
	r.feed("ACK 1 ack 6 win 6")
	r.out = nil
	r.put(5)
	r.run(r.now + 201*ms)
	r.expect("ACK 5 ack 1 probe")
}

// TestPersistEnds when the window opens, and with the budget when nobody answers.
func TestPersistEnds(t *testing.T) {
	r := enter(t, "ESTAB")
	r.right = 1
	r.put(5)
	r.run(10 * time.Second)
	r.out = nil
	r.feed("ACK 1 ack 1 win 1000")
	r.expect("ACK 1:6 ack 1")
	r.feed("ACK 1 ack 6 win 1005")
	require.Equal(t, Never, r.Next())

	r = enter(t, "ESTAB")
	r.right = 1
	r.put(5)
	r.run(924 * time.Second)
	require.Equal(t, "ESTAB", r.StateName())
	r.run(1200 * time.Second)
	require.Equal(t, "ETIMEDOUT", r.outcome())
	require.NotContains(t, r.out[len(r.out)-1].text, "RST")

	r = enter(t, "ESTAB")
	r.UserTimeout = 5 * time.Second
	r.right = 1
	r.put(5)
	r.run(20 * time.Second)
	require.Equal(t, "ETIMEDOUT", r.outcome())
}

// TestPersistSendsWhatFits: a window that will never be worth waiting for, since
// the peer's buffer shrank, is used when the probe is due (RFC 9293, 3.8.6.2.1).
func TestPersistSendsWhatFits(t *testing.T) {
	r := enter(t, "ESTAB")
	r.right = 41 // less than a segment, less than half of the largest window
	r.put(70)
	r.expect()
	r.run(201 * ms)
	r.expect("ACK 1:41 ack 1")
	r.feed("ACK 1 ack 41 win 81")
	r.expect("ACK 41:71 ack 1")
}

// TestOrphanGivesUpOnAClosedWindow although its probes are answered: nobody is
// there to end it, as in tcp_probe_timer.
func TestOrphanGivesUpOnAClosedWindow(t *testing.T) {
	r := enter(t, "ESTAB")
	r.right = 1
	r.put(5)
	closes(r)
	for i := 0; r.state != Closed; i++ {
		require.Less(t, i, 50)
		r.run(r.Next())
		r.out = nil
		if r.state != Closed {
			r.feed("ACK 1 ack 1 win 1")
		}
	}
	require.InDelta(t, 324.6, r.now.Seconds(), 0.1)
}

// TestDelayedACK: 40 ms, unless two segments wait or data goes the other way.
func TestDelayedACK(t *testing.T) {
	r := enter(t, "ESTAB")
	r.feed("ACK 1:11 ack 1")
	r.run(39 * ms)
	r.expect()
	r.run(40 * ms)
	r.expect("ACK 1 ack 11")
	require.Equal(t, Never, r.Next())

	r.feed("ACK 11:111 ack 1")
	r.expect()
	r.feed("ACK 111:211 ack 1")
	r.expect("ACK 1 ack 211")
	require.Equal(t, Never, r.Next())

	r.feed("ACK 211:221 ack 1")
	r.put(3)
	r.expect("ACK 1:4 ack 221")
	r.feed("ACK 221 ack 4")
	require.Equal(t, Never, r.Next())
}

// TestEarlyTimerIsHarmless: an owner may call Timer whenever it likes.
func TestEarlyTimerIsHarmless(t *testing.T) {
	for _, s := range states {
		r := enter(t, s.name)
		next := r.Next()
		r.Timer(r.now)
		r.expect()
		require.Equal(t, next, r.Next(), s.name)
	}
}

// TestLateTimers: an owner that was paused calls late, and once.
func TestLateTimers(t *testing.T) {
	r := enter(t, "ESTAB")
	keepAlive(r)
	r.now = time.Hour
	r.Timer(r.now)
	r.expect("ACK 0 ack 1 probe")
	require.Equal(t, time.Hour+15*time.Second, r.Next())

	r = enter(t, "ESTAB")
	r.put(5)
	r.out = nil
	r.now = time.Hour
	r.Timer(r.now)
	require.Equal(t, "ETIMEDOUT", r.outcome(), "the budget ran out meanwhile")
}
