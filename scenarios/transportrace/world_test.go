package transportrace

import (
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/scenarios"
	"github.com/seed-5a7f77c4/deadair/selection/route"
)

// played runs a body in a world, as a story.
func played(t *testing.T, s Setup, body func(w *World)) {
	t.Helper()
	scenarios.Run(t, scene("world", t.Name(), func(p *scenarios.Play, _ Subject) { body(NewWorld(p, s)) }), Ours(), scenarios.Seed(1)).Require(t)
}

// status is the code with which the relay closes a client that says hello at once.
func (w *World) status(url string) websocket.StatusCode {
	c, _, err := websocket.Dial(w.ctx, url, w.dialing(w.Net.Host("client")))
	require.NoError(w, err)
	require.NoError(w, send(w.ctx, c, message{Type: "hello", Secret: secret, Token: token}))
	for {
		if _, err := receive(w.ctx, c); err != nil {
			return websocket.CloseStatus(err)
		}
	}
}

func TestTheRelaysStatusCodes(t *testing.T) {
	played(t, Setup{Unregistered: true}, func(w *World) { require.Equal(w, closeNoMachine, w.status(Relay)) })
	played(t, Setup{Relay: quick}, func(w *World) { require.Equal(w, closeEarlyHello, w.status(Relay+"?ready=2")) })
	played(t, Setup{Relay: quick}, func(w *World) {
		w.tunnels(w.Net.Host("others"), maxTunnels)
		require.Equal(w, closeFull, w.status(Relay))
	})
}

func TestTheMachineAuthenticates(t *testing.T) {
	played(t, Setup{}, func(w *World) {
		for answer, hello := range map[string]message{
			Welcome: {Secret: secret}, Stranger: {Secret: "guessed"}, Account: {Secret: secret, Token: "of somebody else"},
		} {
			got, _ := w.Machine.verdict(hello)
			require.Equal(w, answer, got)
		}
		require.Empty(w, w.Machine.Served())
	})
}

// A tunnel that is used, or pinged, is no orphan.
func TestTheSweepLeavesWhatIsInUse(t *testing.T) {
	played(t, Setup{Relay: quick}, func(w *World) {
		phone := w.Phone(Ours(), RelayOnly)
		w.online(phone)
		w.tunnels(w.Net.Host("idle"), 1)
		require.Equal(w, 2, w.Relay.Open())
		time.Sleep(time.Hour)
		require.Equal(w, 1, w.Relay.Open())
		require.Zero(w, phone.Connections()[0].Ended)
	})
}

// The commute changes its class where it should, and what overlaps has no gap.
func TestCommute(t *testing.T) {
	var walk Walked
	scenarios.Run(t, Walking(&walk, Commute...), Ours(), scenarios.Seed(1)).Require(t)
	var classes []route.Class
	for _, c := range walk.Connections {
		classes = append(classes, c.Class)
	}
	require.Equal(t, []route.Class{route.LAN, route.Relay, route.Tailnet, route.Relay}, classes)
	require.Len(t, walk.Silences, 2, "leaving home, where the LAN's socket dies, and the tunnel")
	require.Less(t, walk.Silences[0].To-walk.Silences[0].From, 2500*ms)
	require.InDelta(t, 7, seconds(walk.Silences[1].To-walk.Silences[1].From), 1, "six seconds without a network, and a race")
}
