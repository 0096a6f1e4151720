package conditions

import (
	"fmt"

	"github.com/seed-5a7f77c4/deadair/netsim"
)

var drop = netsim.Verdict{Action: netsim.Drop}

func mustBePositive(call, name string, v int) {
	if v < 1 {
		panic(fmt.Errorf("conditions: %s: %s is %d: must be 1 or more", call, name, v))
	}
}
