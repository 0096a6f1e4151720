package netsim

import (
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
	return err == errContextDeadline || err == os.ErrDeadlineExceeded
}

func (dialCanceled) Error() string     { return "operation was canceled" }
func (dialCanceled) Is(err error) bool { return err == errContextCanceled }
