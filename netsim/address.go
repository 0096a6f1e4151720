package netsim

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"syscall"
)

// split parses a network and an address as package net does.
func split(network, address string) (proto Proto, family int, host string, port uint16, err error) {
	switch network {
	case "tcp", "tcp4", "tcp6":
		proto = TCP
	case "udp", "udp4", "udp6":
		proto = UDP
	default:
		return 0, 0, "", 0, net.UnknownNetworkError(network)
	}
	switch network[len(network)-1] {
	case '4':
		family = 4
	case '6':
		family = 6
	}
	host, service, err := net.SplitHostPort(address)
	if err != nil {
		return 0, 0, "", 0, err
	}
	p, err := strconv.ParseUint(service, 10, 16)
	if err != nil {
		q, lookupErr := net.LookupPort(network, service)
		if lookupErr != nil {
			return 0, 0, "", 0, lookupErr
		}
		p = uint64(q)
	}
	return proto, family, host, uint16(p), nil
}

func familyOf(a netip.Addr) int {
	if a.Is4() {
		return 4
	}
	return 6
}

// A reach is the addresses of its host that a socket takes: one, or all of a
// family, or all.
type reach struct {
	addr   netip.Addr // invalid for all
	family int        // 4 or 6; 0 for both
}

// reachOf is the reach of a socket of a network that is bound to a, as package
// net chooses the family.
func reachOf(network string, a netip.Addr) reach {
	r := reach{addr: a}
	switch {
	case a.IsValid():
		r.family = familyOf(a)
	case network[len(network)-1] == '4':
		r.family = 4
	case network[len(network)-1] == '6':
		r.family = 6
	}
	return r
}

func (r reach) takes(a netip.Addr) bool {
	if r.addr.IsValid() {
		return r.addr == a
	}
	return r.family == 0 || r.family == familyOf(a)
}

// overlaps reports whether two sockets cannot share a port.
func (r reach) overlaps(o reach) bool {
	switch {
	case r.addr.IsValid():
		return o.takes(r.addr)
	case o.addr.IsValid():
		return r.takes(o.addr)
	}
	return r.family == 0 || o.family == 0 || r.family == o.family
}

// destination is where a socket of a family, bound to from, sends what is for a:
// as package net picks the form of the address, and Linux what the unspecified
// one stands for.
func (r reach) destination(a netip.Addr) (netip.Addr, error) {
	a = a.Unmap()
	if r.family == 4 {
		switch {
		case a.Is6():
			return a, &net.AddrError{Err: "non-IPv4 address", Addr: a.String()}
		case a.IsValid() && !a.IsUnspecified():
			return a, nil
		case r.addr.IsValid():
			return r.addr, nil
		}
		return loopback(4), nil
	}
	switch {
	case !a.IsValid() || a.IsUnspecified():
		return loopback(6), nil
	case a.Is4() && r.family == 6:
		return a, os.NewSyscallError("sendto", syscall.ENETUNREACH)
	}
	return a, nil
}

// unexpectedType is the error for a network of the other transport.
func unexpectedType(address string) error {
	return &net.AddrError{Err: "unexpected address type", Addr: address}
}

// addr makes the net.Addr that package net would give.
func addr(proto Proto, a netip.AddrPort) net.Addr {
	if !a.IsValid() {
		return nil
	}
	if proto == UDP {
		return net.UDPAddrFromAddrPort(a)
	}
	return net.TCPAddrFromAddrPort(a)
}

// opError wraps err as package net does. Errnos get the system call's name.
func opError(op, network string, source, addr net.Addr, err error) error {
	var errno syscall.Errno
	if _, wrapped := err.(*os.SyscallError); !wrapped && errors.As(err, &errno) && err == error(errno) {
		call := op
		switch op {
		case "dial":
			call = "connect"
		case "listen":
			call = "bind"
		case "accept":
			call = "accept4"
		}
		err = os.NewSyscallError(call, errno)
	}
	return &net.OpError{Op: op, Net: network, Source: source, Addr: addr, Err: err}
}

// nobody is the error for an address that no host has or had.
type nobody struct{ addr netip.Addr }

func (e nobody) Error() string {
	return fmt.Sprintf("nobody has the address %v (Network.Dark declares one that is silent): %v", e.addr, syscall.EHOSTUNREACH)
}

func (e nobody) Unwrap() error { return syscall.EHOSTUNREACH }

// The errors of a dial that its context ended, which package net does not
// export. They are what errors.Is finds in its own.
type (
	dialTimeout  struct{}
	dialCanceled struct{}
)

func (dialTimeout) Error() string   { return "i/o timeout" }
func (dialTimeout) Timeout() bool   { return true }
func (dialTimeout) Temporary() bool { return true }
func (dialTimeout) Is(err error) bool {
	return err == context.DeadlineExceeded || err == os.ErrDeadlineExceeded
}

func (dialCanceled) Error() string     { return "operation was canceled" }
func (dialCanceled) Is(err error) bool { return err == context.Canceled }
