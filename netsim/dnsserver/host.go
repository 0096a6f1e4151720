package dnsserver

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"

	"github.com/seed-5a7f77c4/deadair/clock"
)

// host is what the machine's own configuration makes Go's resolver do, found out by watching it.
type host struct {
	exchanges int // for one question, all of them failing: attempts × servers
}

var (
	primeOnce sync.Once
	primed    atomic.Pointer[host]
)

// Prime makes package net set up its resolver, once and for all. It must run outside synctest bubbles before the first
// look-up inside one: net keeps channels in global variables that are made at first use, and one that was made inside
// a bubble ends the process when it is used outside. Prime asks nobody anything. It panics inside a bubble unless it
// has run before.
func Prime() { prime("dnsserver.Prime") }

func prime(call string) host {
	if h := primed.Load(); h != nil {
		return *h
	}
	if clock.InBubble() {
		panic(call + " inside a synctest bubble: call dnsserver.Prime once outside first")
	}
	primeOnce.Do(func() {
		h := probe()
		primed.Store(&h)
	})
	return *primed.Load()
}

var errProbe = errors.New("no name server is asked by a probe")

// probe watches look-ups whose every exchange fails at once.
func probe() host {
	const nobody = "probe.invalid."
	var h host
	counting := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		h.exchanges++
		return nil, errProbe
	}}
	counting.LookupTXT(context.Background(), nobody)
	// Addresses go another way than texts: through nsswitch.conf, which has a channel of its own.
	failing := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) { return nil, errProbe }}
	failing.LookupHost(context.Background(), nobody)
	return h
}
