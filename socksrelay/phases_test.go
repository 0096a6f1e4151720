package socksrelay_test

import (
	"context"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/blackhole"
	"github.com/seed-5a7f77c4/deadair/netsim"
	"github.com/seed-5a7f77c4/deadair/socksrelay"
)

// TestTheClosePhaseMeetsEachEffect holds what a client sees that has ended its own stream, whose server then ends its
// own: on a relay without faults, the end of the stream at once.
func TestTheClosePhaseMeetsEachEffect(t *testing.T) {
	const patience = 50 * time.Second
	for _, tc := range []struct {
		name string
		do   blackhole.Effect
		on   blackhole.Direction
		want error
		took time.Duration
	}{
		{"FIN", blackhole.Close(), blackhole.Both, io.EOF, 0},
		{"FIN one way", blackhole.HalfClose(), blackhole.Down, io.EOF, 0},
		{"RST", blackhole.Reset(), blackhole.Both, syscall.ECONNRESET, 0},
		{"silence, the end lost", blackhole.Swallow(), blackhole.Both, os.ErrDeadlineExceeded, patience},
		{"silence, the server's end lost", blackhole.Swallow(), blackhole.Down, io.EOF, 0}, // both ended: nothing to hide
		{"silence, the end held", blackhole.Stall(), blackhole.Both, os.ErrDeadlineExceeded, patience},
		{"silence, the client's end held", blackhole.Stall(), blackhole.Up, os.ErrDeadlineExceeded, patience},
		{"delay", blackhole.Delay(10 * time.Second), blackhole.Down, io.EOF, 10 * time.Second},
		{"delay both ways", blackhole.Delay(10 * time.Second), blackhole.Both, io.EOF, 20 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			fault := &socksrelay.Fault{Phase: socksrelay.Close, Do: tc.do, On: tc.on}
			simulated(t, fault, func(t *testing.T, c *netsim.Conn) {
				pingPong(t, c)
				require.Zero(t, fault.Hits(), "data passes")
				start := time.Now()
				require.NoError(t, c.CloseWrite())
				c.SetReadDeadline(start.Add(patience))
				_, err := c.Read(make([]byte, 1))
				require.ErrorIs(t, err, tc.want)
				assert.InDelta(t, tc.took, time.Since(start), float64(time.Second))
				assert.Positive(t, fault.Hits())
			})
		})
	}
}

// TestAFaultOfPhaseDialActsOnWhatTheClientSees holds what the phase is: the relay dials at once whatever the fault is,
// and what the fault touches is the first byte of the reply, or the connection of the client.
func TestAFaultOfPhaseDialActsOnWhatTheClientSees(t *testing.T) {
	const patience = 50 * time.Second
	for _, tc := range []struct {
		do   blackhole.Effect
		want error
		took time.Duration
	}{
		{blackhole.Delay(10 * time.Second), nil, 10 * time.Second},
		{blackhole.Stall(), os.ErrDeadlineExceeded, patience},
		{blackhole.Swallow(), os.ErrDeadlineExceeded, patience},
		{blackhole.Close(), io.EOF, 0},
	} {
		t.Run(tc.do.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				start := time.Now()
				dialled := make(chan time.Time, 1)
				fault := &socksrelay.Fault{Phase: socksrelay.Dial, Do: tc.do, On: blackhole.Down}
				l := serve(t, socksrelay.Config{Faults: []*socksrelay.Fault{fault}, Dial: func(ctx context.Context, n, a string) (net.Conn, error) {
					dialled <- time.Now()
					return echo(ctx, n, a)
				}})
				c, err := l.dial(t.Context(), "", "")
				require.NoError(t, err)
				defer c.Close()
				c.SetDeadline(start.Add(patience))
				_, err = c.Write([]byte("\x05\x01\x00"))
				require.NoError(t, err)
				_, err = io.ReadFull(c, make([]byte, 2))
				require.NoError(t, err)
				_, err = c.Write([]byte("\x05\x01\x00\x03\x01r\x00\x50"))
				require.NoError(t, err)
				_, err = io.ReadFull(c, make([]byte, 10))
				if tc.want == nil {
					require.NoError(t, err)
				} else {
					require.ErrorIs(t, err, tc.want)
				}
				assert.Equal(t, tc.took, time.Since(start))
				assert.Equal(t, start, <-dialled, "the dial itself is not held up")
				assert.EqualValues(t, 1, fault.Hits())
			})
		})
	}
}

// TestADialThatWaitsIsTheDialFunctions is the other half: a dial that is itself slow until its time is over.
func TestADialThatWaitsIsTheDialFunctions(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := serve(t, socksrelay.Config{DialTimeout: 10 * time.Second, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}})
		start := time.Now()
		_, err := dial(l, nil, "r:1")
		require.ErrorContains(t, err, "TTL expired")
		assert.Equal(t, 10*time.Second, time.Since(start))
	})
}
