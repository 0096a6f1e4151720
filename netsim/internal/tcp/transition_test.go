package tcp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestTransitions is the diagram of RFC 9293, section 3.3.2, an arrow a line.
func TestTransitions(t *testing.T) {
	for _, c := range []struct {
		name  string
		from  string
		event func(*rig)
		to    string
		sends []string
	}{
		{"active open, answered", "SYN-SENT", fed("SYN-ACK 0 ack 1"), "ESTAB", []string{"ACK 1 ack 1"}},
		{"simultaneous open", "SYN-SENT", fed("SYN 0"), "SYN-RECV", []string{"SYN-ACK 0 ack 1"}},
		{"simultaneous open, answered", "SYN-SENT", fed("SYN 0", "SYN-ACK 0 ack 1"), "ESTAB", []string{"SYN-ACK 0 ack 1", "ACK 1 ack 1"}},
		{"program closes while opening", "SYN-SENT", closes, "CLOSED", nil},
		{"passive open, acknowledged", "SYN-RECV", fed("ACK 1 ack 1"), "ESTAB", nil},
		{"passive open, acknowledged by data", "SYN-RECV", fed("ACK 1:3 ack 1"), "ESTAB", nil},
		{"passive open, acknowledged by a FIN", "SYN-RECV", fed("ACK-FIN 1 ack 1"), "CLOSE-WAIT", []string{"ACK 1 ack 2"}},
		{"program closes", "ESTAB", closes, "FIN-WAIT-1", []string{"ACK-FIN 1 ack 1"}},
		{"program half-closes", "ESTAB", (*rig).shut, "FIN-WAIT-1", []string{"ACK-FIN 1 ack 1"}},
		{"peer closes", "ESTAB", fed("ACK-FIN 1 ack 1"), "CLOSE-WAIT", []string{"ACK 1 ack 2"}},
		{"peer closes with data", "ESTAB", fed("ACK-FIN 1:4 ack 1"), "CLOSE-WAIT", []string{"ACK 1 ack 5"}},
		{"FIN acknowledged", "FIN-WAIT-1", fed("ACK 1 ack 2"), "FIN-WAIT-2", nil},
		{"both close at once", "FIN-WAIT-1", fed("ACK-FIN 1 ack 1"), "CLOSING", []string{"ACK 2 ack 2"}},
		{"FIN acknowledged by the peer's FIN", "FIN-WAIT-1", fed("ACK-FIN 1 ack 2"), "TIME-WAIT", []string{"ACK 2 ack 2"}},
		{"peer still sends", "FIN-WAIT-2", fed("ACK 1:5 ack 2"), "FIN-WAIT-2", nil},
		{"peer closes last", "FIN-WAIT-2", fed("ACK-FIN 1 ack 2"), "TIME-WAIT", []string{"ACK 2 ack 2"}},
		{"both closed, FIN acknowledged", "CLOSING", fed("ACK 2 ack 2"), "TIME-WAIT", nil},
		{"program closes last", "CLOSE-WAIT", closes, "LAST-ACK", []string{"ACK-FIN 1 ack 2"}},
		{"last FIN acknowledged", "LAST-ACK", fed("ACK 2 ack 2"), "CLOSED", nil},
		{"2 MSL", "TIME-WAIT", ran(TimeWait), "CLOSED", nil},
		{"almost 2 MSL", "TIME-WAIT", ran(TimeWait - 1), "TIME-WAIT", nil},
		{"program closes in TIME-WAIT", "TIME-WAIT", closes, "TIME-WAIT", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := enter(t, c.from)
			c.event(r)
			require.Equal(t, c.to, r.StateName())
			r.expect(c.sends...)
		})
	}
}

func fed(texts ...string) func(*rig) { return func(r *rig) { r.feed(texts...) } }

func ran(d time.Duration) func(*rig) { return func(r *rig) { r.run(d) } }

func closes(r *rig) { r.closeNow(false) }

func aborts(r *rig) { r.closeNow(true) }

// TestReset: what a RST does in each state, and what the program is told.
func TestReset(t *testing.T) {
	for _, c := range []struct {
		from, rst string
		to, read  string
	}{
		{"SYN-SENT", "ACK-RST 0 ack 1", "CLOSED", "ECONNREFUSED"},
		{"SYN-SENT", "RST 0", "SYN-SENT", "waits"},
		{"SYN-SENT", "ACK-RST 0 ack 7", "SYN-SENT", "waits"},
		{"SYN-RECV", "RST 1", "CLOSED", "EOF"},
		{"SYN-RECV", "RST 9999", "SYN-RECV", "waits"},
		{"ESTAB", "RST 1", "CLOSED", "ECONNRESET"},
		{"ESTAB", "ACK-RST 1 ack 1", "CLOSED", "ECONNRESET"},
		{"ESTAB", "RST 4000", "CLOSED", "ECONNRESET"},
		{"ESTAB", "RST 9999", "ESTAB", "waits"},
		{"FIN-WAIT-1", "RST 1", "CLOSED", "ECONNRESET"},
		{"FIN-WAIT-2", "RST 1", "CLOSED", "ECONNRESET"},
		{"CLOSING", "RST 2", "CLOSED", "EOF"},
		{"TIME-WAIT", "RST 2", "CLOSED", "EOF"},
		{"CLOSE-WAIT", "RST 2", "CLOSED", "EOF"}, // the write that follows says EPIPE
		{"LAST-ACK", "RST 2", "CLOSED", "EOF"},
		{"CLOSED", "RST 2", "CLOSED", "EOF"},
	} {
		t.Run(c.from+" "+c.rst, func(t *testing.T) {
			r := enter(t, c.from)
			r.feed(c.rst)
			require.Equal(t, c.to, r.StateName())
			r.expect()
			require.Equal(t, c.read, r.outcome())
			if c.to == "CLOSED" {
				require.Equal(t, "EOF", r.outcome(), "an error is given once")
			}
		})
	}
}

// TestResetOfASimultaneousOpen is news to the program, unlike that of an embryo
// of a listener.
func TestResetOfASimultaneousOpen(t *testing.T) {
	r := enter(t, "SYN-SENT")
	r.feed("SYN 0", "RST 1")
	require.Equal(t, "ECONNRESET", r.outcome())
}

func TestResetBehindAFIN(t *testing.T) {
	r := enter(t, "CLOSE-WAIT")
	r.feed("RST 2")
	_, err, _ := r.Write([]byte("x"))
	require.EqualError(t, err, "broken pipe")
}

// TestDataOutlivesReset: bytes that came before it are read first.
func TestDataOutlivesReset(t *testing.T) {
	r := enter(t, "ESTAB")
	r.feed("ACK 1:6 ack 1", "RST 6")
	require.Equal(t, stream(1, 5), r.outcome())
	require.Equal(t, "ECONNRESET", r.outcome())
	require.Equal(t, "EOF", r.outcome())
	_, err, _ := r.Write([]byte("x"))
	require.EqualError(t, err, "broken pipe")
}

// TestAbort: what a close that resets sends in each state.
func TestAbort(t *testing.T) {
	for _, c := range []struct {
		from  string
		sends []string
		to    string
	}{
		{"SYN-SENT", nil, "CLOSED"},
		{"SYN-RECV", []string{"ACK-RST 1 ack 1"}, "CLOSED"},
		{"ESTAB", []string{"ACK-RST 1 ack 1"}, "CLOSED"},
		{"FIN-WAIT-1", []string{"ACK-RST 2 ack 1"}, "CLOSED"},
		{"FIN-WAIT-2", []string{"ACK-RST 2 ack 1"}, "CLOSED"},
		{"CLOSING", []string{"ACK-RST 2 ack 2"}, "CLOSED"},
		{"TIME-WAIT", nil, "TIME-WAIT"},
		{"CLOSE-WAIT", []string{"ACK-RST 1 ack 2"}, "CLOSED"},
		{"LAST-ACK", []string{"ACK-RST 2 ack 2"}, "CLOSED"},
		{"CLOSED", nil, "CLOSED"},
	} {
		t.Run(c.from, func(t *testing.T) {
			r := enter(t, c.from)
			aborts(r)
			r.expect(c.sends...)
			require.Equal(t, c.to, r.StateName())
		})
	}
}

// TestCloseWithUnreadData resets, as Linux does, since nobody is going to read.
func TestCloseWithUnreadData(t *testing.T) {
	for _, unread := range []string{"ACK 1:6 ack 1", "ACK-FIN 1:6 ack 1"} {
		r := enter(t, "ESTAB")
		r.feed(unread)
		r.out = nil
		closes(r)
		require.Equal(t, "CLOSED", r.StateName())
		require.Contains(t, r.out[0].text, "ACK-RST 1")
		require.Len(t, r.out, 1)
	}
}

// TestWriteBeforeAReset: a write sends at once, so what was written in the instant
// of the Close leaves in front of the RST, and the peer can read it.
func TestWriteBeforeAReset(t *testing.T) {
	for name, abort := range map[string]bool{"unread data": false, "linger 0": true} {
		r := enter(t, "ESTAB")
		if !abort {
			r.feed("ACK 1:6 ack 1")
		}
		r.out = nil
		_, err, done := r.Write([]byte(stream(r.end, 5)))
		require.NoError(t, err)
		require.True(t, done)
		r.closeNow(abort)
		require.Len(t, r.out, 2, name)
		require.Contains(t, r.out[0].text, "ACK 1:6", name)
		require.Contains(t, r.out[1].text, "ACK-RST 6", name)
	}
}

// TestDataAfterClose resets as well; after CloseWrite it is what was asked for.
func TestDataAfterClose(t *testing.T) {
	for _, from := range []string{"ESTAB", "FIN-WAIT-1", "FIN-WAIT-2"} {
		r := enter(t, from)
		closes(r)
		r.out = nil
		r.feed("ACK 1:6 ack 1")
		require.Equal(t, "CLOSED", r.StateName(), from)
		r.expect("ACK-RST 2 ack 1")
	}
	r := enter(t, "FIN-WAIT-2")
	r.feed("ACK 1:6 ack 2")
	require.Equal(t, stream(1, 5), r.outcome())
}

// TestShutBothHalves: with both halves shut, data is refused as after a close.
func TestShutBothHalves(t *testing.T) {
	r := enter(t, "FIN-WAIT-2")
	require.Zero(t, r.CloseRead())
	require.Equal(t, "EOF", r.outcome())
	r.feed("ACK 1:6 ack 2")
	r.expect("ACK-RST 2 ack 1")
	require.Equal(t, "CLOSED", r.StateName())

	r = enter(t, "ESTAB")
	require.Zero(t, r.CloseRead())
	r.feed("ACK 1:6 ack 1") // the peer was told nothing
	require.Equal(t, "ESTAB", r.StateName())
	require.Equal(t, stream(1, 5), r.outcome())
	require.Equal(t, "EOF", r.outcome())
}

// TestShutdownNeedsAConnection: as shutdown(2), ENOTCONN where there is none.
func TestShutdownNeedsAConnection(t *testing.T) {
	for _, s := range states {
		r := enter(t, s.name)
		write := r.state == Established || r.state == SynReceived
		require.Equal(t, write, r.CloseWrite() == 0, s.name)
		r = enter(t, s.name)
		require.Equal(t, r.state == Established, r.CloseRead() == 0, s.name)
	}
}

// TestStrayAcknowledgements are answered now and then: were each answered, two
// ends whose packets are repeated and overtake each other would never stop.
func TestStrayAcknowledgements(t *testing.T) {
	r := enter(t, "ESTAB")
	for range 3 {
		r.feed("ACK 0 ack 1")
		r.expect("ACK 1 ack 1")
		r.feed("ACK 0 ack 1")
		r.expect()
		r.run(r.now + strayEvery - 1)
		r.feed("ACK 0 ack 1")
		r.expect()
		r.run(r.now + 1)
	}
}

// TestOldSegments: what a network repeats changes nothing; what may mean that an
// acknowledgement was lost is answered by one.
func TestOldSegments(t *testing.T) {
	for _, c := range []struct {
		from, old string
		sends     []string
	}{
		{"SYN-SENT", "ACK 1 ack 1", nil},
		{"SYN-SENT", "ACK 9 ack 9", []string{"RST 9"}}, // a half-open connection of an earlier life, RFC 9293, 3.5.1
		{"SYN-SENT", "SYN-ACK 0 ack 9", []string{"RST 9"}},
		{"SYN-RECV", "SYN 0", []string{"SYN-ACK 0 ack 1 again"}},
		{"SYN-RECV", "ACK 1", nil},
		{"SYN-RECV", "ACK 1 ack 9", []string{"RST 9"}},
		{"ESTAB", "SYN 0", []string{"ACK 1 ack 1"}},
		{"ESTAB", "SYN-ACK 0 ack 1", []string{"ACK 1 ack 1"}},
		{"ESTAB", "ACK 1", nil},
		{"ESTAB", "ACK 1 ack 1", nil},
		{"ESTAB", "ACK 0 ack 1 probe", []string{"ACK 1 ack 1"}},
		{"ESTAB", "ACK 1:5 ack 9", nil}, // acknowledges what was never sent
		{"FIN-WAIT-1", "SYN-ACK 0 ack 1", []string{"ACK 2 ack 1"}},
		{"FIN-WAIT-2", "ACK 1 ack 1", nil},
		{"CLOSE-WAIT", "ACK-FIN 1 ack 1", []string{"ACK 1 ack 2"}},
		{"CLOSING", "ACK-FIN 1 ack 1", []string{"ACK 2 ack 2"}},
		{"LAST-ACK", "ACK-FIN 1 ack 1", []string{"ACK 2 ack 2"}},
		{"TIME-WAIT", "ACK-FIN 1 ack 2", []string{"ACK 2 ack 2"}},
		{"TIME-WAIT", "ACK 1 ack 2", []string{"ACK 2 ack 2"}},
		{"TIME-WAIT", "ACK 2 ack 2", nil},
		{"CLOSED", "ACK-FIN 1 ack 1", nil},
	} {
		t.Run(c.from+" "+c.old, func(t *testing.T) {
			r := enter(t, c.from)
			for range 3 {
				r.feed(c.old)
				r.expect(c.sends...)
				require.Equal(t, c.from, r.StateName())
			}
		})
	}
}

// TestTimeWaitAnswersData: the peer's last data and FIN arrived, their
// acknowledgement did not; the peer repeats the first of it, without the FIN.
func TestTimeWaitAnswersData(t *testing.T) {
	r := enter(t, "FIN-WAIT-2")
	r.feed("ACK 1:101 ack 2", "ACK-FIN 101:201 ack 2")
	require.Equal(t, "TIME-WAIT", r.StateName())
	r.out = nil
	r.feed("ACK 1:101 ack 2")
	r.expect("ACK 2 ack 202")
}

// TestTimeWaitStartsAnew with a FIN that comes again.
func TestTimeWaitStartsAnew(t *testing.T) {
	r := enter(t, "TIME-WAIT")
	r.run(50 * time.Second)
	r.feed("ACK-FIN 1 ack 2")
	r.run(100 * time.Second)
	require.Equal(t, "TIME-WAIT", r.StateName())
	r.run(110 * time.Second)
	require.Equal(t, "CLOSED", r.StateName())
}

// TestOrphans: what the program has closed goes away although the peer never does.
func TestOrphans(t *testing.T) {
	for _, c := range []struct {
		from string
		gone time.Duration
	}{
		{"FIN-WAIT-2", FinTimeout},
		{"FIN-WAIT-1", Budget(orphanRetries)},
		{"LAST-ACK", Budget(orphanRetries)},
		{"CLOSING", Budget(orphanRetries)},
		{"TIME-WAIT", TimeWait},
	} {
		t.Run(c.from, func(t *testing.T) {
			r := enter(t, c.from)
			closes(r)
			r.run(c.gone - ms)
			require.Equal(t, c.from, r.StateName())
			r.run(c.gone + ms)
			require.Equal(t, "CLOSED", r.StateName())
		})
	}
}

// TestOrphanReachesFinWait2 by the acknowledgement of its FIN.
func TestOrphanReachesFinWait2(t *testing.T) {
	r := enter(t, "FIN-WAIT-1")
	closes(r)
	r.run(100 * ms)
	r.feed("ACK 1 ack 2")
	require.Equal(t, "FIN-WAIT-2", r.StateName())
	r.run(100*ms + FinTimeout)
	require.Equal(t, "CLOSED", r.StateName())
}

// TestHalfCloseIsNoOrphan: with the reading half open, the peer may take hours.
func TestHalfCloseIsNoOrphan(t *testing.T) {
	r := enter(t, "FIN-WAIT-2")
	require.Equal(t, Never, r.Next())
	r.run(time.Hour)
	r.feed("ACK-FIN 1:6 ack 2")
	require.Equal(t, stream(1, 5), r.outcome())
	require.Equal(t, "EOF", r.outcome())
}

// TestRepeatedSYNACK after the connection opened: our acknowledgement was lost.
func TestRepeatedSYNACK(t *testing.T) {
	r := enter(t, "ESTAB")
	r.put(5)
	r.expect("ACK 1:6 ack 1")
	r.feed("SYN-ACK 0 ack 1")
	r.expect("ACK 6 ack 1")
}

func TestNothingComesBehindAFIN(t *testing.T) {
	r := enter(t, "CLOSE-WAIT")
	r.feed("ACK 2:7 ack 1", "ACK-FIN 7 ack 1")
	require.Equal(t, "EOF", r.outcome())
	require.Equal(t, "CLOSE-WAIT", r.StateName())

	r = enter(t, "ESTAB")
	r.feed("ACK 3:7 ack 1", "ACK-FIN 1:2 ack 1")
	require.Equal(t, stream(1, 1), r.outcome())
	require.Equal(t, "EOF", r.outcome())
}
