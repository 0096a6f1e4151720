package netsim

import (
	"net/netip"
	"syscall"
	"time"

	"github.com/seed-5a7f77c4/deadair/clock"
	"github.com/seed-5a7f77c4/deadair/netsim/internal/tcp"
)

// Header sizes in bytes, without options.
const (
	ipv4Header = 20
	ipv6Header = 40
	tcpHeader  = 20
	udpHeader  = 8
)

func headers(proto Proto, a netip.Addr) int {
	n := ipv4Header
	if a.Is6() {
		n = ipv6Header
	}
	if proto == TCP {
		return n + tcpHeader
	}
	return n + udpHeader
}

// about is what an ICMP error says: which packets cannot be delivered, and what
// their sender's call returns for it.
type about struct {
	proto Proto
	dst   netip.AddrPort
	errno syscall.Errno
}

// packet is one packet on its way. It belongs to the event queue while it
// travels and to a free list otherwise.
type packet struct {
	event    clock.Event
	n        *Network
	seg      *tcp.Segment // TCP
	data     []byte       // UDP
	about    about        // ICMP
	src, dst netip.AddrPort
	from, to *Host
	out, in  *Interface
	flow     *flow
	proto    Proto
	kind     Kind
	size     int
	sent     time.Duration
	cuts     uint64
	damaged  bool
	copied   bool
	next     *packet
}

func (n *Network) newPacket() *packet {
	p := n.idle
	if p == nil {
		p = &packet{n: n}
		p.event.Handler = p
		return p
	}
	n.idle = p.next
	p.next = nil
	return p
}

func (n *Network) freePacket(p *packet) {
	if p.seg != nil {
		p.seg.Free()
	}
	*p = packet{n: n, event: clock.Event{Handler: p}, next: n.idle}
	n.idle = p
}

func (p *packet) clone() *packet {
	c := p.n.newPacket()
	e := c.event
	*c = *p
	c.event = e
	c.event.Key = p.event.Key
	c.copied = true
	if p.seg != nil {
		c.seg = p.seg.Clone()
	}
	c.data = append([]byte(nil), p.data...)
	return c
}

// pipes are what the packet goes through.
func (p *packet) pipes() [3]*pipe { return p.n.way(p.from, p.to, p.out, p.in) }

// way is what lies between two hosts: the interface of the one, the path, the
// interface of the other. What is plain or absent is nil.
func (n *Network) way(from, to *Host, out, in *Interface) [3]*pipe {
	var ps [3]*pipe
	if out != nil && out != in {
		ps[0] = out.up
	}
	if to != nil {
		ps[1] = &n.path(from, to).pipe
	}
	if in != nil && out != in {
		ps[2] = in.down
	}
	return ps
}

// slack is how long a packet that leaves a for z now stays unnoticed for certain:
// the latency of its way, where nothing on it treats packets one by one.
func (n *Network) slack(a, z *Host, out, in *Interface) time.Duration {
	if z == nil || a == z || len(n.rules) > 0 {
		return 0
	}
	var sum time.Duration
	for _, w := range n.way(a, z, out, in) {
		if w == nil {
			continue
		}
		if !w.quiet() {
			return 0
		}
		sum += w.conditions.Latency
	}
	return sum
}

func segmentKind(s *tcp.Segment) Kind {
	switch {
	case s.Flags&tcp.RST != 0:
		return RST
	case s.Flags&tcp.SYN != 0 && s.Flags&tcp.ACK != 0:
		return SYNACK
	case s.Flags&tcp.SYN != 0:
		return SYN
	}
	var k Kind
	if s.Len > 0 {
		k |= Data
	}
	if s.Flags&tcp.FIN != 0 {
		k |= FIN
	}
	if k == 0 {
		k = ACK
	}
	return k
}

// view is the packet as rules see it.
func (p *packet) view(now time.Duration) Packet {
	e := p.line()
	e.At = now
	if p.seg != nil {
		e.Payload = p.seg.AppendPayload(nil)
	} else {
		e.Payload = p.data
	}
	return Packet{From: p.from, To: p.to, Event: e, Conn: p.flow.nth, Age: now - p.flow.firstAt}
}

// line is the packet as the trace has it.
func (p *packet) line() Event {
	e := Event{
		Sent: p.sent, From: p.from.name, Src: p.src, Dst: p.dst, Proto: p.proto, Kind: p.kind,
		Flow: p.flow.name, Len: len(p.data), Size: p.size, Copy: p.copied,
	}
	if p.to != nil {
		e.To = p.to.name
	} else {
		e.To = p.dst.Addr().String()
	}
	if s := p.seg; s != nil {
		e.Seq, e.Ack, e.Right, e.Len, e.Again, e.Probe = s.Seq, s.Ack, s.Right, s.Len, s.Again, s.Probe
	}
	return e
}

// record writes down what became of p.
func (n *Network) record(now time.Duration, p *packet, fate Fate, why string) {
	e := p.line()
	e.At, e.Fate, e.Why = now, fate, why
	if n.opts.payloads > 0 {
		if p.seg != nil {
			e.Payload = p.seg.AppendPayload(nil)
		} else {
			e.Payload = append([]byte(nil), p.data...)
		}
		e.Payload = e.Payload[:min(len(e.Payload), n.opts.payloads)]
	}
	n.trace.add(e)
}

func (n *Network) lose(now time.Duration, p *packet, why string) {
	n.record(now, p, Dropped, why)
	n.freePacket(p)
}

// depart is where the way of p through the pipes begins: a cut of one of them
// concerns it from now on.
func (p *packet) depart(now time.Duration, pipes [3]*pipe) {
	p.sent = now
	p.event.Key = clock.Key{Name: p.flow.name, Kind: kindArrive}
	for _, w := range pipes {
		if w != nil {
			p.cuts += w.cuts
		}
	}
}

// send judges a packet and puts it on its way. It runs in an event, under the
// lock, and owns p.
func (n *Network) send(now time.Duration, p *packet) {
	pipes := p.pipes()
	p.depart(now, pipes)
	if p.flow.firstAt < 0 {
		p.flow.firstAt = now
	}
	if p.out != nil && !p.out.works(p.src.Addr()) {
		n.lose(now, p, "interface down")
		return
	}
	if p.to == nil {
		n.lose(now, p, "nobody there")
		return
	}
	var delay time.Duration
	copies := 0
	for _, f := range n.rules {
		if !f.matches(now, p) {
			continue
		}
		if f.strike(now, p) {
			return
		}
		v := &f.rule.Verdict
		delay += v.Delay
		copies += v.Duplicate
	}
	for range copies {
		n.travel(now, p.clone(), pipes[:], delay)
	}
	n.travel(now, p, pipes[:], delay)
}

// travel takes a packet through what is left of its way: pipes with their
// faults, middleboxes and weather.
func (n *Network) travel(now time.Duration, p *packet, pipes []*pipe, delay time.Duration) {
	for i, w := range pipes {
		if w == nil {
			continue
		}
		for _, f := range w.faults {
			if (f.rule.Kind == 0 || f.rule.Kind&p.kind != 0) && f.strike(now, p) {
				return
			}
		}
		if w.table != nil && !w.table.pass(n, now, p) {
			return
		}
		if w.weather == nil {
			delay += w.conditions.Latency
			continue
		}
		fate := w.weather.judge(now+delay, p.size)
		if fate.Drop != notDropped {
			n.lose(now, p, fate.Drop.String())
			return
		}
		if fate.Corrupt {
			p.corrupt(fate.CorruptBit)
		}
		if fate.Dup {
			n.travel(now, p.clone(), pipes[i+1:], delay+fate.DupDelay)
		}
		delay += fate.Delay
	}
	n.schedule(p, now+delay)
}

// strike does to p what the fault's verdict says. It reports whether that was
// the end of it; p then belongs to somebody else.
func (f *Fault) strike(now time.Duration, p *packet) (gone bool) {
	n := p.n
	f.hits++
	v := &f.rule.Verdict
	switch v.Action {
	case Drop:
		n.lose(now, p, f.why("dropped"))
		return true
	case Reject, Unreach:
		n.reject(now, p, v.Action, f.why("rejected"))
		return true
	case Reset:
		n.resetEnds(now, p)
		n.lose(now, p, f.why("reset"))
		return true
	case Hold:
		f.held = append(f.held, p)
		return true
	}
	if v.Corrupt {
		p.corrupt(draw(drawKey(n.opts.seed, f.name, false), drawCorruptBit, uint64(f.hits)))
	}
	if v.Truncate > 0 {
		p.truncate(v.Truncate)
	}
	return false
}

func (f *Fault) why(otherwise string) string {
	if f.rule.Verdict.Why != "" {
		return f.rule.Verdict.Why
	}
	return otherwise + " by " + f.name
}

// corrupt inverts one bit. A segment is not touched: its checksum fails.
func (p *packet) corrupt(bit uint64) {
	p.damaged = true
	if len(p.data) > 0 {
		bit %= uint64(len(p.data)) * 8
		p.data[bit/8] ^= 1 << (bit % 8)
	}
}

// truncate cuts the payload. A segment is not touched: its checksum fails.
func (p *packet) truncate(n int) {
	switch {
	case p.proto == TCP && p.seg.Len > n:
		p.damaged = true
	case p.proto == UDP && len(p.data) > n:
		p.size -= len(p.data) - n
		p.data = p.data[:n]
	}
}

// schedule lets p arrive at a time.
func (n *Network) schedule(p *packet, at time.Duration) { n.sched.Schedule(&p.event, at) }

// Fire is the arrival.
func (p *packet) Fire(now time.Duration) {
	n := p.n
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return
	}
	var cuts uint64
	var cut *Fault
	for _, w := range p.pipes() {
		if w == nil {
			continue
		}
		cuts += w.cuts
		for _, f := range w.faults {
			switch f.rule.Verdict.Action {
			case Hold:
				f.hits++
				f.held = append(f.held, p)
				return
			case Drop:
				cut = f
			}
		}
		if w.lastCut != nil && w.lastCut.since >= p.sent && p.cuts < cuts {
			w.lastCut.hits++
		}
	}
	h := p.to
	switch {
	case cuts != p.cuts:
		n.lose(now, p, "cut on its way")
	case cut != nil: // it was held meanwhile
		cut.hits++
		n.lose(now, p, cut.why("dropped"))
	case h.crashed:
		n.lose(now, p, "host down")
	case h.paused:
		h.asleep = append(h.asleep, p)
	case p.in != nil && !p.in.works(p.dst.Addr()):
		n.lose(now, p, "interface down")
	case p.proto == TCP && p.damaged:
		n.lose(now, p, "bad checksum")
	case p.proto == TCP:
		h.inputSegment(now, p)
	default:
		h.inputDatagram(now, p)
	}
}

// reject answers p for its destination, a round trip later, and loses it.
// Nothing answers a reset or an ICMP error.
func (n *Network) reject(now time.Duration, p *packet, how Action, why string) {
	var back *packet
	switch {
	case p.proto == ICMP || p.kind == RST:
	case how == Unreach:
		back = n.unreachable(p, syscall.EHOSTUNREACH)
	case p.proto == TCP:
		back = n.resetFor(p)
	default:
		back = n.unreachable(p, syscall.ECONNREFUSED)
	}
	if back != nil {
		back.depart(now, back.pipes())
		n.schedule(back, now+p.latency(now)+back.latency(now))
	}
	n.lose(now, p, why)
}

// latency is how long the way takes in fair weather, without jitter.
func (p *packet) latency(now time.Duration) time.Duration {
	var sum time.Duration
	for _, w := range p.pipes() {
		if w != nil {
			sum += w.conditions.present(now).Latency
		}
	}
	return sum
}

// answer makes an empty packet that goes back where p came from.
func (n *Network) answer(p *packet) *packet {
	b := n.newPacket()
	b.src, b.dst, b.from, b.to, b.out, b.in = p.dst, p.src, p.to, p.from, p.in, p.out
	b.flow = p.flow
	return b
}

// resetFor makes the RST that answers a segment nobody wants.
func (n *Network) resetFor(p *packet) *packet {
	b := n.answer(p)
	s := n.pool.NewSegment()
	s.Flags = tcp.RST | tcp.ACK
	s.Seq = p.seg.Ack
	s.Ack = p.seg.Seq + int64(p.seg.Len)
	if p.seg.Flags&(tcp.SYN|tcp.FIN) != 0 {
		s.Ack++
	}
	b.seg, b.proto, b.kind, b.size = s, TCP, RST, headers(TCP, p.src.Addr())
	return b
}
