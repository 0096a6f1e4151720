package conditions

import (
	"fmt"
	"net"

	"github.com/seed-5a7f77c4/deadair/blackhole"
	"github.com/seed-5a7f77c4/deadair/socksrelay"
)

// SilentRelay is a SOCKS relay that accepts and says nothing. Report:
// golang/go#37549 (Dial has no time-out of its own).
func SilentRelay() *socksrelay.Fault {
	return &socksrelay.Fault{Name: "silent relay", Phase: socksrelay.Greeting, Do: blackhole.Stall(), On: blackhole.Both}
}

// RequestUnanswered is a SOCKS relay that agrees on a method and never answers
// the request. Report: golang/go#37549.
func RequestUnanswered() *socksrelay.Fault {
	return &socksrelay.Fault{Name: "request unanswered", Phase: socksrelay.Dial, Do: blackhole.Stall(), On: blackhole.Down}
}

// RequestRefused is a SOCKS relay that answers every request with a reply code:
// 1 general failure, 4 host unreachable, 6 TTL expired, as in RFC 1928. Report:
// golang/go#37549.
func RequestRefused(code byte) *socksrelay.Fault { return socksrelay.Refuse(code) }

// SuccessTooEarly is a SOCKS relay that reports success before its upstream has
// answered; if the dial fails, the client's connection ends after the success.
// Report: OkamiW/proxy-ns#6 ("connected" says nothing about health).
func SuccessTooEarly() *socksrelay.Fault {
	return &socksrelay.Fault{Name: "success too early", Phase: socksrelay.Reply, Answer: &socksrelay.Answer{Early: true}}
}

// HalfCloseAfter makes a client end its stream after k bytes, as a program does
// that has said all it has to say, and read on: put it on a connection, which must
// have CloseWrite. A proxy on the way must pass the end on in one direction and let
// the answer come back. It panics if k < 1. Report: caddyserver/caddy#8026 (5
// bytes; the backend answers 200 ms later).
func HalfCloseAfter(c net.Conn, k int64) net.Conn {
	mustBePositive("HalfCloseAfter", "k", int(k))
	c, err := blackhole.Client(c, &blackhole.Fault{When: blackhole.AfterBytes(k), Do: blackhole.HalfClose(), On: blackhole.Up})
	if err != nil {
		panic(fmt.Errorf("conditions: HalfCloseAfter: %w", err))
	}
	return c
}
