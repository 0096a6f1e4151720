package netsim

import (
	"context"
	"fmt"
	"net"
	"net/netip"
)

// resolve gives the addresses of a host name, the reachable families first.
func (d *Dialer) resolve(ctx context.Context, family int, host string) ([]netip.Addr, error) {
	h := d.Host
	n := h.n
	var addrs []netip.Addr
	switch a, err := netip.ParseAddr(host); {
	case host == "" || host == "localhost":
		addrs = []netip.Addr{loopback(family)}
	case a == netip.IPv6Unspecified():
		addrs = []netip.Addr{loopback(6), loopback(4)} // as package net does for hosts that have half of IPv6
	case err == nil && a.IsUnspecified():
		addrs = []netip.Addr{loopback(4)}
	case err == nil:
		addrs = []netip.Addr{a.Unmap()}
	default:
		resolver := d.Resolver
		if resolver == nil {
			n.enter()
			resolver = h.resolver
			n.mu.Unlock()
		}
		if resolver != nil {
			if addrs, err = ask(ctx, resolver, family, host); err != nil {
				return nil, err
			}
		} else if addrs = n.lookup(host); len(addrs) == 0 {
			return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
		}
	}
	var first, second []netip.Addr
	for _, a := range addrs {
		a = a.Unmap()
		if family != 0 && family != familyOf(a) {
			continue
		}
		if a.IsLoopback() || h.hasFamily(familyOf(a)) {
			first = append(first, a)
		} else {
			second = append(second, a)
		}
	}
	// IPv6 first, as RFC 6724 has it where both have a source address.
	var sorted []netip.Addr
	for _, f := range []int{6, 4} {
		for _, a := range first {
			if familyOf(a) == f {
				sorted = append(sorted, a)
			}
		}
	}
	if sorted = append(sorted, second...); len(sorted) == 0 {
		return nil, &net.AddrError{Err: "no suitable address found", Addr: host}
	}
	return sorted, nil
}

// loopback is the host's own address of a family, IPv4 for any.
func loopback(family int) netip.Addr {
	if family == 6 {
		return netip.IPv6Loopback()
	}
	return netip.AddrFrom4([4]byte{127, 0, 0, 1})
}

// ask looks up both families at once, as net.Dialer does, but each by itself:
// asked for both, the resolver would sort the answers by what sockets of the
// real machine can reach.
func ask(ctx context.Context, r *net.Resolver, family int, name string) ([]netip.Addr, error) {
	type answer struct {
		addrs []netip.Addr
		err   error
	}
	answers := make(map[string]chan answer)
	for _, network := range []string{"ip6", "ip4"} {
		if family != 0 && network != fmt.Sprintf("ip%d", family) {
			continue
		}
		c := make(chan answer, 1)
		answers[network] = c
		go func() {
			addrs, err := r.LookupNetIP(ctx, network, name)
			c <- answer{addrs, err}
		}()
	}
	var addrs []netip.Addr
	var failed error
	for _, network := range []string{"ip6", "ip4"} {
		if c := answers[network]; c != nil {
			a := <-c
			addrs = append(addrs, a.addrs...)
			if a.err != nil {
				failed = a.err
			}
		}
	}
	if len(addrs) > 0 {
		return addrs, nil
	}
	return nil, failed
}

func (h *Host) hasFamily(family int) bool {
	h.n.enter()
	defer h.n.mu.Unlock()
	for _, a := range h.addrs() {
		if familyOf(a) == family {
			return true
		}
	}
	return false
}

// lookup gives the addresses of hosts and aliases, as /etc/hosts would: whatever
// the case, with or without a dot at the end.
func (n *Network) lookup(name string) []netip.Addr {
	n.enter()
	defer n.mu.Unlock()
	name = fold(name)
	var addrs []netip.Addr
	hosts := n.names[name]
	if h := n.hosts[name]; h != nil {
		hosts = []*Host{h}
	}
	for _, h := range hosts {
		addrs = append(addrs, h.addrs()...)
	}
	return addrs
}

// SetResolver makes the host's dials look names up with r. Default: the names
// of hosts and aliases, without a packet, as /etc/hosts would give them.
func (h *Host) SetResolver(r *net.Resolver) {
	h.n.enter()
	defer h.n.mu.Unlock()
	h.n.mustOwn("Host.SetResolver", h)
	h.resolver = r
}
