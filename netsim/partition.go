package netsim

import (
	"fmt"
	"maps"
	"slices"
)

// Partition makes hosts deaf to others: grudge says for each host whom it must
// not hear, by name. Only that direction is cut, so that a bridge, a ring or a
// host that sends and does not hear can be written down. It is one fault,
// however many paths it cuts, and Undo takes all of it back.
//
// A name that is no host's, a host that is to be deaf to itself and a grudge
// that cuts nothing panic.
func (n *Network) Partition(grudge map[string][]string) *Fault {
	call := fmt.Sprintf("Network.Partition(%v)", grudge)
	hosts := func(names ...string) []*Host {
		var hs []*Host
		for _, name := range names {
			h := n.Lookup(name)
			if h == nil {
				panic(fmt.Errorf("netsim: %s: there is no host %q", call, name))
			}
			hs = append(hs, h)
		}
		return hs
	}
	var pipes []*pipe
	for _, name := range slices.Sorted(maps.Keys(grudge)) {
		to := hosts(name)[0]
		for _, from := range hosts(grudge[name]...) {
			if from == to {
				panic(fmt.Errorf("netsim: %s: %q would be deaf to itself", call, name))
			}
			pipes = append(pipes, &n.Path(from, to).pipe)
		}
	}
	if len(pipes) == 0 {
		panic(fmt.Errorf("netsim: %s: it cuts nothing", call))
	}
	return n.break_("partition", fmt.Sprint(grudge), cutVerdict, 0, pipes...)
}

// Split is the grudge of groups that hear nothing of each other and all of
// themselves. A host that is in two groups hears, and is heard by, both.
//
//	n.Partition(netsim.Split([]string{"a", "b"}, []string{"c", "d", "e"}))
func Split(groups ...[]string) map[string][]string {
	together := map[[2]string]bool{}
	var all []string
	for _, g := range groups {
		for _, a := range g {
			if !slices.Contains(all, a) {
				all = append(all, a)
			}
			for _, b := range g {
				together[[2]string{a, b}] = true
			}
		}
	}
	grudge := map[string][]string{}
	for _, a := range all {
		for _, b := range all {
			if !together[[2]string{a, b}] {
				grudge[a] = append(grudge[a], b)
			}
		}
	}
	return grudge
}
