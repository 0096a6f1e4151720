package route

import (
	"fmt"
	"net/netip"
	"strings"
)

// Class orders routes by how close they are to the machine: LAN before Tailnet before Relay.
type Class uint8

// The classes of route. Unknown is neither better nor worse than any class.
const (
	Unknown Class = iota
	LAN
	Tailnet
	Relay
)

// Classes lists the known classes, best first.
var Classes = []Class{LAN, Tailnet, Relay}

func (c Class) String() string {
	switch c {
	case Unknown:
		return "unknown"
	case LAN:
		return "lan"
	case Tailnet:
		return "tailnet"
	case Relay:
		return "relay"
	}
	return fmt.Sprintf("Class(%d)", uint8(c))
}

// Better reports whether c is strictly better than d. Nothing is better than Unknown, and Unknown than nothing.
func (c Class) Better(d Class) bool { return c != Unknown && d != Unknown && c < d }

// DiscoveryName is the fixed name under which a machine can be found inside a tailnet.
const DiscoveryName = "deadair-machine"

var (
	tailnetRanges   = prefixes("100.64.0.0/10", "fd7a:115c:a1e0::/48")
	loopbackRanges  = prefixes("127.0.0.0/8", "::1/128")
	localLinkRanges = prefixes("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16", "fc00::/7", "fe80::/10")
)

// ClassOf classifies an address; the first match wins. A ws:// or wss:// URL is a Relay. 100.64.0.0/10,
// fd7a:115c:a1e0::/48, DiscoveryName and *.ts.net are Tailnet. All else, loopback and plain names included, is LAN.
func ClassOf(address string) Class {
	switch h := host(address); {
	case IsURL(address):
		return Relay
	case isTailnet(h):
		return Tailnet
	}
	return LAN
}

// LocalLinkOnly reports whether the address can work only on the same link: *.local, the private and link-local
// ranges outside the tailnet's. Relays, tailnet and loopback addresses, plain names and public addresses are not.
func LocalLinkOnly(address string) bool {
	h := host(address)
	if IsURL(address) || isTailnet(h) {
		return false
	}
	return strings.HasSuffix(h, ".local") || inRanges(h, localLinkRanges)
}

func isTailnet(h string) bool {
	return h == DiscoveryName || strings.HasSuffix(h, ".ts.net") || inRanges(h, tailnetRanges)
}

func inRanges(h string, ranges []netip.Prefix) bool {
	a, ok := addr(h)
	if !ok {
		return false
	}
	for _, r := range ranges {
		if r.Contains(a) {
			return true
		}
	}
	return false
}

func prefixes(texts ...string) []netip.Prefix {
	ranges := make([]netip.Prefix, len(texts))
	for i, t := range texts {
		ranges[i] = netip.MustParsePrefix(t)
	}
	return ranges
}
