package pcap_test

import (
	"bytes"
	"io"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/netsim"
	"github.com/seed-5a7f77c4/deadair/netsim/pcap"
)

const ms = time.Millisecond

// run is a trace made by hand.
type run []netsim.Event

func (r run) Start() time.Time       { return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) }
func (r run) Events() []netsim.Event { return r }

var (
	app4, relay4 = netip.MustParseAddrPort("192.0.2.1:40000"), netip.MustParseAddrPort("192.0.2.2:443")
	app6, relay6 = netip.MustParseAddrPort("[2001:db8::1]:40001"), netip.MustParseAddrPort("[2001:db8::2]:53")
)

// there and back make a packet that takes 10 ms.
func there(at time.Duration, k netsim.Kind, seq, ack int64, n int) netsim.Event {
	return netsim.Event{
		Sent: at, At: at + 10*ms, From: "app", To: "relay", Src: app4, Dst: relay4, Proto: netsim.TCP, Kind: k,
		Fate: netsim.Delivered, Flow: "app>relay:443#1", Seq: seq, Ack: ack, Right: ack + 64<<10, Len: n, Size: 40 + n,
	}
}

func back(at time.Duration, k netsim.Kind, seq, ack int64, n int) netsim.Event {
	e := there(at, k, seq, ack, n)
	e.From, e.To, e.Src, e.Dst = e.To, e.From, e.Dst, e.Src
	return e
}

func lost(e netsim.Event, why string) netsim.Event {
	e.Fate, e.Why, e.At = netsim.Dropped, why, e.Sent
	return e
}

func again(e netsim.Event) netsim.Event {
	e.Again = true
	return e
}

func story() run {
	hello := there(20*ms, netsim.Data, 1, 1, 5)
	hello.Payload = []byte("hello")
	udp := netsim.Event{
		Sent: 500 * ms, At: 510 * ms, From: "app", To: "dns", Src: app6, Dst: relay6, Proto: netsim.UDP, Kind: netsim.Datagram,
		Fate: netsim.Delivered, Flow: "app>dns:53#1", Len: 30, Size: 78,
	}
	nobody := udp
	nobody.From, nobody.To, nobody.Src, nobody.Dst, nobody.Kind = "dns", "app", relay6, app6, netsim.Unreachable
	nobody.Sent, nobody.At, nobody.Len, nobody.Proto = 510*ms, 520*ms, 0, netsim.ICMP
	nobody4 := nobody
	nobody4.Src, nobody4.Dst = relay4, app4
	return run{
		there(0, netsim.SYN, 0, 0, 0),
		back(10*ms, netsim.SYNACK, 0, 1, 0),
		{At: 15 * ms, Fate: netsim.Note, Why: "cut", From: "app", To: "relay"},
		there(20*ms, netsim.ACK, 1, 1, 0),
		hello,
		lost(there(21*ms, netsim.Data, 6, 1, 1460), "cut"),
		there(22*ms, netsim.Data, 1466, 1, 1460),
		back(32*ms, netsim.ACK, 1, 6, 0),
		again(there(221*ms, netsim.Data, 6, 1, 1460)),
		back(231*ms, netsim.ACK, 1, 2926, 0),
		back(240*ms, netsim.Data|netsim.FIN, 1, 2926, 100),
		there(250*ms, netsim.RST, 2926, 102, 0),
		udp, nobody, nobody4,
	}
}

// packets reads a file back.
func packets(t *testing.T, file []byte) (all []gopacket.Packet, comments []string, links []string) {
	r, err := pcapgo.NewNgReader(bytes.NewReader(file), pcapgo.DefaultNgReaderOptions)
	require.NoError(t, err)
	for {
		data, info, options, err := r.ReadPacketDataWithOptions()
		if err == io.EOF {
			return all, comments, links
		}
		require.NoError(t, err)
		p := gopacket.NewPacket(data, layers.LinkTypeEthernet, gopacket.Default)
		p.Metadata().CaptureInfo = info
		all = append(all, p)
		comments = append(comments, options.Comments...)
		i, err := r.Interface(info.InterfaceIndex)
		require.NoError(t, err)
		links = append(links, i.Name)
	}
}

func TestFileHasWhatWasSent(t *testing.T) {
	var file bytes.Buffer
	require.NoError(t, pcap.Write(&file, story()))
	all, comments, links := packets(t, file.Bytes())
	require.Len(t, all, len(story())-1, "all but the note")
	assert.Equal(t, "lost: cut  [app>relay:443#1]", comments[4])
	assert.Equal(t, []string{"app - relay", "app - dns"}, []string{links[0], links[11]})

	syn := all[0].Layer(layers.LayerTypeTCP).(*layers.TCP)
	assert.True(t, syn.SYN && !syn.ACK)
	assert.EqualValues(t, 0xffff, syn.Window)
	assert.Equal(t, "192.0.2.1", all[0].NetworkLayer().NetworkFlow().Src().String())
	assert.True(t, all[0].Metadata().Timestamp.Equal(story().Start()))
	synack := all[1].Layer(layers.LayerTypeTCP).(*layers.TCP)
	assert.True(t, synack.SYN && synack.ACK)
	assert.EqualValues(t, 1, synack.Ack)
	assert.True(t, all[1].Metadata().Timestamp.Equal(story().Start().Add(10*ms)))

	data := all[3].Layer(layers.LayerTypeTCP).(*layers.TCP)
	assert.Equal(t, "hello", string(data.Payload))
	assert.EqualValues(t, 64<<10>>8, data.Window)
	lost := all[4].Metadata()
	assert.Equal(t, 14+20+20+1460, lost.Length)
	assert.Equal(t, 14+20+20, lost.CaptureLength, "what is not known is cut off")
	assert.EqualValues(t, 6, all[7].Layer(layers.LayerTypeTCP).(*layers.TCP).Seq, "the retransmission, in the order of sending")
	fin := all[9].Layer(layers.LayerTypeTCP).(*layers.TCP)
	assert.True(t, fin.FIN && fin.PSH && fin.ACK)
	assert.True(t, all[10].Layer(layers.LayerTypeTCP).(*layers.TCP).RST)

	udp := all[11].Layer(layers.LayerTypeUDP).(*layers.UDP)
	assert.EqualValues(t, 53, udp.DstPort)
	assert.EqualValues(t, 38, udp.Length)
	assert.Equal(t, "2001:db8::1", all[11].NetworkLayer().NetworkFlow().Src().String())
	assert.NotNil(t, all[12].Layer(layers.LayerTypeICMPv6))
	icmp := all[13].Layer(layers.LayerTypeICMPv4).(*layers.ICMPv4)
	assert.Equal(t, "DestinationUnreachable(Port)", icmp.TypeCode.String())
}

func TestOneHostSeesWhatItSentAndWhatArrived(t *testing.T) {
	var file bytes.Buffer
	require.NoError(t, pcap.WriteHost(&file, story(), "relay"))
	all, _, _ := packets(t, file.Bytes())
	require.Len(t, all, 10, "neither the lost packet nor those of others")
	assert.True(t, all[0].Metadata().Timestamp.Equal(story().Start().Add(10*ms)), "the SYN at its arrival")
	for i := 1; i < len(all); i++ {
		assert.False(t, all[i].Metadata().Timestamp.Before(all[i-1].Metadata().Timestamp), "in order")
	}
	file.Reset()
	require.NoError(t, pcap.WriteHost(&file, story(), "nobody"))
	all, _, _ = packets(t, file.Bytes())
	assert.Empty(t, all)
}

func TestChecksumsHold(t *testing.T) {
	var file bytes.Buffer
	e := there(0, netsim.Data, 1, 1, 5)
	e.Payload = []byte("hello")
	require.NoError(t, pcap.Write(&file, run{e}))
	all, _, _ := packets(t, file.Bytes())
	require.NoError(t, all[0].TransportLayer().(*layers.TCP).SetNetworkLayerForChecksum(all[0].NetworkLayer()))
	sum, err := all[0].TransportLayer().(*layers.TCP).ComputeChecksum()
	require.NoError(t, err)
	assert.Zero(t, sum, "with its checksum in it, a segment sums up to 0")
}

// Whatever a trace has in it, the file can be read.
func TestOddEvents(t *testing.T) {
	odd := run{
		{Fate: netsim.Delivered, Proto: netsim.TCP, Kind: netsim.Data},
		{Fate: netsim.Delivered, Proto: netsim.UDP, Kind: netsim.Datagram, Src: app4, Dst: relay6, Len: 70_000, From: "a"},
		{Fate: netsim.Dropped, Proto: netsim.TCP, Kind: netsim.RST, Src: app6, Dst: relay6, Seq: 1 << 40, Ack: -1, Copy: true},
		{Fate: netsim.Delivered, Kind: netsim.Unreachable},
	}
	var file bytes.Buffer
	require.NoError(t, pcap.Write(&file, odd))
	all, _, _ := packets(t, file.Bytes())
	assert.Len(t, all, len(odd))
}

// A run of the simulator itself: every packet of its trace is in the file, and the bytes of the stream are, too.
func TestRealRun(t *testing.T) {
	var file bytes.Buffer
	sent := 0
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		app, relay := n.Host("app"), n.Host("relay")
		l, err := relay.Listen("tcp", ":443")
		require.NoError(t, err)
		go func() {
			if c, err := l.Accept(); err == nil {
				io.Copy(c, c)
				c.Close()
			}
		}()
		c, err := app.DialContext(t.Context(), "tcp", "relay:443")
		require.NoError(t, err)
		n.Link(app, relay).Cut()
		time.AfterFunc(time.Second, n.Link(app, relay).Heal)
		_, err = c.Write([]byte("hello, hello"))
		require.NoError(t, err)
		_, err = io.ReadFull(c, make([]byte, 12))
		require.NoError(t, err)
		require.NoError(t, c.Close())
		time.Sleep(time.Second)
		_, err = app.DialContext(t.Context(), "tcp", "relay:9")
		require.Error(t, err)
		sent = n.Trace().Count(func(e netsim.Event) bool { return e.Fate != netsim.Note })
		require.NoError(t, pcap.Write(&file, n.Trace()))
	}, netsim.Payloads(64))
	all, comments, _ := packets(t, file.Bytes())
	assert.Len(t, all, sent)
	assert.Contains(t, strings.Join(comments, "\n"), "lost: ")
	echoed := 0
	for _, p := range all {
		if tcp := p.TransportLayer().(*layers.TCP); string(tcp.Payload) == "hello, hello" {
			echoed++
		}
	}
	assert.GreaterOrEqual(t, echoed, 3, "sent, sent again, and back")
	if path := os.Getenv("PCAP_FILE"); path != "" {
		require.NoError(t, os.WriteFile(path, file.Bytes(), 0o644))
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, os.ErrClosed }

func TestErrorsOfWritingComeOut(t *testing.T) {
	assert.ErrorIs(t, pcap.Write(broken{}, story()), os.ErrClosed)
}
