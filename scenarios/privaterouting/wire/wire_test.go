package wire

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-5a7f77c4/deadair/selection/forward"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// samples has each message once, with every field set.
var samples = []Message{
	&Hello{Version: 2, Name: "p1"},
	&SessionRequest{Relay: "r", Password: "secret"},
	&SessionGranted{Session: 7, Version: 2},
	&Forward{Session: 7, Command: []byte("PING")},
	&ForwardAnswer{Answer: []byte("PONG")},
	&RelayForward{Command: []byte("PING")},
	&RelayAnswer{Answer: []byte("PONG")},
	&NewQueue{Queue: "q"},
	&Subscribe{Queue: "q"},
	&Secure{Queue: "q", Key: "k"},
	&Send{Queue: "q", Key: "k", ID: 1 << 40, Body: []byte{0, 1, 2}},
	&PutLink{Link: "l", Data: []byte("data")},
	&GetLink{Link: "l"},
	&LinkData{Data: []byte("data")},
	&Delivery{Queue: "q", ID: 9, Body: []byte("body")},
	&Done{}, &Ping{}, &Pong{},
	&Failure{Origin: forward.Proxy, Code: forward.Timeout, Detail: "detail"},
}

func TestEveryMessageSurvivesTheWire(t *testing.T) {
	for _, m := range samples {
		got, err := Decode(Encode(m))
		require.NoError(t, err, m.Tag())
		require.Equal(t, m, got)
		var b bytes.Buffer
		require.NoError(t, WriteFrame(&b, 42, m))
		correlation, got, err := ReadFrame(&b)
		require.NoError(t, err, m.Tag())
		require.EqualValues(t, 42, correlation)
		require.Equal(t, m, got)
		require.Zero(t, b.Len())
	}
}

// Each message cut off anywhere, or with a byte too many, is refused by name.
func TestWhatIsNotExactlyAMessageIsRefused(t *testing.T) {
	for _, m := range samples {
		whole := Encode(m)
		for n := range whole {
			_, err := Decode(whole[:n])
			require.ErrorIs(t, err, ErrMalformed, "%s, %d bytes", m.Tag(), n)
			if n >= 4 {
				require.ErrorContains(t, err, m.Tag())
			}
		}
		_, err := Decode(append(whole, 0))
		require.ErrorIs(t, err, ErrMalformed)
		require.ErrorContains(t, err, m.Tag()+": 1 bytes left over")
	}
	for name, b := range map[string][]byte{
		`unknown tag "NOPE"`:                 []byte("NOPE"),
		"QNEW: queue: empty":                 Encode(&NewQueue{}),
		"QNEW: queue: not UTF-8":             Encode(&NewQueue{Queue: "\xff"}),
		"FAIL: origin: 9 is not below 3":     append([]byte("FAIL\x09\x00"), 0, 0),
		"FAIL: code: 200 is not below 12":    append([]byte("FAIL\x00\xc8"), 0, 0),
		"is longer than 16384":               make([]byte, MaxMessage+1),
		"a message of 3 bytes has no tag":    []byte("PIN"),
		"PFWD: command: 65533 bytes missing": append([]byte("PFWD"), append(make([]byte, 8), 0xff, 0xff, 1, 2)...),
	} {
		_, err := Decode(b)
		require.ErrorIs(t, err, ErrMalformed, name)
		require.ErrorContains(t, err, name)
	}
}

func TestFramesThatAreNone(t *testing.T) {
	for name, tc := range map[string]struct {
		b    string
		want error
	}{
		"between frames":   {"", io.EOF},
		"half a length":    {"\x00", io.ErrUnexpectedEOF},
		"no correlation":   {"\x00\x0c123", io.ErrUnexpectedEOF},
		"no message":       {"\x00\x0c12345678", io.ErrUnexpectedEOF},
		"too short":        {"\x00\x0b12345678abc", ErrMalformed},
		"too long":         {"\xff\xff12345678", ErrMalformed},
		"an unknown thing": {"\x00\x0c12345678NOPE", ErrMalformed},
	} {
		_, _, err := ReadFrame(strings.NewReader(tc.b))
		require.ErrorIs(t, err, tc.want, name)
	}
	require.Panics(t, func() { Encode(&LinkData{Data: make([]byte, MaxMessage)}) })
}

func TestCallsAreAnsweredInAnyOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		client := NewConn(a, Events{})
		type question struct {
			correlation uint64
			m           Message
		}
		questions := make(chan question, 2)
		server := NewConn(b, Events{Message: func(_ *Conn, correlation uint64, m Message) { questions <- question{correlation, m} }})
		ended := make(chan error, 2)
		go func() { ended <- client.Serve() }()
		go func() { ended <- server.Serve() }()
		type result struct {
			m   Message
			err error
		}
		results := make(chan result, 2)
		for _, relay := range []string{"first", "second"} {
			go func() {
				m, err := client.Call(t.Context(), &SessionRequest{Relay: relay})
				results <- result{m, err}
			}()
			synctest.Wait()
		}
		q1, q2 := <-questions, <-questions
		require.NoError(t, server.Send(t.Context(), q2.correlation, &SessionGranted{Session: 2}))
		require.Equal(t, &SessionGranted{Session: 2}, (<-results).m)
		require.NoError(t, server.Send(t.Context(), q1.correlation, &SessionGranted{Session: 1}))
		require.Equal(t, &SessionGranted{Session: 1}, (<-results).m)

		// A call of a connection that dies runs into its own time-out.
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		go func() {
			m, err := client.Call(ctx, &Ping{})
			results <- result{m, err}
		}()
		<-questions
		require.NoError(t, server.Close())
		for range 2 { // one reads the other's end, the other its own
			err := <-ended
			require.True(t, Ended(err) || errors.Is(err, io.ErrClosedPipe), "%v", err)
		}
		start := time.Now()
		r := <-results
		require.ErrorIs(t, r.err, context.DeadlineExceeded)
		require.Equal(t, time.Minute, time.Since(start))
		_, err := client.Call(t.Context(), &Ping{})
		require.ErrorContains(t, err, "send PING")
	})
}

func FuzzDecode(f *testing.F) {
	for _, m := range samples {
		f.Add(Encode(m))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Decode(b)
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Fatalf("%v is not ErrMalformed", err)
			}
			return
		}
		if again := Encode(m); !bytes.Equal(again, b) {
			t.Fatalf("%q decodes to %#v, which encodes to %q", b, m, again)
		}
	})
}

func FuzzReadFrame(f *testing.F) {
	for _, m := range samples {
		var b bytes.Buffer
		WriteFrame(&b, 1, m)
		f.Add(b.Bytes())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		for {
			before := r.Len()
			_, m, err := ReadFrame(r)
			if err != nil {
				return
			}
			if m == nil || reflect.ValueOf(m).IsNil() || r.Len() >= before {
				t.Fatalf("a frame of nothing: %#v", m)
			}
		}
	})
}
