package conditions_test

import (
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/netsim"
	"github.com/seed-5a7f77c4/deadair/scenarios/conditions"
)

// publish sends a message every 5 s, as an MQTT client with a keep-alive of 30 s,
// for no longer than limit. When it has been quiet for 30 s it pings, and half of
// that later it gives up. What quiet means is the question: nothing heard, or
// nothing heard and nothing sent. It returns when it noticed and what it had sent.
func publish(c net.Conn, sendingCounts bool, limit time.Duration) (noticed time.Duration, messages, pings int) {
	const keepAlive = 30 * time.Second
	heard := make(chan struct{})
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		for b := make([]byte, 100); ; {
			if _, err := c.Read(b); err != nil {
				return
			}
			select {
			case heard <- struct{}{}:
			case <-stop:
				return
			}
		}
	}()
	start := time.Now()
	alive := start
	pinged := false
	tick := time.NewTicker(5 * time.Second)
	defer tick.Stop()
	for time.Since(start) < limit {
		select {
		case <-heard:
			alive, pinged = time.Now(), false
		case <-tick.C:
			switch idle := time.Since(alive); {
			case idle >= keepAlive*3/2:
				return time.Since(start), messages, pings
			case idle >= keepAlive && !pinged:
				c.Write([]byte("ping"))
				pings++
				pinged = true
			}
			if _, err := c.Write([]byte("message")); err != nil {
				return time.Since(start), messages, pings
			}
			messages++
			if sendingCounts {
				alive = time.Now()
			}
		}
	}
	return 0, messages, pings
}

// eclipse-paho/paho.golang#288, cockroachdb/cockroach#84289: what the broker sends
// is lost. A client that counts what it hears pings after 30 s and notices after
// 45; one whose own messages reset its timer publishes on, here for a quarter of
// an hour, to a broker that hears all of it.
func TestOneWayLoss(t *testing.T) {
	for _, tc := range []struct {
		name                     string
		sendingCounts            bool
		noticed                  time.Duration
		messages, pings, arrived int
	}{
		{"counts what it hears", false, 45 * time.Second, 8, 1, 8*len("message") + len("ping")},
		{"its own messages reset the timer", true, 0, 180, 0, 180 * len("message")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			netsim.Run(t, func(t *testing.T, n *netsim.Network) {
				app, broker := n.Host("app"), n.Host("broker")
				l := listen(t, broker, ":1883")
				defer l.Close()
				arrived := make(chan int, 1)
				go func() { // the broker answers a ping, which is not to arrive
					c, err := l.Accept()
					if err != nil {
						return
					}
					defer c.Close()
					sum := 0
					for b := make([]byte, 100); ; {
						k, err := c.Read(b)
						if sum += k; err != nil {
							break
						}
					}
					arrived <- sum
				}()
				c := dial(t, app, "broker:1883")
				f := conditions.OneWayLoss(n.Path(broker, app))
				noticed, messages, pings := publish(c, tc.sendingCounts, 15*time.Minute)
				assert.Equal(t, tc.noticed, noticed.Round(ms))
				assert.Equal(t, tc.messages, messages)
				assert.Equal(t, tc.pings, pings)
				f.Undo()
				c.CloseWrite()
				assert.Equal(t, tc.arrived, <-arrived, "nothing that the client sent was lost")
			}, tenms)
		})
	}
}

// hashicorp/yamux#142: for 15 s nothing passes from the client to the server. The
// writer times out; after the healing the reader gets all that was written, or,
// if the writer closed its connection meanwhile, an error: never neither.
func TestSqueezedFor(t *testing.T) {
	for name, closes := range map[string]bool{"the writer stays": false, "the writer gives up": true} {
		t.Run(name, func(t *testing.T) {
			netsim.Run(t, func(t *testing.T, n *netsim.Network) {
				app, api := n.Host("app"), n.Host("api")
				l := listen(t, api, ":80")
				defer l.Close()
				type ending struct {
					got int
					err error
					at  time.Duration
				}
				ends := make(chan ending, 1)
				start := time.Now()
				go func() {
					c, err := l.Accept()
					if err != nil {
						return
					}
					defer c.Close()
					var e ending
					for b := make([]byte, 32<<10); e.err == nil; {
						c.SetReadDeadline(time.Now().Add(time.Minute))
						var k int
						k, e.err = c.Read(b)
						e.got += k
						if k > 0 {
							e.at = time.Since(start)
						}
					}
					ends <- e
				}()
				c := dial(t, app, "api:80")
				time.Sleep(50 * ms) // the handshake is over at both ends
				conditions.SqueezedFor(n, n.Path(app, api), 15*time.Second)
				c.SetWriteDeadline(time.Now().Add(10 * time.Second))
				var k int
				var err error
				took := after(func() { k, err = c.Write(make([]byte, 1<<20)) })
				assert.ErrorIs(t, err, os.ErrDeadlineExceeded)
				assert.Equal(t, 10*time.Second, took.Round(ms))
				assert.Equal(t, 64<<10, k, "the send buffer")
				if closes {
					require.NoError(t, c.SetLinger(0))
					c.Close()
				}
				e := <-ends
				if closes {
					assert.Zero(t, e.got)
					assert.ErrorIs(t, e.err, syscall.ECONNRESET, "the RST was lost too; the reader's keep-alive probe is answered by one")
				} else {
					assert.Equal(t, k, e.got)
					assert.Greater(t, e.at, 15*time.Second)
					assert.Less(t, e.at, 30*time.Second, "the next retransmission brings it")
				}
			}, tenms, small)
		})
	}
}
