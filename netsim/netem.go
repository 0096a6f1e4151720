package netsim

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Netem gives the arguments with which Linux's "tc qdisc add dev … root netem" would make the same weather, one line
// for each phase of a Schedule. Queue becomes netem's limit, which counts packets of the MTU. What netem does not
// have, the MTU and the exponential distribution (which needs a table of its own), is named as if it did.
func (c Conditions) Netem() string {
	if c.Schedule != nil {
		lines := make([]string, len(c.Schedule.Phases))
		for i, p := range c.Schedule.Phases {
			lines[i] = p.Conditions.Netem() + " # for " + p.For.String()
		}
		return strings.Join(lines, "\n")
	}
	limit := ""
	if c.Queue > 0 {
		limit = " limit " + strconv.Itoa((c.Queue+c.segmentMTU()-1)/c.segmentMTU())
	}
	return "netem" + limit + c.clauses()
}

// String is Netem with the queue in bytes, on one line; "perfect" for the zero value.
func (c Conditions) String() string {
	if c.Schedule != nil {
		parts := make([]string, len(c.Schedule.Phases))
		for i, p := range c.Schedule.Phases {
			parts[i] = fmt.Sprintf("%s: %s", p.For, p.Conditions)
		}
		return "cycle { " + strings.Join(parts, "; ") + " }"
	}
	s := c.clauses()
	if c.Queue > 0 {
		s += fmt.Sprintf(" queue %db", c.Queue)
	}
	if c.MTU > 0 {
		s += fmt.Sprintf(" mtu %d", c.MTU)
	}
	if s == "" {
		return "perfect"
	}
	return s[1:]
}

func (c *Conditions) clauses() string {
	var b strings.Builder
	clause := func(format string, args ...any) { fmt.Fprintf(&b, " "+format, args...) }
	if c.Latency > 0 || c.Jitter > 0 {
		clause("delay %s", millis(c.Latency))
		if c.Jitter > 0 {
			clause("%s%s", millis(c.Jitter), correlation(c.DelayCorrelation))
			if c.Distribution != Uniform {
				clause("distribution %s", c.Distribution)
			}
		}
	}
	if c.Loss > 0 {
		clause("loss %s%s", percent(c.Loss), correlation(c.LossCorrelation))
	}
	if c.Burst != nil {
		clause("loss %s", c.Burst.netem())
	}
	if c.Duplicate > 0 {
		clause("duplicate %s%s", percent(c.Duplicate), correlation(c.DuplicateCorrelation))
	}
	if c.Corrupt > 0 {
		clause("corrupt %s%s", percent(c.Corrupt), correlation(c.CorruptCorrelation))
	}
	if share := c.reorderShare(); share > 0 {
		clause("reorder %s%s", percent(share), correlation(c.ReorderCorrelation))
		if c.ReorderGap > 0 {
			clause("gap %d", c.ReorderGap)
		}
	}
	if c.Rate > 0 {
		clause("rate %s", rate(c.Rate))
	}
	if c.Slots != nil {
		clause("slot %s %s", millis(c.Slots.MinDelay), millis(c.Slots.maxDelay()))
		if c.Slots.Packets > 0 {
			clause("packets %d", c.Slots.Packets)
		}
		if c.Slots.Bytes > 0 {
			clause("bytes %d", c.Slots.Bytes)
		}
	}
	return b.String()
}

func (g GilbertElliott) netem() string {
	return fmt.Sprintf("gemodel %s %s %s %s", percent(g.P), percent(orElse(g.R, 1-g.P)),
		percent(orElse(g.OneMinusH, 1)), percent(g.OneMinusK))
}

func (f FourState) netem() string {
	return fmt.Sprintf("state %s %s %s %s %s", percent(f.P13), percent(orElse(f.P31, 1-f.P13)), percent(f.P32),
		percent(orElse(f.P23, 1)), percent(f.P14))
}

func percent(p float64) string {
	return strconv.FormatFloat(math.Round(p*1e9)/1e7, 'f', -1, 64) + "%"
}

func correlation(rho float64) string {
	if rho == 0 {
		return ""
	}
	return " " + percent(rho)
}

// millis writes a duration in the one unit that tc reads without loss; Go's "1m0s" and "µs" are foreign to it.
func millis(d time.Duration) string {
	ms := strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', -1, 64)
	return ms + "ms"
}

func rate(bits int64) string {
	for _, u := range []struct {
		size int64
		name string
	}{{1e9, "gbit"}, {1e6, "mbit"}, {1e3, "kbit"}} {
		if bits%u.size == 0 {
			return strconv.FormatInt(bits/u.size, 10) + u.name
		}
	}
	return strconv.FormatInt(bits, 10) + "bit"
}
