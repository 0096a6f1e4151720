package netsim

import "strings"

// Proto is the transport a packet belongs to.
type Proto uint8

// The transports.
const (
	TCP Proto = iota + 1
	UDP
	ICMP
)

// String is the transport as a net.Addr names it.
func (p Proto) String() string {
	switch p {
	case TCP:
		return "tcp"
	case UDP:
		return "udp"
	case ICMP:
		return "icmp"
	}
	return "net"
}

// Kind says what a packet is for. It is a set: a segment may carry data and a
// FIN, and a rule may ask for several kinds.
type Kind uint8

// The kinds.
const (
	SYN         Kind = 1 << iota // the first packet of a connection
	SYNACK                       // its answer
	ACK                          // an acknowledgement and nothing else
	Data                         // a stream's bytes
	FIN                          // the end of a stream's bytes
	RST                          // a reset
	Datagram                     // a UDP datagram
	Unreachable                  // an ICMP error
)

var kindNames = [...]string{"SYN", "SYN-ACK", "ACK", "DATA", "FIN", "RST", "DGRAM", "UNREACHABLE"}

// String lists the kinds in the set, joined by +.
func (k Kind) String() string {
	var s []string
	for i, name := range kindNames {
		if k&(1<<i) != 0 {
			s = append(s, name)
		}
	}
	return strings.Join(s, "+")
}
