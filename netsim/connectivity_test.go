package netsim_test

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/netsim"
)

// seen is a state as text: when it was so, when it was told, what was up.
func seen(told time.Duration, c netsim.Connectivity) string {
	s := fmt.Sprintf("%v/%v", c.At.Round(ms), told.Round(ms))
	for _, m := range []struct {
		on   bool
		name string
	}{{c.Satisfied, "satisfied"}, {c.Wired, "wired"}, {c.Wireless, "wifi"}, {c.Cellular, "cell"}, {c.Tailnet, "tail"}, {c.Expensive, "expensive"}} {
		if m.on {
			s += " " + m.name
		}
	}
	return s
}

// diary is what several goroutines write down.
type diary struct {
	mu    sync.Mutex
	lines []string
}

func (d *diary) add(line string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, line)
}

func (d *diary) read() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.lines)
}

func TestConnectivityFeed(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		h := newHouse(t, n)
		var told diary
		stop := h.phone.WatchConnectivity(300*ms, func(c netsim.Connectivity) { told.add(seen(n.Now(), c)) })
		time.Sleep(ms)
		require.Equal(t, []string{"0s/0s satisfied wifi cell tail"}, told.read(), "the present state at once")
		time.Sleep(999 * ms)
		h.wifi.Down()
		time.Sleep(100 * ms)
		h.wifi.Up() // within the delay
		h.phone.SetExpensive(true)
		h.phone.SetExpensive(true) // is no news
		h.cell.Up()                // nor is this
		h.wifi.SetAddresses(phoneLAN)
		require.Len(t, told.read(), 1)
		time.Sleep(time.Second)
		h.wifi.Down()
		h.cell.SetAddresses()
		time.Sleep(time.Second)
		dock := h.phone.Interface("dock", netsim.Wired)
		time.Sleep(time.Second)
		require.Equal(t, []string{
			"0s/0s satisfied wifi cell tail",
			"1s/1.3s satisfied cell tail",
			"1.1s/1.4s satisfied wifi cell tail",
			"1.1s/1.4s satisfied wifi cell tail expensive",
			"2.1s/2.4s satisfied cell tail expensive",
			"2.1s/2.4s cell tail expensive", // up, without an address
			"3.1s/3.4s satisfied wired cell tail expensive",
		}, told.read())
		require.Equal(t, map[string][]netip.Addr{"dock": dock.Addrs(), "cell": nil, "tail": h.tail.Addrs()}, h.phone.Connectivity().Addrs)
		dock.Down()
		time.Sleep(100 * ms)
		stop()
		stop()
		dock.Up()
		time.Sleep(time.Minute)
		require.Len(t, told.read(), 7, "nothing after stop, not even what was under way")
	})
}

// TestConnectivityCallsComeOneAfterAnother, each in an instant of its own, in the
// order of the changes, however slow the program is.
func TestConnectivityCallsComeOneAfterAnother(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		h := newHouse(t, n)
		var told diary
		at := make(chan time.Duration, 9)
		var inside atomic.Bool
		h.phone.WatchConnectivity(ms, func(c netsim.Connectivity) {
			assert.False(t, inside.Swap(true))
			at <- n.Now()
			if len(told.read()) == 1 {
				time.Sleep(time.Second)
			}
			told.add(strings.TrimPrefix(seen(0, c), "10ms/0s "))
			inside.Store(false)
		})
		time.Sleep(10 * ms)
		for range 3 {
			h.wifi.Down()
			h.wifi.Up()
		}
		time.Sleep(10 * time.Second)
		without, with := "satisfied cell tail", "satisfied wifi cell tail"
		require.Equal(t, []string{without, with, without, with, without, with}, told.read()[1:])
		for last := <-at; len(at) > 0; {
			now := <-at
			require.Greater(t, now, last)
			last = now
		}
	})
}

func TestConnectivityOfAHostThatSleepsOrDies(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		h := newHouse(t, n)
		var told diary
		watch := func() {
			h.phone.WatchConnectivity(100*ms, func(c netsim.Connectivity) { told.add(seen(n.Now(), c)) })
			time.Sleep(time.Second)
		}
		watch()
		h.phone.Pause()
		h.wifi.Down()
		h.wifi.Up()
		time.Sleep(59 * time.Second)
		require.Len(t, told.read(), 1)
		h.phone.Resume()
		time.Sleep(ms)
		require.Equal(t, []string{"1s/1m0s satisfied cell tail", "1s/1m0s satisfied wifi cell tail"}, told.read()[1:])

		h.wifi.Down()
		h.phone.Crash()
		time.Sleep(time.Second)
		require.Len(t, told.read(), 3, "its program is no more")
		h.phone.Restart()
		watch()
		require.Len(t, told.read(), 4)
		h.wifi.Up()
		require.NoError(t, n.Close())
		time.Sleep(time.Second)
		require.Len(t, told.read(), 4)
	})
}

// TestDialGoesOnOverAnotherInterface is what a program does with the feed.
func TestDialGoesOnOverAnotherInterface(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		h := newHouse(t, n, netsim.WhenGone(netsim.Abort))
		web := h.web.Addr().String()
		h.wifi.Cut()
		changed := make(chan netsim.Connectivity, 9)
		h.phone.WatchConnectivity(500*ms, func(c netsim.Connectivity) { changed <- c })
		<-changed
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		n.After(2*time.Second, "leave the house", h.wifi.Down)
		d := after(func() {
			_, err := h.phone.DialContext(ctx, "tcp", web+":7")
			require.ErrorIs(t, err, syscall.ECONNABORTED)
		})
		within(t, 2*time.Second, d)
		within(t, 500*ms, after(func() { require.False(t, (<-changed).Wireless) }))
		require.Equal(t, h.cell.Addrs()[0].String(), from(t, h.phone, web))
	})
}
