package route

import (
	"net"
	"net/netip"
	"strconv"
	"strings"
	"unicode"
)

// Candidate is one attempt: an address and a port. Candidates that differ by port alone are one route, see Key and Merge.
type Candidate struct {
	// Address is a host name, an IP address, or the ws:// or wss:// URL of a relay.
	Address string
	// Port is the port of a direct route; 0 means DefaultPort. A relay's port is part of its URL.
	Port uint16
	// Owner is the account that owns a relay. Direct routes have none.
	Owner string
	// Live says that discovery sees the machine at this address now.
	Live bool
}

// Class is the candidate's class of route.
func (c Candidate) Class() Class { return ClassOf(c.Address) }

// Key is the name under which every memory knows the candidate's route.
func (c Candidate) Key() Key { return KeyOf(c.Address) }

// Target is what is dialled: the URL of a relay, host:port of a direct route.
func (c Candidate) Target() string {
	if IsURL(c.Address) {
		return strings.TrimSpace(c.Address)
	}
	return net.JoinHostPort(string(c.Key()), strconv.Itoa(int(c.FirstPort())))
}

// FirstPort is the port tried first: the candidate's own, or DefaultPort.
func (c Candidate) FirstPort() uint16 {
	if c.Port == 0 {
		return DefaultPort
	}
	return c.Port
}

func (c Candidate) String() string { return c.Class().String() + " " + c.Target() }

// Key identifies a route in all memories. A relay's key is its whole URL, trimmed, case kept. A direct route's key is
// the lower-cased host without outer dots or brackets; the port is left out, since a route that fails on one port is
// the same route on another.
type Key string

// KeyOf gives the key of an address.
func KeyOf(address string) Key {
	if IsURL(address) {
		return Key(strings.TrimSpace(address))
	}
	return Key(host(address))
}

// Merge joins candidates that name the same route: the first one keeps its place, a live one gives its port (what
// discovery says now beats what was saved), an owner is kept from whichever has one.
func Merge(candidates []Candidate) []Candidate {
	at := make(map[Key]int, len(candidates))
	merged := make([]Candidate, 0, len(candidates))
	for _, c := range candidates {
		i, seen := at[c.Key()]
		if !seen {
			at[c.Key()] = len(merged)
			merged = append(merged, c)
			continue
		}
		m := &merged[i]
		if c.Live && !m.Live {
			m.Live = true
			if c.Port != 0 {
				m.Port = c.Port
			}
		}
		if m.Port == 0 {
			m.Port = c.Port
		}
		if m.Owner == "" {
			m.Owner = c.Owner
		}
	}
	return merged
}

// IsURL reports whether the address is the WebSocket URL of a relay, in any case, blanks around it ignored.
func IsURL(address string) bool {
	a := strings.TrimSpace(address)
	return hasPrefixFold(a, "ws://") || hasPrefixFold(a, "wss://")
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// host is the address without what people write around it: blanks, brackets, dots.
func host(address string) string {
	return strings.ToLower(strings.TrimFunc(address, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("[].", r) }))
}

func addr(host string) (netip.Addr, bool) {
	a, err := netip.ParseAddr(host)
	return a.WithZone("").Unmap(), err == nil
}
