package netsim

import (
	"fmt"
	"math"
	"time"
)

// Conditions says what the weather is like on one direction of a path. The zero value is a perfect path: everything
// arrives at once. Names, meanings and units are those of Linux's tc-netem(8) where it has the thing. It is a plain
// value: copy it, change a field, compare it with ==.
//
//	slow := netsim.Conditions{Latency: 80 * time.Millisecond, Jitter: 5 * time.Millisecond, Loss: 0.01}
//
// A probability or share is a number from 0 to 1; a correlation is how much of a draw is taken from the draw before
// it, x = ρ·last + (1−ρ)·u. As in netem, correlation narrows the spread of x, so that a small correlated loss loses
// less than its share: to get bursts of a known length, use Burst.
type Conditions struct {
	Latency          time.Duration // delay in this direction, half of what ping shows
	Jitter           time.Duration // spread of the delay; a delay never goes below 0
	Distribution     Distribution  // shape of the jitter; default Uniform, within ± Jitter
	DelayCorrelation float64

	Loss            float64 // share of packets lost, each for itself
	LossCorrelation float64
	Burst           LossModel // losses in bursts: GilbertElliott or FourState; excludes Loss

	Duplicate            float64 // share of packets that arrive twice
	DuplicateCorrelation float64
	Corrupt              float64 // share of packets with one bit inverted
	CorruptCorrelation   float64

	// Reorder is the share of packets that are sent at once, without Latency and Jitter, and so overtake those before
	// them. With ReorderGap n only every n-th packet may overtake; ReorderGap alone means every n-th does.
	Reorder            float64
	ReorderCorrelation float64
	ReorderGap         int

	Rate  int64 // bits per second; 0 is without limit
	Queue int   // bytes that may wait for Rate; what does not fit is lost (tail drop); 0 is without limit
	MTU   int   // bytes; 68 or more; a packet that is larger vanishes; 0 is without limit, and streams cut segments for 1500

	Slots *Slots // a radio that sends in bursts; nil sends at any time

	// Schedule makes the weather change with time. All other fields must be zero then.
	Schedule *Schedule
}

// DefaultMTU is what streams cut their segments for when no MTU is set: Ethernet's 1500 bytes.
const DefaultMTU = 1500

// minMTU is what every link must carry in one piece (RFC 791). Less would leave
// a TCP segment no room for data.
const minMTU = 68

// Distribution is the shape of jitter. The mean of all of them is Latency, or up to 0.04 Jitter less where the cut takes
// a part of a long tail away.
type Distribution uint8

// The shapes. Those besides Uniform are cut at ± 4 Jitter, as the tables of netem are.
const (
	Uniform      Distribution = iota // within ± Jitter, standard deviation Jitter/√3: netem without a table
	Normal                           // standard deviation Jitter
	Exponential                      // standard deviation Jitter, never more than Jitter below Latency
	Pareto                           // shape 3, standard deviation 0.82 Jitter, from ⅔ Jitter below Latency up: iproute2's pareto.c
	ParetoNormal                     // ¼ Normal and ¾ Pareto of one rank, 0.83 Jitter: iproute2's paretonormal.c
)

var distributionNames = [...]string{"uniform", "normal", "exponential", "pareto", "paretonormal"}

// String gives netem's name.
func (d Distribution) String() string {
	if int(d) < len(distributionNames) {
		return distributionNames[d]
	}
	return fmt.Sprintf("distribution(%d)", uint8(d))
}

// LossModel is a model of losses that come in bursts: GilbertElliott or FourState.
type LossModel interface {
	// step takes the state of the chain (0 is the good one) and two independent numbers in [0, 1), and gives the state
	// for the next packet and whether this one is lost.
	step(state uint8, move, loss float64) (next uint8, lost bool)
	validate() error
	netem() string
}

// GilbertElliott has a good and a bad state: netem's "loss gemodel". In each state packets are lost with a probability
// of their own; the mean stay in the bad state is 1/R packets.
type GilbertElliott struct {
	P         float64 // probability of good → bad, for each packet
	R         float64 // probability of bad → good; 0 stands for tc's default, 1 − P
	OneMinusH float64 // loss probability in the bad state; 0 stands for tc's default, 1
	OneMinusK float64 // loss probability in the good state
}

const (
	geGood uint8 = iota
	geBad
)

func (g GilbertElliott) step(state uint8, move, loss float64) (uint8, bool) {
	if state == geGood {
		next := geGood
		if move < g.P {
			next = geBad
		}
		return next, loss < g.OneMinusK
	}
	next := geBad
	if move < orElse(g.R, 1-g.P) {
		next = geGood
	}
	return next, loss < orElse(g.OneMinusH, 1)
}

// FourState has gaps with single losses and bursts with single receptions: netem's "loss state". States are 1 received
// in a gap, 2 received in a burst, 3 lost in a burst, 4 lost in a gap; Pij is the probability of i → j.
type FourState struct {
	P13 float64
	P31 float64 // 0 stands for tc's default, 1 − P13
	P32 float64
	P23 float64 // 0 stands for tc's default, 1
	P14 float64
}

const (
	inGap uint8 = iota // state 1
	inBurst
	lostInBurst
	lostInGap
)

func (f FourState) step(state uint8, move, _ float64) (uint8, bool) {
	next := state
	switch state {
	case inGap:
		switch {
		case move < f.P14:
			next = lostInGap
		case move < f.P14+f.P13:
			next = lostInBurst
		}
	case inBurst:
		if move < orElse(f.P23, 1) {
			next = lostInBurst
		}
	case lostInBurst:
		switch {
		case move < f.P32:
			next = inBurst
		case move < f.P32+orElse(f.P31, 1-f.P13):
			next = inGap
		}
	case lostInGap:
		next = inGap
	}
	return next, next == lostInBurst || next == lostInGap
}

func orElse(p, otherwise float64) float64 {
	if p == 0 {
		return otherwise
	}
	return p
}

// Slots lets packets out in bursts, as a radio does that shares its channel: netem's "slot". A slot opens between
// MinDelay and MaxDelay after the one before it was used up, or after the first packet that finds none open.
type Slots struct {
	MinDelay, MaxDelay time.Duration // MaxDelay 0 stands for MinDelay
	Packets            int           // packets in a slot; 0 is without limit
	Bytes              int           // bytes in a slot; 0 is without limit
}

// Schedule is weather that changes: its phases follow each other and begin again, from the start of the network on.
type Schedule struct{ Phases []Phase }

// Phase is one part of a Schedule.
type Phase struct {
	For time.Duration
	Conditions
}

// Cycle makes conditions that go round and round through the phases.
//
//	tunnel := netsim.Cycle(
//		netsim.Phase{For: 50 * time.Second, Conditions: netsim.LTE},
//		netsim.Phase{For: 10 * time.Second, Conditions: netsim.Conditions{Loss: 1}})
func Cycle(phases ...Phase) Conditions { return Conditions{Schedule: &Schedule{Phases: phases}} }

// at gives the phase of a time since the network's start.
func (s *Schedule) at(now time.Duration) *Conditions {
	var total time.Duration
	for i := range s.Phases {
		total += s.Phases[i].For
	}
	now %= total
	for i := range s.Phases {
		if now < s.Phases[i].For {
			return &s.Phases[i].Conditions
		}
		now -= s.Phases[i].For
	}
	return &s.Phases[len(s.Phases)-1].Conditions
}

// plain reports whether the conditions are nothing but a constant delay, which needs no judge.
func (c *Conditions) plain() bool { return *c == Conditions{Latency: c.Latency} }

// segmentMTU is the size of packet that a stream makes.
func (c *Conditions) segmentMTU() int {
	if c.MTU == 0 {
		return DefaultMTU
	}
	return c.MTU
}

// Validate says which field cannot be, and why: a negative delay, a probability outside 0…1, a reordering of packets
// that have no delay, two models of loss at once. Nil means that the conditions can be used.
func (c Conditions) Validate() error {
	if c.Schedule != nil {
		return c.validateSchedule()
	}
	bad := func(field string, value any, must string) error {
		return fmt.Errorf("netsim: Conditions.%s is %v: must be %s", field, value, must)
	}
	for _, d := range []struct {
		field string
		value time.Duration
	}{{"Latency", c.Latency}, {"Jitter", c.Jitter}} {
		if d.value < 0 || d.value > maxDelay {
			return bad(d.field, d.value, fmt.Sprintf("0 to %v", maxDelay))
		}
	}
	for _, n := range []struct {
		field string
		value int64
	}{{"ReorderGap", int64(c.ReorderGap)}, {"Rate", c.Rate}, {"Queue", int64(c.Queue)}, {"MTU", int64(c.MTU)}} {
		if n.value < 0 {
			return bad(n.field, n.value, "0 or more")
		}
	}
	if err := validShares("Conditions", []share{
		{"DelayCorrelation", c.DelayCorrelation},
		{"Loss", c.Loss}, {"LossCorrelation", c.LossCorrelation},
		{"Duplicate", c.Duplicate}, {"DuplicateCorrelation", c.DuplicateCorrelation},
		{"Corrupt", c.Corrupt}, {"CorruptCorrelation", c.CorruptCorrelation},
		{"Reorder", c.Reorder}, {"ReorderCorrelation", c.ReorderCorrelation},
	}); err != nil {
		return err
	}
	switch {
	case c.MTU > 0 && c.MTU < minMTU:
		return bad("MTU", c.MTU, fmt.Sprintf("0, or %d and more", minMTU))
	case int(c.Distribution) >= len(distributionNames):
		return bad("Distribution", c.Distribution, "one of Uniform … ParetoNormal")
	case (c.Reorder > 0 || c.ReorderGap > 0) && c.Latency == 0:
		return bad("Latency", c.Latency, "more than 0 where packets are to overtake each other")
	case c.Queue > 0 && c.Rate == 0:
		return bad("Rate", c.Rate, "more than 0 where there is a Queue")
	case c.Burst != nil && c.Loss > 0:
		return bad("Loss", c.Loss, "0 where there is a Burst")
	case c.Burst != nil:
		if err := c.Burst.validate(); err != nil {
			return err
		}
	}
	if c.Slots != nil {
		return c.Slots.validate()
	}
	return nil
}

func (c Conditions) validateSchedule() error {
	if c != (Conditions{Schedule: c.Schedule}) {
		return fmt.Errorf("netsim: Conditions with a Schedule have other fields set (%s): put them into its phases",
			func() Conditions { c.Schedule = nil; return c }())
	}
	if len(c.Schedule.Phases) == 0 {
		return fmt.Errorf("netsim: Conditions.Schedule has no phases")
	}
	var total time.Duration
	for i, p := range c.Schedule.Phases {
		total += p.For
		if total < 0 && p.For > 0 {
			return fmt.Errorf("netsim: Schedule.Phases[%d].For is %v: the phases take more than %v together", i, p.For, time.Duration(math.MaxInt64))
		}
		if p.For <= 0 {
			return fmt.Errorf("netsim: Schedule.Phases[%d].For is %v: must be more than 0", i, p.For)
		}
		if p.Conditions.Schedule != nil {
			return fmt.Errorf("netsim: Schedule.Phases[%d] has a Schedule itself", i)
		}
		if err := p.Conditions.Validate(); err != nil {
			return fmt.Errorf("netsim: Schedule.Phases[%d]: %w", i, err)
		}
	}
	return nil
}

type share struct {
	field string
	value float64
}

func validShares(of string, shares []share) error {
	for _, s := range shares {
		if math.IsNaN(s.value) || s.value < 0 || s.value > 1 {
			return fmt.Errorf("netsim: %s.%s is %v: must be a number from 0 to 1", of, s.field, s.value)
		}
	}
	return nil
}

func (g GilbertElliott) validate() error {
	return validShares("GilbertElliott", []share{{"P", g.P}, {"R", g.R}, {"OneMinusH", g.OneMinusH}, {"OneMinusK", g.OneMinusK}})
}

func (f FourState) validate() error {
	return validShares("FourState", []share{
		{"P13", f.P13}, {"P31", f.P31}, {"P32", f.P32}, {"P23", f.P23}, {"P14", f.P14},
		{"P13+P14", f.P13 + f.P14}, {"P31+P32", f.P31 + f.P32},
	})
}

func (s Slots) validate() error {
	switch {
	case s.MinDelay < 0:
		return fmt.Errorf("netsim: Slots.MinDelay is %v: must be 0 or more", s.MinDelay)
	case s.maxDelay() > maxDelay:
		return fmt.Errorf("netsim: Slots.MinDelay and MaxDelay are %v and %v: must be at most %v", s.MinDelay, s.MaxDelay, maxDelay)
	case s.MaxDelay != 0 && s.MaxDelay < s.MinDelay:
		return fmt.Errorf("netsim: Slots.MaxDelay is %v: must not be less than MinDelay %v", s.MaxDelay, s.MinDelay)
	case s.Packets < 0:
		return fmt.Errorf("netsim: Slots.Packets is %d: must be 0 or more", s.Packets)
	case s.Bytes < 0:
		return fmt.Errorf("netsim: Slots.Bytes is %d: must be 0 or more", s.Bytes)
	case s.MinDelay == 0 && s.MaxDelay == 0:
		return fmt.Errorf("netsim: Slots.MinDelay and Slots.MaxDelay are 0: slots must be apart")
	}
	return nil
}
