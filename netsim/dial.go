package netsim

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"github.com/seed-5a7f77c4/deadair/clock"
	"github.com/seed-5a7f77c4/deadair/netsim/internal/tcp"
)

// A Dialer is net.Dialer on a simulated host.
type Dialer struct {
	Host *Host
	// Timeout and Deadline bound the whole dial, as net.Dialer's do.
	Timeout  time.Duration
	Deadline time.Time
	// LocalAddr is the address to dial from; its port may be 0.
	LocalAddr net.Addr
	// FallbackDelay is how long IPv6 has before IPv4 is tried beside it.
	// Default: 300 ms; negative: one after the other.
	FallbackDelay time.Duration
	// KeepAliveConfig and KeepAlive are net.Dialer's: probes are on by default,
	// and off when KeepAlive is negative.
	KeepAlive       time.Duration
	KeepAliveConfig net.KeepAliveConfig
	// Resolver looks names up. Default: the host's, see [Host.SetResolver].
	Resolver *net.Resolver
}

// DialContext connects as a net.Dialer without options does. It is what to give
// to http.Transport.DialContext, grpc.WithContextDialer and the like.
func (h *Host) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return (&Dialer{Host: h}).DialContext(ctx, network, address)
}

// Dial is DialContext without a context.
func (h *Host) Dial(network, address string) (net.Conn, error) {
	return h.DialContext(context.Background(), network, address)
}

// Dial is DialContext without a context.
func (d *Dialer) Dial(network, address string) (net.Conn, error) {
	return d.DialContext(context.Background(), network, address)
}

const defaultFallbackDelay = 300 * time.Millisecond // RFC 6555, as net.Dialer

// DialContext connects to an address on the named network: tcp, tcp4, tcp6, udp,
// udp4 or udp6. Several addresses of a name are tried as net.Dialer does.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if d.Host == nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: errors.New("netsim: Dialer without a Host")}
	}
	if ctx == nil {
		panic("nil context")
	}
	deadline := d.Deadline
	if d.Timeout != 0 {
		if t := time.Now().Add(d.Timeout); deadline.IsZero() || t.Before(deadline) {
			deadline = t
		}
	}
	if t, ok := ctx.Deadline(); ok && (deadline.IsZero() || t.Before(deadline)) {
		deadline = t
	}
	if !deadline.IsZero() {
		sub, cancel := context.WithDeadline(ctx, deadline)
		defer cancel()
		ctx = sub
	}
	proto, family, host, port, err := split(network, address)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	addrs, err := d.resolve(ctx, family, host)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	if addrs, err = d.fromLocal(proto, addrs); err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	primaries, fallbacks := addrs, []netip.Addr(nil)
	if d.FallbackDelay >= 0 && network == "tcp" {
		primaries, fallbacks = partition(addrs)
	}
	if len(fallbacks) == 0 {
		return d.serial(ctx, proto, network, primaries, port)
	}
	return d.parallel(ctx, network, primaries, fallbacks, port)
}

// partition splits addresses by the family of the first.
func partition(addrs []netip.Addr) (primaries, fallbacks []netip.Addr) {
	for _, a := range addrs {
		if familyOf(a) == familyOf(addrs[0]) {
			primaries = append(primaries, a)
		} else {
			fallbacks = append(fallbacks, a)
		}
	}
	return primaries, fallbacks
}

// fromLocal leaves the addresses that can be dialled from LocalAddr.
func (d *Dialer) fromLocal(proto Proto, addrs []netip.Addr) ([]netip.Addr, error) {
	from, err := d.local(proto)
	if err != nil || !from.Addr().IsValid() {
		return addrs, err
	}
	var fit []netip.Addr
	for _, a := range addrs {
		if familyOf(a) == familyOf(from.Addr()) {
			fit = append(fit, a)
		}
	}
	if len(fit) == 0 {
		return nil, &net.AddrError{Err: "no suitable address found", Addr: d.LocalAddr.String()}
	}
	return fit, nil
}

// serial tries addresses one after the other, sharing out the time as
// net.Dialer does: what is left, divided by the addresses left, but at least
// 2 s each.
func (d *Dialer) serial(ctx context.Context, proto Proto, network string, addrs []netip.Addr, port uint16) (net.Conn, error) {
	var first error
	for i, a := range addrs {
		remote := netip.AddrPortFrom(a, port)
		fail := func(err error) error {
			return opError("dial", network, d.LocalAddr, addr(proto, remote), contextError(err))
		}
		if err := ctx.Err(); err != nil {
			return nil, fail(err)
		}
		sub, cancel := ctx, context.CancelFunc(func() {})
		if deadline, ok := ctx.Deadline(); ok {
			by, err := partialDeadline(time.Now(), deadline, len(addrs)-i)
			if err != nil {
				if first == nil {
					first = fail(err)
				}
				break
			}
			if by.Before(deadline) {
				sub, cancel = context.WithDeadline(ctx, by)
			}
		}
		open := d.connect
		if proto == UDP {
			open = d.dialUDP
		}
		c, err := open(sub, network, remote)
		cancel()
		if err == nil {
			return c, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}

func partialDeadline(now, deadline time.Time, left int) (time.Time, error) {
	remaining := deadline.Sub(now)
	if remaining <= 0 {
		return time.Time{}, context.DeadlineExceeded
	}
	const atLeast = 2 * time.Second
	share := remaining / time.Duration(left)
	if share < atLeast {
		share = min(remaining, atLeast)
	}
	return now.Add(share), nil
}

// parallel races two families (RFC 6555).
func (d *Dialer) parallel(ctx context.Context, network string, primaries, fallbacks []netip.Addr, port uint16) (net.Conn, error) {
	type result struct {
		conn    net.Conn
		err     error
		primary bool
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan result)
	returned := make(chan struct{})
	defer close(returned)
	try := func(addrs []netip.Addr, primary bool) {
		c, err := d.serial(ctx, TCP, network, addrs, port)
		select {
		case results <- result{c, err, primary}:
		case <-returned:
			if c != nil {
				c.Close()
			}
		}
	}
	go try(primaries, true)
	delay := d.FallbackDelay
	if delay == 0 {
		delay = defaultFallbackDelay
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	started := false
	var failed [2]error
	for {
		select {
		case <-timer.C:
			started = true
			go try(fallbacks, false)
		case r := <-results:
			if r.err == nil {
				return r.conn, nil
			}
			if r.primary {
				failed[0] = r.err
			} else {
				failed[1] = r.err
			}
			if failed[0] != nil && failed[1] != nil {
				return nil, failed[0]
			}
			if r.primary && !started && timer.Stop() {
				started = true
				go try(fallbacks, false)
			}
		}
	}
}

// local is the address to dial from. Its parts are zero where the network is to
// choose.
func (d *Dialer) local(proto Proto) (netip.AddrPort, error) {
	var a netip.AddrPort
	switch la := d.LocalAddr.(type) {
	case nil:
		return a, nil
	case *net.TCPAddr:
		if proto == TCP {
			a = la.AddrPort()
		}
	case *net.UDPAddr:
		if proto == UDP {
			a = la.AddrPort()
		}
	}
	if a == (netip.AddrPort{}) && d.LocalAddr.Network() != proto.String() {
		return a, &net.AddrError{Err: "mismatched local address type", Addr: d.LocalAddr.String()}
	}
	if a.Addr().IsUnspecified() {
		return netip.AddrPortFrom(netip.Addr{}, a.Port()), nil
	}
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()), nil
}

// connect opens one connection to one address.
func (d *Dialer) connect(ctx context.Context, network string, remote netip.AddrPort) (net.Conn, error) {
	h := d.Host
	n := h.n
	fail := func(err error) (net.Conn, error) {
		return nil, opError("dial", network, d.LocalAddr, addr(TCP, remote), err)
	}
	local, err := d.local(TCP)
	if err != nil {
		return fail(err)
	}
	n.enter()
	defer n.mu.Unlock()
	if err := n.usable(); err != nil {
		return fail(err)
	}
	if local.Addr().IsValid() && h.own(local.Addr()) == nil {
		return fail(os.NewSyscallError("bind", syscall.EADDRNOTAVAIL))
	}
	out, src, in, err := h.way(remote.Addr(), local.Addr())
	if err != nil {
		return fail(err)
	}
	if local.Port() != 0 {
		local = netip.AddrPortFrom(src, local.Port())
		if h.conns[connKey{local, remote}] != nil || h.listener(local) != nil {
			return fail(os.NewSyscallError("bind", syscall.EADDRINUSE))
		}
	} else if local, err = h.ephemeral(src, remote); err != nil {
		return fail(err)
	}
	to := remote.Addr().String()
	if in != nil {
		to = in.host.name
	}
	fl := h.newFlow(to, TCP, remote.Port())
	c := n.newConn(h, local, remote, "tcp", fl, fl.name+" client")
	c.out, c.in = out, in
	if in != nil {
		c.peerHost = in.host
	}
	c.keepAlive(keepAliveOf(d.KeepAlive, d.KeepAliveConfig))
	h.conns[connKey{local, remote}] = c
	c.start, c.dialing = true, true
	c.give(n.sched.Now())
	if err := c.awaitOpen(ctx); err != nil {
		c.ep.Close(n.sched.Now(), true)
		c.settle(n.sched.Now())
		n.sched.Cancel(&c.transmit)
		c.closed = true
		c.forget()
		return fail(err)
	}
	c.dialing = false
	return c, nil
}

// awaitOpen waits for the handshake. The context's deadline is an event of the
// network, so that it has its place in the order of things.
func (c *Conn) awaitOpen(ctx context.Context) error {
	n := c.host.n
	var ended error
	deadline, timed := ctx.Deadline()
	if timed {
		at := n.deadline(deadline)
		ev := &clock.Event{Key: clock.Key{Name: c.key, Kind: kindDeadline}, Handler: clock.HandlerFunc(func(time.Duration) {
			n.mu.Lock()
			defer n.mu.Unlock()
			if ended == nil {
				ended = context.DeadlineExceeded
			}
			c.wake()
		})}
		n.sched.Schedule(ev, at)
		defer n.sched.Cancel(ev)
	}
	if ctx.Done() != nil {
		stop := context.AfterFunc(ctx, func() {
			n.enter()
			defer n.mu.Unlock()
			if err := ctx.Err(); ended == nil && !(timed && err == context.DeadlineExceeded) {
				ended = err
			}
			c.wake()
		})
		defer stop()
	}
	for {
		if c.ep.State() == tcp.Established {
			return nil
		}
		if errno := c.ep.Err(); errno != 0 {
			c.ep.Read(nil)
			return errno
		}
		if n.closed || c.closed {
			return net.ErrClosed
		}
		if !c.start && c.ep.State() == tcp.Closed && !n.sched.Queued(&c.transmit) {
			return net.ErrClosed
		}
		if ended != nil {
			return contextError(ended)
		}
		c.writers++
		c.cond.Wait()
		c.writers--
	}
}

func contextError(err error) error {
	switch err {
	case context.DeadlineExceeded:
		return dialTimeout{}
	case context.Canceled:
		return dialCanceled{}
	}
	return err
}
