package netsim

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// missed is the error for a fault that never bit, with what may be the reason.
func (f *Fault) missed() error {
	reasons := []string{"nothing matched it"}
	for _, h := range f.concerns() {
		if !h.known() {
			reasons = append(reasons, fmt.Sprintf("no connection was ever opened by host %s or to it", h.name))
		}
	}
	if t := f.table(); t != nil && t.longest > 0 {
		why := fmt.Sprintf("no flow was idle for longer than %v", t.longest.Round(time.Microsecond))
		if t.longest < keepIdle+time.Second {
			why += fmt.Sprintf(" (keep-alive probes, every %v by Go's default and from both ends, keep it known; a negative KeepAlive of Dialer and ListenConfig switches them off)", keepIdle)
		}
		reasons = append(reasons, why)
	}
	if want := f.rule.Flow; want != "" {
		if seen := f.n.flowsSeen(); !slices.Contains(seen, want) {
			const most = 5
			more := ""
			if len(seen) > most {
				more = fmt.Sprintf(" and %d more", len(seen)-most)
				seen = seen[:most]
			}
			if len(seen) == 0 {
				seen = []string{"none at all"}
			}
			reasons = append(reasons, fmt.Sprintf("there was no flow %q, the flows were ", want)+strings.Join(seen, ", ")+more)
		}
	}
	return fmt.Errorf("netsim: %s never bit: %s. If it need not bite, call MayMiss on it", f.name, strings.Join(reasons, "; "))
}

// concerns are the hosts that the fault lies between.
func (f *Fault) concerns() []*Host {
	hosts := []*Host{f.rule.From, f.rule.To}
	if l := f.rule.Between; l != nil {
		hosts = append(hosts, l.there.from, l.there.to)
	}
	for _, p := range f.inPipes {
		hosts = append(hosts, p.ends[0], p.ends[1])
	}
	var distinct []*Host
	for _, h := range hosts {
		if h != nil && !slices.Contains(distinct, h) {
			distinct = append(distinct, h)
		}
	}
	return distinct
}

// table is what a fault that forgets flows has seen of them.
func (f *Fault) table() *flowTable {
	for _, p := range f.inPipes {
		if p.table != nil && p.table.fault == f {
			return p.table
		}
	}
	return nil
}

// known reports whether the host took part in any flow.
func (h *Host) known() bool {
	for k := range h.n.flows {
		if k.from == h.name || k.to == h.name {
			return true
		}
	}
	return false
}

// flowsSeen are the names of all flows, sorted.
func (n *Network) flowsSeen() []string {
	var names []string
	for k, count := range n.flows {
		for nth := range count {
			names = append(names, k.name(nth+1))
		}
	}
	slices.Sort(names)
	return names
}
