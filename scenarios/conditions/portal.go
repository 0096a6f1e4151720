package conditions

import (
	"slices"

	"github.com/seed-5a7f77c4/deadair/netsim"
	"github.com/seed-5a7f77c4/deadair/netsim/dnsserver"
)

// A Portal holds a host captive until Login.
type Portal struct {
	names *dnsserver.Rule
	rest  *netsim.Fault
}

// CaptivePortal answers all names that a host asks for with the portal's address
// (which should serve HTTP there) and drops all else that the host sends to
// others: port 443, datagrams. More ports are let through to the portal: 443,
// say, where it shows a certificate of its own. It lasts until Login. Report:
// tailscale/tailscale#1634.
func CaptivePortal(n *netsim.Network, captive, portal *netsim.Host, names *netsim.Host, s *dnsserver.Server, more ...uint16) *Portal {
	ports := append([]uint16{80}, more...)
	return &Portal{
		names: s.On("*", dnsserver.Any, dnsserver.Hijack(portal.Addr().String())),
		rest: n.Apply(netsim.Rule{
			Name: "captive portal", From: captive, Verdict: drop, MayMiss: true,
			Match: func(p netsim.Packet) bool {
				open := p.To == names && p.Dst.Port() == 53 || p.To == portal && slices.Contains(ports, p.Dst.Port())
				return !open
			},
		}),
	}
}

// Login opens the portal: the network is as it was without.
func (p *Portal) Login() {
	p.names.Remove()
	p.rest.Undo()
}
