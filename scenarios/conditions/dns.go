package conditions

import (
	"github.com/seed-5a7f77c4/deadair/netsim"
	"github.com/seed-5a7f77c4/deadair/netsim/dnsserver"
)

// NoAnswerForAAAA makes a name server answer every type but AAAA. Reports:
// golang/go#43398 (the look-up takes 10 s and succeeds), golang/go#22225 (a
// raced dial does not wait for it).
func NoAnswerForAAAA(s *dnsserver.Server) *dnsserver.Rule {
	return s.On("*", dnsserver.AAAA, dnsserver.Silent)
}

// NameUnknown makes one name unresolvable at a name server, as NXDOMAIN. With a
// server for each host it is unresolvable at one host only. Report:
// cockroachdb/cockroach#84289.
func NameUnknown(s *dnsserver.Server, name string) *dnsserver.Rule {
	return s.On(name, dnsserver.Any, dnsserver.NXDomain)
}

// NameServerFails makes a name server answer SERVFAIL to everything. Report:
// golang/go#43398 (the look-up fails at once, and the error is temporary).
func NameServerFails(s *dnsserver.Server) *dnsserver.Rule {
	return s.On("*", dnsserver.Any, dnsserver.ServFail)
}

// SilentNameServer makes questions to a name server vanish. Report:
// golang/go#57694 (the first two of four servers), golang/go#43398 (the only
// one).
func SilentNameServer(n *netsim.Network, server *netsim.Host) *netsim.Fault {
	return n.Apply(netsim.Rule{Name: "silent name server " + server.Name(), To: server, DstPort: 53, Verdict: drop})
}
