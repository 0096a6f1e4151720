// Package netsim is a network inside a test: hosts, links, streams, datagrams
// and names, with the failures of real ones, under virtual time.
//
// A program runs on it unchanged; only its dial function, its listener or its
// packet connection is a host's:
//
//	func TestClientLeavesADeadRelay(t *testing.T) {
//		netsim.Run(t, func(t *testing.T, n *netsim.Network) {
//			app, relay := n.Host("app"), n.Host("relay")
//			l, _ := relay.Listen("tcp", ":443")
//			go http.Serve(l, handler)
//			client := &http.Client{Transport: &http.Transport{DialContext: app.DialContext}}
//
//			n.Link(app, relay).Cut()                 // silent, both ways, from now on
//			_, err := client.Get("http://relay:443") // two minutes of virtual time
//			require.ErrorIs(t, err, syscall.ETIMEDOUT)
//		}, netsim.Defaults(netsim.LTE))
//	}
//
// Streams behave towards a Go program as Linux's TCP does and datagrams as its
// UDP: the same retransmission schedule, the same errors ([net.OpError] around
// the same errnos), the same half-close, linger and keep-alive.
//
// There are three ways to break something:
//
//   - [Conditions] on a path, a link or an interface are weather: latency, jitter,
//     loss, rate, queue, MTU, with the names and units of tc-netem(8).
//   - Verbs are events: Cut, Heal, Hold, Release, Refuse, Unreach and Reset of a
//     [Path] or a [Link], [Network.ResetFlow], [Network.Partition],
//     [Link.ForgetIdle], [Host.Crash], [Host.Pause], [Interface.Down].
//   - A [Rule] is surgery: which packets, and a [Verdict] on them.
//
// Each of the last two gives a [Fault], which counts what it hit and can be
// undone. A fault that never bit by the end of a run is an error, unless
// [Fault.MayMiss] says that it need not.
//
// A run replays: everything random comes from one seed, every packet is an event
// of one ordered queue, and one event happens per virtual instant, so the same
// seed gives the same [Trace]. [CheckReplay] shows where two runs part.
//
// [New] makes a network that runs in real time, or in a bubble that somebody
// else made. A network is used from the side of the bubble's wall on which it was
// made; calls from the other side get an error or panic. A call from another
// bubble ends the process with a fatal error whose stack shows the call, which is
// what Go does with all things of another bubble.
package netsim
