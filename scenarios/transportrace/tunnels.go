package transportrace

import (
	"fmt"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/netsim"
	"github.com/seed-5a7f77c4/deadair/scenarios"
)

// tunnelStories are about the relay's tunnels.
func tunnelStories() []story {
	return []story{
		{ID: "TR-20", Title: "sixteen tunnels held by orphans, freed by the sweep; a clean close frees one at once", Play: orphans},
	}
}

// tunnels opens that many tunnels from a host, each with its hello.
func (w *World) tunnels(host *netsim.Host, n int) {
	for range n {
		c, _, err := websocket.Dial(w.ctx, Relay, w.dialing(host)) // without ready=2
		require.NoError(w, err)
		require.NoError(w, send(w.ctx, c, message{Type: "hello", Secret: secret, Token: token}))
		answer, err := receive(w.ctx, c)
		require.NoError(w, err)
		require.Equal(w, Welcome, answer.Type)
	}
}

func orphans(p *scenarios.Play, s Subject) {
	w := NewWorld(p, Setup{Relay: quick})
	lost := p.Net.Host("lost")
	w.tunnels(lost, maxTunnels-1)
	phone := w.Phone(s, RelayOnly)
	_, ok := w.connect(phone, 5*time.Second)
	require.True(p, ok, "the last tunnel")
	require.Equal(p, maxTunnels, w.Relay.Open())
	tablet := w.Phone(s, RelayOnly)
	tablet.Start()
	time.Sleep(2 * time.Second)
	require.NotEmpty(p, tablet.Races())
	assert.ErrorContains(p, tablet.Races()[0].Err, fmt.Sprint(int(closeFull)))
	assert.Empty(p, tablet.Connections())

	phone.Stop()
	closed := w.now()
	time.Sleep(200 * ms)
	assert.Equal(p, maxTunnels-1, w.Relay.Open(), "a clean close frees its tunnel at once")
	time.Sleep(5 * time.Second)
	require.Len(p, tablet.Connections(), 1, "the next attempt has it")
	assert.Less(p, tablet.Connections()[0].Adopted-closed, 5*time.Second)
	tablet.Stop()
	time.Sleep(200 * ms)
	w.tunnels(lost, 1)
	lost.Crash()
	vanished := w.now()

	p.At(14 * time.Minute)
	assert.Equal(p, maxTunnels, w.Relay.Open(), "nobody told the relay")
	before := len(w.Relay.Dials())
	phone.Start()
	time.Sleep(40 * time.Second)
	dials := w.Relay.Dials()[before:]
	assert.Greater(p, len(dials), 4)
	for _, d := range dials {
		assert.Equal(p, closeFull, d.Code)
	}
	w.until(2*time.Minute, func() bool { return len(phone.Connections()) == 2 })
	freed := phone.Connections()[1].Adopted - vanished
	p.Figure("freed", seconds(freed))
	assert.GreaterOrEqual(p, freed, orphanIdle-stampEvery)
	assert.LessOrEqual(p, freed, orphanIdle+sweepEvery+41*time.Second, "the sweep, and a beat of the phone's")
	assert.Equal(p, 1, w.Relay.Open())
}
