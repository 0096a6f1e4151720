package privaterouting

import (
	"github.com/seed-5a7f77c4/deadair/selection/choice"
	"github.com/seed-5a7f77c4/deadair/selection/forward"
)

// Subject is the agent under test: every rule of it is a field, so that a mutant
// is the same agent with one field changed.
type Subject struct {
	Policy forward.Policy
	// Remembers says that choices outlive a restart of the app. A correct agent keeps them in memory only.
	Remembers bool
}

// Ours is the agent with all of its rules.
func Ours() Subject { return Subject{Policy: forward.DefaultPolicy()} }

// restart ends the app and starts it anew.
func (w *World) restart() {
	chosen, there := w.App.Choice()
	w.App.close()
	choices := choice.NewTable[forward.Key, string](w.subject.Policy.Choice)
	if there && w.subject.Remembers {
		choices.Choose(towards(relayName), chosen.Proxy)
	}
	w.App = newApp(w, nil, choices)
}
