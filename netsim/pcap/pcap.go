// Package pcap writes what happened on a simulated network as a pcapng file, so that Wireshark and tshark show it:
// handshakes, retransmissions, resets, with the virtual time of every packet.
//
//	f, err := os.Create("run.pcapng")
//	...
//	err = pcap.Write(f, n.Trace())
//
// [Write] captures every packet where it was sent, each link an interface of its own. A packet that was lost is there
// with a comment that says why ("lost: cut"): filter with frame.comment contains "lost". [WriteHost] captures what
// tcpdump on one host would have seen.
//
// Packets have Ethernet, IP and TCP, UDP or ICMP headers. Payloads are there if the trace has them
// (netsim.Payloads), otherwise they are cut off, as by a capture with a short snap length.
package pcap

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/seed-5a7f77c4/deadair/netsim"
)

// Trace is what is written: a *netsim.Trace.
type Trace interface {
	Start() time.Time
	Events() []netsim.Event
}

// Write writes all packets, in the order in which they were sent. The error is one of writing.
func Write(w io.Writer, t Trace) error {
	return write(w, t, func(e netsim.Event) []frame {
		return []frame{{at: e.Sent, link: linkOf(e), event: e, comment: comment(e)}}
	})
}

// WriteHost writes what one host sent and received: what it sent when it did, lost later or not, and what it received
// at its arrival.
func WriteHost(w io.Writer, t Trace, host string) error {
	return write(w, t, func(e netsim.Event) []frame {
		var frames []frame
		if e.From == host {
			frames = append(frames, frame{at: e.Sent, link: linkOf(e), event: e, comment: comment(e)})
		}
		if e.To == host && e.Fate == netsim.Delivered {
			frames = append(frames, frame{at: e.At, link: linkOf(e), event: e})
		}
		return frames
	})
}

// frame is one packet in the file.
type frame struct {
	at      time.Duration
	link    string
	event   netsim.Event
	comment string
}

// linkOf names a link by its hosts, in the order of the alphabet.
func linkOf(e netsim.Event) string {
	return min(e.From, e.To) + " - " + max(e.From, e.To)
}

func comment(e netsim.Event) string {
	text := e.Flow
	if e.Fate == netsim.Dropped {
		text = "lost: " + e.Why + "  [" + e.Flow + "]"
	}
	if e.Copy {
		text += " (a copy made by the network)"
	}
	return text
}

func write(w io.Writer, t Trace, capture func(netsim.Event) []frame) error {
	var frames []frame
	for _, e := range t.Events() {
		if e.Fate == netsim.Delivered || e.Fate == netsim.Dropped {
			frames = append(frames, capture(e)...)
		}
	}
	slices.SortStableFunc(frames, func(a, b frame) int { return cmp.Compare(a.at, b.at) })

	out, links, err := begin(w, frames)
	if err != nil {
		return err
	}
	var pack packer
	for _, f := range frames {
		data, full := pack.packet(f.event)
		var options pcapgo.NgPacketOptions
		if f.comment != "" {
			options.Comments = []string{f.comment}
		}
		info := gopacket.CaptureInfo{
			Timestamp: t.Start().Add(f.at), CaptureLength: len(data), Length: full, InterfaceIndex: links[f.link],
		}
		if err := out.WritePacketWithOptions(info, data, options); err != nil {
			return fmt.Errorf("pcap: packet %v: %w", f.event, err)
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("pcap: %w", err)
	}
	return nil
}

// begin writes the file's head: an interface for every link, in the order of their names.
func begin(w io.Writer, frames []frame) (*pcapgo.NgWriter, map[string]int, error) {
	links := make(map[string]int)
	var names []string
	for _, f := range frames {
		if _, known := links[f.link]; !known {
			links[f.link] = 0
			names = append(names, f.link)
		}
	}
	if len(names) == 0 {
		names = []string{"nothing was sent"} // a file needs an interface
	}
	slices.Sort(names)
	options := pcapgo.DefaultNgWriterOptions
	options.SectionInfo = pcapgo.NgSectionInfo{Application: "deadair netsim"}
	out, err := pcapgo.NewNgWriterInterface(w, link(names[0]), options)
	for i, name := range names {
		links[name] = i
		if i > 0 && err == nil {
			_, err = out.AddInterface(link(name))
		}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("pcap: %w", err)
	}
	return out, links, nil
}

func link(name string) pcapgo.NgInterface {
	return pcapgo.NgInterface{Name: name, LinkType: layers.LinkTypeEthernet, SnapLength: 0}
}
