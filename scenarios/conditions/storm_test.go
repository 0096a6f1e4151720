package conditions_test

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/netsim"
	"github.com/seed-5a7f77c4/deadair/scenarios/conditions"
)

// gravitational/teleport#6889: all are reset at once and refused for 10 s.
func TestRestartStorm(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		app, api := n.Host("app"), n.Host("api")
		echo(t, listen(t, api, ":80"))
		c := dial(t, app, "api:80")
		require.NoError(t, ask(c, time.Second))
		conditions.RestartStorm(n, api, 10*time.Second, app)
		assert.ErrorIs(t, ask(c, time.Second), syscall.ECONNRESET)
		_, err := app.DialContext(t.Context(), "tcp", "api:80")
		assert.ErrorIs(t, err, syscall.ECONNREFUSED)
		time.Sleep(10 * time.Second)
		assert.NoError(t, ask(dial(t, app, "api:80"), time.Second))
	}, tenms)
}

func between(t *testing.T, want [2]int, got int) {
	t.Helper()
	assert.True(t, want[0] <= got && got <= want[1], "%d is not from %d to %d", got, want[0], want[1])
}

// A retry says how long a client waits before its k-th dial, from 1.
type retry func(k int, rng *rand.Rand) time.Duration

// everyTwoSeconds is what a bad client does.
func everyTwoSeconds(int, *rand.Rand) time.Duration { return 2 * time.Second }

// jittered doubles from 1 s to 16 s and waits any part of that.
func jittered(k int, rng *rand.Rand) time.Duration {
	return time.Duration(rng.Int64N(int64(min(time.Second<<k, 16*time.Second))))
}

// gravitational/teleport#6889: 1000 clients lose their connections in one
// instant and dial again. The dials of each 100 ms come in waves of all clients,
// or bounded and spread.
func TestStormOfAThousand(t *testing.T) {
	const clients, hosts = 1000, 20
	for _, tc := range []struct {
		name  string
		retry retry
		peak  [2]int        // of dials in 100 ms, from and to
		busy  [2]int        // so many times 100 ms in which somebody dials, from and to
		dials int           // at most
		back  time.Duration // by then all are connected
	}{
		{"waves", everyTwoSeconds, [2]int{clients, clients}, [2]int{5, 5}, 5 * clients, 10300 * ms},
		{"spread", jittered, [2]int{1, clients / 10}, [2]int{200, 270}, 5 * clients, 27 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			netsim.Run(t, func(t *testing.T, n *netsim.Network) {
				api := n.Host("api")
				hold(t, quiet{listen(t, api, ":80")})
				var at []*netsim.Host
				for i := range hosts {
					at = append(at, n.Host(fmt.Sprintf("site%02d", i)))
				}
				var conns [clients]net.Conn
				for i := range conns {
					conns[i] = dial(t, at[i%hosts], "api:80")
				}
				start := time.Now()
				conditions.RestartStorm(n, api, 10*time.Second, at...)
				bins := map[int]int{}
				dialled := make(chan time.Duration, clients)
				var connected atomic.Int32
				all := make(chan struct{})
				go func() {
					for d := range dialled {
						bins[int(d/(100*ms))]++
					}
					close(all)
				}()
				done := make(chan struct{}, clients)
				for i, c := range conns {
					n.Go(fmt.Sprintf("client %04d", i), func() {
						defer func() { done <- struct{}{} }()
						rng := rand.New(rand.NewPCG(n.Seed(), uint64(i)))
						if _, err := c.Read(make([]byte, 1)); !assert.ErrorIs(t, err, syscall.ECONNRESET) {
							return
						}
						for k := 1; ; k++ {
							time.Sleep(tc.retry(k, rng))
							dialled <- time.Since(start)
							again, err := at[i%hosts].Dial("tcp", "api:80")
							if err == nil {
								connected.Add(1)
								again.Close()
								return
							}
							if !assert.ErrorIs(t, err, syscall.ECONNREFUSED) {
								return
							}
						}
					})
				}
				for range conns {
					<-done
				}
				last := time.Since(start)
				close(dialled)
				<-all
				peak, sum := 0, 0
				for _, k := range bins {
					peak, sum = max(peak, k), sum+k
				}
				assert.EqualValues(t, clients, connected.Load())
				between(t, tc.peak, peak)
				between(t, tc.busy, len(bins))
				assert.LessOrEqual(t, sum, tc.dials)
				assert.LessOrEqual(t, last, tc.back)
			}, tenms)
		})
	}
}
