package route

import (
	"net/netip"
	"strings"
)

// Path is what the phone's system says about its network at one moment. The zero Path has no network.
type Path struct {
	// Satisfied says that some interface can carry traffic.
	Satisfied bool
	// WiFi, Cellular and Wired say which interfaces are up.
	WiFi, Cellular, Wired bool
	// Expensive and Constrained are hints about cost that flap by themselves; no decision looks at them.
	Expensive, Constrained bool
	// WiFiAddr is the phone's own IPv4 address on Wi-Fi, if it has one.
	WiFiAddr netip.Addr
	// TailnetAddr is the phone's own address in the tailnet; it has one only while the tailnet is switched on.
	TailnetAddr netip.Addr
}

// SameInterfaces reports whether two paths agree in everything that counts as a change of interfaces: satisfied, Wi-Fi,
// cellular and wired.
func (p Path) SameInterfaces(q Path) bool {
	return p.Satisfied == q.Satisfied && p.WiFi == q.WiFi && p.Cellular == q.Cellular && p.Wired == q.Wired
}

// LocalLink reports whether an interface is up on which a machine could be on the same link.
func (p Path) LocalLink() bool { return p.WiFi || p.Wired }

func (p Path) String() string {
	var parts []string
	for _, s := range []struct {
		on   bool
		name string
	}{{p.WiFi, "wifi"}, {p.Cellular, "cellular"}, {p.Wired, "wired"}, {p.TailnetAddr.IsValid(), "tailnet"}} {
		if s.on {
			parts = append(parts, s.name)
		}
	}
	if !p.Satisfied || len(parts) == 0 {
		return strings.Join(append(parts, "unsatisfied"), "+")
	}
	return strings.Join(parts, "+")
}

// The ranges whose addresses say nothing about which Wi-Fi the phone is on.
var anonymous = prefixes("127.0.0.0/8", "169.254.0.0/16")

// Fingerprint names a network well enough to remember what worked on it. "" names none.
type Fingerprint string

// Fingerprint of the path: "wired"; else "wifi:a.b.c" from the first three bytes of the phone's own IPv4 address on
// Wi-Fi ("wifi" without a usable one); else "cell"; else "".
func (p Path) Fingerprint() Fingerprint {
	switch {
	case p.Wired:
		return "wired"
	case p.WiFi:
		a := p.WiFiAddr.Unmap()
		if !a.Is4() || anonymous[0].Contains(a) || anonymous[1].Contains(a) {
			return "wifi"
		}
		text := a.String()
		return Fingerprint("wifi:" + text[:strings.LastIndexByte(text, '.')])
	case p.Cellular:
		return "cell"
	}
	return ""
}
