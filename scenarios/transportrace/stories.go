package transportrace

import (
	"time"

	"github.com/seed-5a7f77c4/deadair/netsim"
	"github.com/seed-5a7f77c4/deadair/scenarios"
)

const ms = time.Millisecond

type story = scenarios.Scenario[Subject]

// Stories are the stories of the transport race, each in a world of its own.
func Stories() []story {
	var all []story
	for _, group := range [][]story{connecting(), roaming(), rules()} {
		all = append(all, group...)
	}
	for i := range all {
		all[i].Labels = append(all[i].Labels, "transport-race")
		all[i].Network = append(all[i].Network, netsim.Defaults(netsim.Conditions{Latency: 5 * ms}))
	}
	return all
}
