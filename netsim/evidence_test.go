package netsim_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/clock"
	"github.com/seed-5a7f77c4/deadair/netsim"
)

// inChild runs the test that calls it again, in a process of its own in which it
// may fail, and gives what that says. There, it calls f and gives "".
func inChild(t *testing.T, f func(), flags ...string) string {
	t.Helper()
	which := "NETSIM_TEST_CHILD"
	if os.Getenv(which) == t.Name() {
		f()
		return ""
	}
	child := exec.Command(os.Args[0], append(flags, "-test.run=^"+t.Name()+"$")...)
	child.Env = append(os.Environ(), which+"="+t.Name())
	text, err := child.CombinedOutput()
	require.Error(t, err, "%s", text)
	return string(text)
}

// ties are what equal instants cost.
var ties = regexp.MustCompile(`\b10\.0000\d+ms`)

// TestTraceAsText is a trace with one line of each sort.
func TestTraceAsText(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		require.Equal(t, time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), n.Trace().Start().UTC())
		a, b := n.Host("a"), n.Host("b")
		n.Notef("begins at %d", 1)
		client, server := pair(t, a, b)
		require.Same(t, a, client.Host())
		require.Same(t, b, server.Host())
		n.Apply(netsim.Rule{Name: "once", Kind: netsim.Data, First: 1, Verdict: drop})
		n.Apply(netsim.Rule{Name: "twice", Kind: netsim.Datagram, Verdict: netsim.Verdict{Duplicate: 1}})
		write(t, client, "hello")
		readN(t, server, 5)
		udp := packetConn(t, a, ":9")
		udp.WriteTo([]byte("x"), udpAddr(b, 9))
		n.Link(a, b).Reset()
		time.Sleep(time.Second)
		lines := []string{
			"   0.000000001  -- begins at 1\n",
			"  a → b  tcp SYN seq 0 ack 0  after 10ms  [a>b:45149#1]\n",
			"-- apply rule once",
			"a ✗ b  tcp DATA 5B seq 1 ack 1  lost: dropped by rule once  [a>b:45149#1]",
			"a → b  tcp DATA 5B seq 1 ack 1 again  after 10ms  [a>b:45149#1]",
			"a → b  udp DGRAM 1B copy  after 10ms, port closed  [a>b:9/udp#1]",
			"b → a  icmp UNREACHABLE  after 10ms, connection refused  [a>b:9/udp#1]",
			"-- a: connection reset by peer  [a>b:45149#1]",
		}
		port := portOf(server.LocalAddr())
		var text bytes.Buffer
		k, err := n.Trace().WriteTo(&text)
		require.NoError(t, err)
		require.EqualValues(t, text.Len(), k)
		for _, line := range lines {
			require.Contains(t, ties.ReplaceAllString(text.String(), "10ms"), strings.ReplaceAll(line, "45149", port))
		}
		events := n.Trace().Events()
		require.Equal(t, len(events), strings.Count(text.String(), "\n"))
		tail := n.Trace().Tail(3)
		require.True(t, strings.HasPrefix(tail, fmt.Sprintf("  … %d events before\n", len(events)-3)), tail)
		require.True(t, strings.HasSuffix(text.String(), strings.SplitN(tail, "\n", 2)[1]))
		require.Equal(t, text.String(), n.Trace().Tail(len(events)))

		// As JSON, an object a line, with names for what has names.
		text.Reset()
		require.NoError(t, n.Trace().WriteJSON(&text))
		d := json.NewDecoder(&text)
		for _, e := range events {
			var o map[string]any
			require.NoError(t, d.Decode(&o))
			require.EqualValues(t, e.At, o["at"])
			require.Equal(t, e.Fate.String(), o["fate"])
			if e.Fate != netsim.Note {
				require.Equal(t, e.Kind.String(), o["kind"])
				require.Equal(t, e.Proto.String(), o["proto"])
				require.Equal(t, e.Src.String(), o["src"])
			}
		}
		require.False(t, d.More())
		require.Equal(t, "net", netsim.Proto(0).String())
	}, tenms)
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("disk full") }

// TestTraceLimitAndPayloads: beyond the limit events count and enter the hash.
func TestTraceLimitAndPayloads(t *testing.T) {
	hashes := map[int]string{}
	for _, limit := range []int{5, 1000} {
		netsim.Run(t, func(t *testing.T, n *netsim.Network) {
			client, server := pair(t, n.Host("a"), n.Host("b"))
			write(t, client, "hello")
			readN(t, server, 5)
			udp := packetConn(t, n.Lookup("a"), ":9")
			udp.WriteTo([]byte("data"), udpAddr(n.Lookup("b"), 9))
			time.Sleep(time.Second)
			hashes[limit] = n.Trace().Hash()
			events := n.Trace().Events()
			require.Len(t, events, min(limit, n.Trace().Len()))
			var text bytes.Buffer
			n.Trace().WriteTo(&text)
			require.Equal(t, limit == 5, strings.Contains(text.String(), fmt.Sprintf("… and %d more events beyond the trace's limit", n.Trace().Len()-5)))
			data, ok := n.Trace().First(isData(""))
			require.True(t, ok)
			require.Equal(t, "hel", string(data.Payload))
			if limit > 5 {
				gram, _ := n.Trace().First(func(e netsim.Event) bool { return e.Kind == netsim.Datagram })
				require.Equal(t, "dat", string(gram.Payload))
			}
			_, ok = n.Trace().First(func(e netsim.Event) bool { return e.From == "nobody" })
			require.False(t, ok)
			require.ErrorContains(t, n.Trace().WriteJSON(fullDisk{}), "disk full")
			_, err := n.Trace().WriteTo(fullDisk{})
			require.ErrorContains(t, err, "disk full")
		}, netsim.TraceLimit(limit), netsim.Payloads(3))
	}
	require.Equal(t, hashes[5], hashes[1000])
}

func TestSocketTable(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a", netsim.Addr("192.0.2.1")), n.Host("b", netsim.Addr("192.0.2.2"), netsim.HostBacklog(9))
		listen(t, b, ":80")
		listen(t, b, "192.0.2.2:25")
		packetConn(t, b, ":53")
		_, err := (&netsim.Dialer{Host: a, LocalAddr: &net.UDPAddr{Port: 1053}}).Dial("udp", "b:53")
		require.NoError(t, err)
		c, err := (&netsim.Dialer{Host: a, LocalAddr: &net.TCPAddr{Port: 1080}}).Dial("tcp", "b:80")
		require.NoError(t, err)
		time.Sleep(ms)
		n.Link(a, b).Cut()
		write(t, c, "hello")
		time.Sleep(ms)
		want := `
HOST  PROTO  STATE   RECV-Q  SEND-Q  LOCAL           REMOTE          FLOW
a     udp    ESTAB   0       0       192.0.2.1:1053  192.0.2.2:53
a     tcp    ESTAB   0       5       192.0.2.1:1080  192.0.2.2:80    a>b:80#1
b     tcp    LISTEN  0       9       192.0.2.2:25    *
b     udp    UNCONN  0       0       [::]:53         *
b     tcp    LISTEN  1       9       [::]:80         *
b     tcp    ESTAB   0       0       192.0.2.2:80    192.0.2.1:1080  a>b:80#1
`
		require.Equal(t, want[1:], n.Sockets().String())
		require.Equal(t, n.Sockets()[2:], b.Sockets())
		require.Equal(t, "b tcp LISTEN 0 9 192.0.2.2:25 *", n.Sockets()[2].String())
	})
}

// TestFailedRunShowsAndLeavesItsTrace.
func TestFailedRunShowsAndLeavesItsTrace(t *testing.T) {
	dir := t.TempDir()
	text := inChild(t, func() {
		netsim.Run(t, func(t *testing.T, n *netsim.Network) {
			pair(t, n.Host("a"), n.Host("b"))
			t.Error("it went wrong")
		}, netsim.Seed(7), netsim.Artifacts(func(dir string, n *netsim.Network) error {
			return os.WriteFile(filepath.Join(dir, "seed.txt"), fmt.Append(nil, n.Seed()), 0o600)
		}, func(string, *netsim.Network) error { return errors.New("no picture today") }))
	}, "-test.artifacts", "-test.outputdir="+dir)
	if text == "" {
		return
	}
	for _, want := range []string{
		"it went wrong", "the end of the trace (3 events, hash ", "a → b  tcp SYN", "DEADAIR_SEED=0x7 go test -run", "no picture today",
	} {
		require.Contains(t, text, want)
	}
	left := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, f os.DirEntry, err error) error {
		if err == nil && !f.IsDir() {
			b, _ := os.ReadFile(path)
			left[f.Name()] = string(b)
		}
		return err
	}))
	require.Equal(t, 3, strings.Count(left["trace.txt"], "\n"))
	require.Equal(t, 3, strings.Count(left["trace.jsonl"], `"fate":"delivered"`))
	require.Equal(t, "7", left["seed.txt"])
}

func TestRunWhoseFaultMissedFails(t *testing.T) {
	text := inChild(t, func() {
		netsim.Run(t, func(t *testing.T, n *netsim.Network) { n.Link(n.Host("a"), n.Host("b")).Cut() })
	})
	if text != "" {
		require.Contains(t, text, "netsim: cut a-b never bit")
	}
}

// TestCheckReplayShowsWhereRunsPart.
func TestCheckReplayShowsWhereRunsPart(t *testing.T) {
	netsim.CheckReplay(t, 2, func(t *testing.T, n *netsim.Network) { pair(t, n.Host("a"), n.Host("b")) })
	text := inChild(t, func() {
		netsim.CheckReplay(t, 20, func(t *testing.T, n *netsim.Network) {
			client, _ := pair(t, n.Host("a"), n.Host("b"))
			write(t, client, strings.Repeat("x", 1+rand.IntN(1000)))
			time.Sleep(time.Second)
		})
	})
	if text == "" {
		return
	}
	for _, want := range []string{"parts from run 1 at event 4:", "  both ", "SYN-ACK", "  one  ", "  two  ", "DATA"} {
		require.Contains(t, text, want)
	}
}

func TestCheckReplayNeedsTwoRuns(t *testing.T) {
	if text := inChild(t, func() { netsim.CheckReplay(t, 1, nil) }); text != "" {
		require.Contains(t, text, "netsim: CheckReplay(1): two runs at least")
	}
}

func TestParting(t *testing.T) {
	e := func(at int) netsim.Event { return netsim.Event{At: time.Duration(at), Fate: netsim.Note, Why: "x"} }
	require.Contains(t, netsim.Parting([]netsim.Event{e(1), e(2)}, []netsim.Event{e(1)}), "at event 2:\n  both")
	require.Contains(t, netsim.Parting([]netsim.Event{e(1)}, []netsim.Event{e(1), e(2)}), "(no more events)")
	require.Equal(t, "beyond what the traces keep", netsim.Parting([]netsim.Event{e(1)}, []netsim.Event{e(1)}))
}

func TestOptionsOfARun(t *testing.T) {
	start := time.Date(2031, 5, 6, 7, 8, 9, 0, time.UTC)
	before := runtime.GOMAXPROCS(0)
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		require.EqualValues(t, 99, n.Seed())
		require.Equal(t, start, time.Now().UTC())
		require.Equal(t, start, n.Trace().Start().UTC())
		require.Equal(t, 1, runtime.GOMAXPROCS(0))
	}, netsim.Seed(99), netsim.StartAt(start), netsim.Strict())
	require.Equal(t, before, runtime.GOMAXPROCS(0))
	err := netsim.Bubble(t, func(t *testing.T, n *netsim.Network) { time.Sleep(time.Hour) }, netsim.Clock(clock.Budget(time.Minute)))
	require.ErrorIs(t, err, clock.ErrBudget)
	require.ErrorContains(t, netsim.Bubble(t, func(t *testing.T, n *netsim.Network) {
		n.Link(n.Host("a"), n.Host("b")).Cut()
		panic("oh")
	}), "oh")
}

// TestBacklogOfANetwork is the default of its hosts' listeners.
func TestBacklogOfANetwork(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b")
		l := listen(t, b, ":7")
		d := &netsim.Dialer{Host: a, Timeout: time.Second / 2}
		_, err := d.Dial("tcp", "b:7")
		require.NoError(t, err)
		_, err = d.Dial("tcp", "b:7")
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.Equal(t, 1, n.Trace().Count(func(e netsim.Event) bool { return e.Why == "b: backlog full, SYN dropped" }))
		l.SetBacklog(1)
		_, err = d.Dial("tcp", "b:7")
		require.NoError(t, err)
	}, netsim.Backlog(0))
}

// TestWeatherOfAPath can be asked for; Heal undoes one direction.
func TestWeatherOfAPath(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a"), n.Host("b")
		require.Equal(t, 10*ms, n.Path(a, b).Conditions().Latency)
		n.Path(a, b).SetConditions(netsim.LTE)
		require.Equal(t, netsim.LTE, n.Path(a, b).Conditions())
		require.Equal(t, 10*ms, n.Path(b, a).Conditions().Latency)
		n.Path(a, b).SetConditions(netsim.Perfect)
		there, back := n.Path(a, b).Cut().MayMiss(), n.Path(b, a).Cut().MayMiss()
		n.Path(a, b).Unreach().MayMiss()
		n.Path(a, b).Heal()
		from, to := packetConn(t, a, ":9"), packetConn(t, b, ":9")
		from.WriteTo([]byte("x"), udpAddr(b, 9))
		require.Equal(t, []string{"x"}, drain(t, to, time.Second))
		to.WriteTo([]byte("y"), udpAddr(a, 9))
		require.Empty(t, drain(t, from, time.Second))
		require.Equal(t, []int{0, 1}, []int{there.Hits(), back.Hits()})
	}, tenms)
}
