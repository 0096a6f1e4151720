package netsim

import (
	"fmt"
	"time"
)

// flow is what the packets of one connection have in common.
type flow struct {
	name     string
	nth      int
	openedAt time.Duration // -1 until it is established
	firstAt  time.Duration
}

// flowKey counts connections.
type flowKey struct {
	from, to string
	proto    Proto
	port     uint16
}

// newFlow names a connection. It runs under the lock.
func (h *Host) newFlow(to string, proto Proto, port uint16) *flow {
	n := h.n
	k := flowKey{h.name, to, proto, port}
	n.flows[k]++
	nth := n.flows[k]
	return &flow{name: k.name(nth), nth: nth, openedAt: -1, firstAt: -1}
}

func (k flowKey) name(nth int) string {
	mark := ""
	if k.proto == UDP {
		mark = "/udp"
	}
	return fmt.Sprintf("%s>%s:%d%s#%d", k.from, k.to, k.port, mark, nth)
}
