package conditions

import (
	"time"

	"github.com/seed-5a7f77c4/deadair/netsim"
)

// SilentFlow makes one flow lose everything in both directions, for ever; the
// ends are told nothing and other flows pass. A flow is named as in the trace:
// "app>db:5432#1" is the first that app opened there. Reports: grpc/grpc-go#7542
// (a call in flight, no keep-alive), jackc/pgx#2394 (one of a pool's idle flows).
func SilentFlow(n *netsim.Network, flow string) *netsim.Fault {
	return n.Apply(netsim.Rule{Name: "silent flow " + flow, Flow: flow, Verdict: drop})
}

// SilentTowards makes one flow lose everything that is sent to a host; what the
// host sends arrives. Report: golang/go#30702, an HTTP/2 connection whose
// answers vanish.
func SilentTowards(n *netsim.Network, to *netsim.Host, flow string) *netsim.Fault {
	return n.Apply(netsim.Rule{Name: "silent towards " + to.Name(), To: to, Flow: flow, Verdict: drop})
}

// FlowsHashedAway makes every k-th of the flows that are established between two
// hosts lose everything; flows that are opened later take a way that works, as
// with a broken member of an equal-cost group. It panics if k < 1. Report:
// golang/go#63422.
func FlowsHashedAway(n *netsim.Network, between *netsim.Link, k int) *netsim.Fault {
	mustBePositive("FlowsHashedAway", "k", k)
	return n.Apply(netsim.Rule{
		Name: "flows hashed away", Between: between, Established: true, Verdict: drop,
		Match: func(p netsim.Packet) bool { return p.Conn%k == 0 },
	})
}

// StallAfter makes an answer stop after about k bytes of its stream: later bytes
// from the port vanish, the connection stays open and what the other end sends
// arrives. A segment goes or stays as a whole. Reports: open-octo/octo-agent#146
// (headers, some bytes, silence), getlantern/lantern#4967 (a proxy that connects
// in 20 ms and goes silent), router-for-me/CLIProxyAPI#3952 and golang/go#37549
// (k = 0: a proxy that accepts and never answers).
func StallAfter(n *netsim.Network, from *netsim.Host, port uint16, k int64) *netsim.Fault {
	return n.Apply(netsim.Rule{
		Name: "stall", From: from, SrcPort: port, Kind: netsim.Data, Verdict: drop,
		Match: func(p netsim.Packet) bool { return p.Seq+int64(p.Len)-1 > k },
	})
}

// ResetReaderAfter answers a host that reads with a RST for each acknowledgement
// of more than k bytes from the port, until one has the number that the host
// takes. Neither end closed anything: the reader sees ECONNRESET, the writer
// only with what it sends later. Report:
// kubernetes/kubernetes#74839.
func ResetReaderAfter(n *netsim.Network, reader *netsim.Host, port uint16, k int64) *netsim.Fault {
	return n.Apply(netsim.Rule{
		Name: "reset of the reader", From: reader, DstPort: port, Kind: netsim.ACK,
		Match:   func(p netsim.Packet) bool { return p.Ack-1 > k },
		Verdict: netsim.Verdict{Action: netsim.Reject},
	})
}

// SqueezedFor makes one direction carry nothing for d and heals it then. Report:
// hashicorp/yamux#142, 15 s from the client to the server.
func SqueezedFor(n *netsim.Network, p *netsim.Path, d time.Duration) *netsim.Fault {
	f := p.Cut()
	n.After(d, "heal", f.Undo)
	return f
}

// OneWayLoss makes everything vanish in one direction. Reports:
// cockroachdb/cockroach#84289, eclipse-paho/paho.golang#288 (only from the broker
// to the client).
func OneWayLoss(p *netsim.Path) *netsim.Fault { return p.Cut() }

// DirectPathLost makes everything between two hosts vanish, while each still
// reaches a relay. Report: tailscale/tailscale#92.
func DirectPathLost(direct *netsim.Link) *netsim.Fault { return direct.Cut() }
