package dnsserver

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"
)

// What Go's resolver does without a resolv.conf: see resolv.conf(5), "options timeout, attempts".
const (
	Timeout  = 5 * time.Second // for one attempt at one server
	Attempts = 2               // rounds through the list of servers
)

// DialFunc opens connections to name servers, as net.Dialer.DialContext does.
type DialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// Resolver makes Go's own resolver (PreferGo) ask the servers given, in their order, each for [Timeout], all of them
// [Attempts] times, whatever the machine's resolv.conf says. A server is an address, with or without a port (default
// 53). It panics without a dial function or servers, and inside a bubble if [Prime] has not run.
//
// How it works: package net takes its servers and time-outs from resolv.conf and gives the hook Dial no way to change
// them. So Dial gives it a connection that does the whole exchange itself, with all servers and repetitions, and hands
// back the one answer that counts; what net repeats after a failure gets the same outcome at once. Everything else is
// net's: which questions are asked, what the answers and errors mean.
func Resolver(dial DialFunc, servers ...string) *net.Resolver {
	if dial == nil {
		panic("dnsserver.Resolver: no dial function")
	}
	if len(servers) == 0 {
		panic("dnsserver.Resolver: no servers")
	}
	e := &exchanger{dial: dial, repeats: prime("dnsserver.Resolver").exchanges - 1, owed: make(map[lookup]debt)}
	for _, s := range servers {
		e.servers = append(e.servers, withPort(s))
	}
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return &exchange{exchanger: e, caller: callerOf(ctx)}, nil
	}}
}

func withPort(server string) string {
	if ip, err := netip.ParseAddr(server); err == nil {
		return net.JoinHostPort(ip.String(), "53")
	}
	if _, err := netip.ParseAddrPort(server); err != nil {
		panic(fmt.Sprintf("dnsserver.Resolver: server %q is no address", server))
	}
	return server
}

// exchanger holds what the exchanges of one resolver share.
type exchanger struct {
	dial    DialFunc
	servers []string
	repeats int // exchanges that net makes after one that failed

	mu   sync.Mutex // never held while anything waits
	owed map[lookup]debt
}

// lookup is what net's exchanges of one look-up have in common.
type lookup struct {
	question
	caller context.Context
}

// debt is an outcome that net will ask for again: it takes the failure of an exchange for that of one attempt.
type debt struct {
	outcome
	times int
	since time.Time
}

// staleAfter is far longer than net takes from one exchange to the next, and far shorter than any time-out.
const staleAfter = 500 * time.Millisecond

// owe notes that a failure will be asked for again.
func (e *exchanger) owe(l lookup, o outcome) {
	if e.repeats < 1 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	// Several look-ups of one question with one context may fail in one instant: their debts add up.
	e.owed[l] = debt{o, e.owed[l].times + e.repeats, time.Now()}
}

// pay gives the outcome that is owed, if one is.
func (e *exchanger) pay(l lookup) (outcome, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	d, ok := e.owed[l]
	if !ok {
		return outcome{}, false
	}
	if d.times--; d.times == 0 || time.Since(d.since) > staleAfter {
		delete(e.owed, l)
	} else {
		e.owed[l] = d
	}
	return d.outcome, time.Since(d.since) <= staleAfter
}
