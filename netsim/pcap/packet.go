package pcap

import (
	"encoding/binary"
	"hash/fnv"
	"net"
	"net/netip"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"github.com/seed-5a7f77c4/deadair/netsim"
)

const (
	windowShift = 8 // the window scale that the SYNs announce
	mss         = 1460
	hops        = 64 // Linux's first TTL
)

// packer makes frames of events.
type packer struct {
	buffer gopacket.SerializeBuffer
	ids    uint16
}

// packet gives what was captured of an event, and how long the whole frame was.
func (p *packer) packet(e netsim.Event) (data []byte, full int) {
	if p.buffer == nil {
		p.buffer = gopacket.NewSerializeBuffer()
	}
	src, dst := e.Src.Addr(), e.Dst.Addr()
	if !src.IsValid() || !dst.IsValid() {
		src, dst = unknownAddr, unknownAddr
	}
	transport, payload, unknown, protocol := transportOf(e)
	p.ids++
	ip, etherType := ipHeader(src, dst, protocol, p.ids)
	err := serialize(p.buffer, ip, transport, gopacket.Payload(payload))
	if err != nil {
		// Lengths that no header can hold: what is written is a frame without content, and the comment says what it was.
		header := ethernetHeader(e, etherType)
		return header, max(e.Size, 0) + len(header)
	}
	data = append(ethernetHeader(e, etherType), p.buffer.Bytes()...)
	return data[:len(data)-unknown], len(data)
}

var unknownAddr = netip.IPv4Unspecified()

// serialize puts layers into a buffer, with lengths and checksums.
func serialize(buffer gopacket.SerializeBuffer, ip, transport gopacket.SerializableLayer, rest ...gopacket.SerializableLayer) error {
	if t, ok := transport.(interface {
		SetNetworkLayerForChecksum(gopacket.NetworkLayer) error
	}); ok {
		if err := t.SetNetworkLayerForChecksum(ip.(gopacket.NetworkLayer)); err != nil {
			return err
		}
	}
	all := append([]gopacket.SerializableLayer{ip, transport}, rest...)
	return gopacket.SerializeLayers(buffer, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, all...)
}

func both4(a, b netip.Addr) bool { return a.Unmap().Is4() && b.Unmap().Is4() }

func ipHeader(src, dst netip.Addr, protocol layers.IPProtocol, id uint16) (gopacket.SerializableLayer, layers.EthernetType) {
	if both4(src, dst) {
		return &layers.IPv4{
			Version: 4, IHL: 5, Id: id, Flags: layers.IPv4DontFragment, TTL: hops, Protocol: protocol,
			SrcIP: src.Unmap().AsSlice(), DstIP: dst.Unmap().AsSlice(),
		}, layers.EthernetTypeIPv4
	}
	from, to := src.As16(), dst.As16()
	return &layers.IPv6{Version: 6, HopLimit: hops, NextHeader: protocol, SrcIP: from[:], DstIP: to[:]}, layers.EthernetTypeIPv6
}

// transportOf gives the header after IP's and what comes behind it, of which the last bytes may be unknown.
func transportOf(e netsim.Event) (header gopacket.SerializableLayer, payload []byte, unknown int, protocol layers.IPProtocol) {
	if e.Kind&netsim.Unreachable != 0 || e.Proto == netsim.ICMP {
		header, payload, protocol = unreachable(e)
		return header, payload, 0, protocol
	}
	payload = make([]byte, e.Len)
	unknown = e.Len - copy(payload, e.Payload)
	if e.Proto == netsim.UDP {
		return &layers.UDP{SrcPort: layers.UDPPort(e.Src.Port()), DstPort: layers.UDPPort(e.Dst.Port())}, payload, unknown, layers.IPProtocolUDP
	}
	return segment(e), payload, unknown, layers.IPProtocolTCP
}

func segment(e netsim.Event) *layers.TCP {
	is := func(k netsim.Kind) bool { return e.Kind&k != 0 }
	t := &layers.TCP{
		SrcPort: layers.TCPPort(e.Src.Port()), DstPort: layers.TCPPort(e.Dst.Port()),
		Seq: uint32(e.Seq), Ack: uint32(e.Ack),
		SYN: is(netsim.SYN | netsim.SYNACK), FIN: is(netsim.FIN), RST: is(netsim.RST),
		PSH: is(netsim.Data) && e.Len > 0,
		ACK: !is(netsim.SYN) && (e.Ack > 0 || !is(netsim.RST)),
	}
	window := max(0, e.Right-e.Ack)
	if t.SYN {
		t.Options = []layers.TCPOption{
			{OptionType: layers.TCPOptionKindMSS, OptionLength: 4, OptionData: []byte{mss >> 8, mss & 0xff}},
			{OptionType: layers.TCPOptionKindNop},
			{OptionType: layers.TCPOptionKindWindowScale, OptionLength: 3, OptionData: []byte{windowShift}},
		}
	} else {
		window >>= windowShift
	}
	t.Window = uint16(min(window, 0xffff))
	if t.RST {
		t.Window = 0
	}
	return t
}

// unreachable is the message that a port has nobody, and what it quotes: the head of the datagram that was sent there.
func unreachable(e netsim.Event) (message gopacket.SerializableLayer, quote []byte, protocol layers.IPProtocol) {
	from, to := e.Dst, e.Src
	ip, _ := ipHeader(from.Addr(), to.Addr(), layers.IPProtocolUDP, 0)
	udp := &layers.UDP{SrcPort: layers.UDPPort(from.Port()), DstPort: layers.UDPPort(to.Port())}
	buffer := gopacket.NewSerializeBuffer()
	if serialize(buffer, ip, udp) == nil {
		quote = buffer.Bytes()
	}
	if both4(from.Addr(), to.Addr()) {
		code := layers.CreateICMPv4TypeCode(layers.ICMPv4TypeDestinationUnreachable, layers.ICMPv4CodePort)
		return &layers.ICMPv4{TypeCode: code}, quote, layers.IPProtocolICMPv4
	}
	code := layers.CreateICMPv6TypeCode(layers.ICMPv6TypeDestinationUnreachable, layers.ICMPv6CodePortUnreachable)
	return &layers.ICMPv6{TypeCode: code}, append(make([]byte, 4), quote...), layers.IPProtocolICMPv6
}

// ethernetHeader is made by hand: gopacket's layer pads frames to 60 bytes, as no capture on the host that sends does.
func ethernetHeader(e netsim.Event, t layers.EthernetType) []byte {
	return binary.BigEndian.AppendUint16(append(mac(e.To), mac(e.From)...), uint16(t))
}

// mac is the address of a host: locally administered, made from its name.
func mac(host string) net.HardwareAddr {
	h := fnv.New32a()
	h.Write([]byte(host))
	sum := h.Sum32()
	return net.HardwareAddr{2, 0, byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)}
}
