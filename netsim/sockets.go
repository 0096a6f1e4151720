package netsim

import (
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"text/tabwriter"
)

// A Socket is one line of the socket table, as ss(8) shows it.
type Socket struct {
	Host   string         `json:"host"`
	Proto  Proto          `json:"proto"`
	State  string         `json:"state"`           // as ss names it: LISTEN, SYN-SENT, ESTAB, TIME-WAIT, UNCONN, …
	RecvQ  int            `json:"recvq"`           // bytes that wait to be read; of a listener, connections that wait for Accept
	SendQ  int            `json:"sendq"`           // bytes written and not acknowledged; of a listener, its backlog
	Local  netip.AddrPort `json:"local"`           // the address is :: where all are listened to
	Remote netip.AddrPort `json:"remote,omitzero"` // invalid where there is none
	Flow   string         `json:"flow,omitempty"`  // what the trace calls the connection
}

// String is the socket as a line of text.
func (s Socket) String() string {
	return strings.TrimSpace(strings.Join(s.columns(), " "))
}

func (s Socket) columns() []string {
	remote := "*"
	if s.Remote.IsValid() {
		remote = s.Remote.String()
	}
	return []string{s.Host, s.Proto.String(), s.State, fmt.Sprint(s.RecvQ), fmt.Sprint(s.SendQ), s.Local.String(), remote, s.Flow}
}

// SocketTable is what is open on a network.
type SocketTable []Socket

// String is the table as text, with a heading, a line a socket.
func (t SocketTable) String() string {
	var table, b strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	io.WriteString(w, "HOST\tPROTO\tSTATE\tRECV-Q\tSEND-Q\tLOCAL\tREMOTE\tFLOW\n")
	for _, s := range t {
		io.WriteString(w, strings.Join(s.columns(), "\t")+"\n")
	}
	w.Flush()
	for line := range strings.Lines(table.String()) {
		b.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return b.String()
}

// Sockets is the socket table: host by host in the order in which they were
// made, of each its listeners, packet connections and streams.
func (n *Network) Sockets() SocketTable {
	n.enter()
	defer n.mu.Unlock()
	var t SocketTable
	for _, h := range n.order {
		t = append(t, h.socketTable()...)
	}
	return t
}

// Sockets is the host's part of the socket table.
func (h *Host) Sockets() SocketTable {
	h.n.enter()
	defer h.n.mu.Unlock()
	return h.socketTable()
}

func (h *Host) socketTable() SocketTable {
	var t SocketTable
	for _, l := range h.listeners {
		t = append(t, Socket{
			Host: h.name, Proto: TCP, State: "LISTEN", RecvQ: len(l.ready), SendQ: l.backlog,
			Local: netip.AddrPortFrom(orAny(l.local.Addr(), 0), l.local.Port()),
		})
	}
	for _, s := range h.sockets {
		state := "UNCONN"
		if s.remote.IsValid() {
			state = "ESTAB"
		}
		t = append(t, Socket{Host: h.name, Proto: UDP, State: state, RecvQ: s.bytes, Local: s.localAny(), Remote: s.remote})
	}
	slices.SortStableFunc(t, func(a, b Socket) int { return int(a.Local.Port()) - int(b.Local.Port()) })
	for _, c := range h.sortedConns() {
		t = append(t, Socket{
			Host: h.name, Proto: TCP, State: c.ep.StateName(), RecvQ: c.ep.Buffered(), SendQ: c.ep.Unacknowledged(),
			Local: c.local, Remote: c.remote, Flow: c.flow.name,
		})
	}
	return t
}
