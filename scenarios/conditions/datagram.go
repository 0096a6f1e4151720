package conditions

import (
	"time"

	"github.com/seed-5a7f77c4/deadair/netsim"
)

// udpOverIPv4 is the size of the headers in front of a datagram's payload.
const udpOverIPv4 = 28

// LargeDatagramsLost makes datagrams between two hosts vanish whose payload is
// more than size bytes over IPv4. Report: quic-go/quic-go#5815 (1232 bytes; QUIC
// completes its handshake with 1200).
func LargeDatagramsLost(n *netsim.Network, between *netsim.Link, size int) *netsim.Fault {
	mustBePositive("LargeDatagramsLost", "size", size)
	return n.Apply(netsim.Rule{
		Name: "large datagrams lost", Between: between, Proto: netsim.UDP, MinSize: size + udpOverIPv4 + 1, Verdict: drop,
	})
}

// LargeDatagramsRefused makes the host's own interface too narrow for datagrams
// whose payload is more than size bytes over IPv4: the write fails with EMSGSIZE.
// Report: quic-go/quic-go#5815.
func LargeDatagramsRefused(i *netsim.Interface, size int) {
	mustBePositive("LargeDatagramsRefused", "size", size)
	c := netsim.Conditions{MTU: size + udpOverIPv4}
	i.SetConditions(c, c)
}

// KthDatagramLost makes exactly the k-th datagram between two hosts, from 1,
// vanish. Report: pion/dtls#479.
func KthDatagramLost(n *netsim.Network, between *netsim.Link, k int) *netsim.Fault {
	return kthDatagram(n, "KthDatagramLost", between, k, drop)
}

// KthDatagramDoubled makes exactly the k-th datagram between two hosts arrive
// twice. Report: pion/dtls#479.
func KthDatagramDoubled(n *netsim.Network, between *netsim.Link, k int) *netsim.Fault {
	return kthDatagram(n, "KthDatagramDoubled", between, k, netsim.Verdict{Duplicate: 1})
}

// KthDatagramSwapped makes exactly the k-th datagram between two hosts a
// millisecond late, so that what is sent after it within that time overtakes it.
// Report: pion/dtls#479.
func KthDatagramSwapped(n *netsim.Network, between *netsim.Link, k int) *netsim.Fault {
	return kthDatagram(n, "KthDatagramSwapped", between, k, netsim.Verdict{Delay: time.Millisecond})
}

// LossAbove loses every k-th of the datagrams between two hosts whose payload is
// more than size bytes over IPv4, and none of the others. Report:
// quic-go/quic-go#5768 (1 % above 1440 bytes on the wire, which is a payload of
// 1412; 40 ms of round trip).
func LossAbove(n *netsim.Network, between *netsim.Link, size, k int) *netsim.Fault {
	mustBePositive("LossAbove", "size", size)
	mustBePositive("LossAbove", "k", k)
	return n.Apply(netsim.Rule{
		Name: "loss of large datagrams", Between: between, Proto: netsim.UDP, MinSize: size + udpOverIPv4 + 1, Every: k, Verdict: drop,
	})
}

func kthDatagram(n *netsim.Network, call string, between *netsim.Link, k int, v netsim.Verdict) *netsim.Fault {
	mustBePositive(call, "k", k)
	return n.Apply(netsim.Rule{Name: call, Between: between, Proto: netsim.UDP, First: k, Verdict: v})
}
