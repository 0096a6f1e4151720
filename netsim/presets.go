package netsim

import "time"

// Preset is a kind of network with its two directions, seen from the machine that uses it.
type Preset struct {
	Name     string
	Down, Up Conditions // towards the machine, and away from it
	Source   string     // where the figures are from
}

// The sources of the presets. NLC are the profiles that Apple ships with the Network Link Conditioner of Xcode's
// additional tools. The queues of access lines are those found by Kreibich, Weaver, Nechaev, Paxson, "Netalyzr:
// illuminating the edge network", IMC 2010: sized in bytes, 256 KiB being frequent, whatever the rate is. Faster lines
// have netem's default, 1000 packets.
const (
	sourceNLC       = "Apple Network Link Conditioner; queue: Netalyzr (IMC 2010)"
	sourceNLCFast   = "Apple Network Link Conditioner; queue: tc-netem's default limit"
	accessQueue     = 256 << 10
	thousandPackets = 1000 * DefaultMTU
)

var presets = []Preset{
	{
		Name: "Perfect", Source: "none: everything arrives at once",
	}, {
		Name:   "LAN",
		Down:   Conditions{Latency: 100 * us, Rate: 1000 * mbit, Queue: thousandPackets},
		Up:     Conditions{Latency: 100 * us, Rate: 1000 * mbit, Queue: thousandPackets},
		Source: "IEEE 802.3ab (1000BASE-T) behind one switch, as pinged",
	}, {
		Name:   "WiFi",
		Down:   Conditions{Latency: 1 * ms, Rate: 40 * mbit, Queue: thousandPackets},
		Up:     Conditions{Latency: 1 * ms, Rate: 33 * mbit, Queue: thousandPackets},
		Source: sourceNLCFast,
	}, {
		Name:   "LTE",
		Down:   Conditions{Latency: 50 * ms, Rate: 50 * mbit, Queue: thousandPackets},
		Up:     Conditions{Latency: 65 * ms, Rate: 10 * mbit, Queue: thousandPackets},
		Source: sourceNLCFast,
	}, {
		Name:   "3G",
		Down:   Conditions{Latency: 100 * ms, Rate: 780 * kbit, Queue: accessQueue},
		Up:     Conditions{Latency: 100 * ms, Rate: 330 * kbit, Queue: accessQueue},
		Source: sourceNLC,
	}, {
		Name:   "Edge",
		Down:   Conditions{Latency: 400 * ms, Rate: 240 * kbit, Queue: accessQueue},
		Up:     Conditions{Latency: 440 * ms, Rate: 200 * kbit, Queue: accessQueue},
		Source: sourceNLC,
	}, {
		Name:   "DSL",
		Down:   Conditions{Latency: 5 * ms, Rate: 2 * mbit, Queue: accessQueue},
		Up:     Conditions{Latency: 5 * ms, Rate: 256 * kbit, Queue: accessQueue},
		Source: sourceNLC,
	}, {
		Name:   "Transatlantic",
		Down:   Conditions{Latency: 36 * ms, Jitter: 500 * us, Distribution: Normal},
		Up:     Conditions{Latency: 36 * ms, Jitter: 500 * us, Distribution: Normal},
		Source: "ITU-T G.114 table A.1: 5 µs/km of submarine fibre, for 7200 km from server to server; jitter chosen",
	}, {
		Name:   "Satellite",
		Down:   Conditions{Latency: 260 * ms, Rate: 50 * mbit, Queue: thousandPackets},
		Up:     Conditions{Latency: 260 * ms, Rate: 10 * mbit, Queue: thousandPackets},
		Source: "ITU-T G.114 table A.1: 260 ms by a geostationary satellite; rates chosen as those of a plan for homes",
	}, {
		Name:   "Metro",
		Down:   train(50*ms, 50*mbit),
		Up:     train(65*ms, 10*mbit),
		Source: "the shape of a ride: LTE as above, a cell's edge with burst losses, a tunnel; phases chosen for tests",
	},
}

const (
	us   = time.Microsecond
	ms   = time.Millisecond
	kbit = int64(1e3)
	mbit = int64(1e6)
)

// train goes from station to station: good at the platform, worse towards the edge of the cell, nothing in the tunnel,
// and back. One round takes 90 s.
func train(latency time.Duration, rate int64) Conditions {
	good := Conditions{Latency: latency, Rate: rate, Queue: thousandPackets}
	edge := Conditions{
		Latency: 3 * latency, Jitter: latency, Distribution: Pareto, Rate: rate / 10, Queue: thousandPackets,
		Burst: GilbertElliott{P: 0.01, R: 0.25},
	}
	return Cycle(
		Phase{For: 40 * time.Second, Conditions: good},
		Phase{For: 15 * time.Second, Conditions: edge},
		Phase{For: 20 * time.Second, Conditions: Conditions{Loss: 1}},
		Phase{For: 15 * time.Second, Conditions: edge})
}

// Presets lists the presets with both their directions and the source of every figure.
func Presets() []Preset { return append([]Preset(nil), presets...) }

// The presets as conditions: the direction towards the machine that uses the network. Where up differs from down, see
// Presets. Metro changes with time: 40 s good, 15 s bad, 20 s nothing, 15 s bad, and again.
var (
	Perfect       = towards("Perfect")
	LAN           = towards("LAN")
	WiFi          = towards("WiFi")
	LTE           = towards("LTE")
	ThreeG        = towards("3G")
	Edge          = towards("Edge")
	DSL           = towards("DSL")
	Transatlantic = towards("Transatlantic")
	Satellite     = towards("Satellite")
	Metro         = towards("Metro")
)

func towards(name string) Conditions {
	for _, p := range presets {
		if p.Name == name {
			return p.Down
		}
	}
	panic("netsim: no preset " + name)
}
