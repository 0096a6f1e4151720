package conditions

import (
	"time"

	"github.com/seed-5a7f77c4/deadair/netsim"
)

// NATForgets puts a NAT between two hosts that forgets an idle flow and lets its
// packets vanish. Reports: moby/moby#34359 (300 s), go-sql-driver/mysql#257
// (15 min, all pooled flows at once).
func NATForgets(l *netsim.Link, idle time.Duration) *netsim.Fault {
	return l.ForgetIdle(idle, netsim.Silently)
}

// FirewallResets puts a firewall between two hosts that forgets an idle flow and
// answers its next packet with a RST. Report: golang/go#13998 (300 s).
func FirewallResets(l *netsim.Link, idle time.Duration) *netsim.Fault {
	return l.ForgetIdle(idle, netsim.WithReset)
}

// SegmentsLost makes a host's packets of one address family vanish if they are
// larger than mtu bytes with headers, and nobody tells the host. Small packets
// pass, so that connecting works and the first large answer does not. Report:
// urnetwork/connect#207 (IPv6, 1480 bytes).
func SegmentsLost(n *netsim.Network, from *netsim.Host, v6 bool, mtu int) *netsim.Fault {
	mustBePositive("SegmentsLost", "mtu", mtu)
	return n.Apply(netsim.Rule{
		Name: "path MTU black hole", From: from, MinSize: mtu + 1, Verdict: drop,
		Match: func(p netsim.Packet) bool { return p.Src.Addr().Is6() == v6 },
	})
}

// SlowLink is a line of 64 kbit/s with 256 KiB of buffer in front of it: a small
// message behind a bulk transfer waits up to 32 s. Report: Icinga/icinga2#2727.
func SlowLink() netsim.Conditions {
	return netsim.Conditions{Rate: 64_000, Queue: 256 << 10}
}
