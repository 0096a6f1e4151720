// Package conditions is a catalogue of what networks did to programs in the
// field: each function arms one condition on a simulated network, in a line, and
// its comment names the public report that it is from.
//
//	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
//		app, api := n.Host("app"), n.Host("api")
//		… // open a connection
//		conditions.SilentTowards(n, app, "app>api:443#1") // golang/go#30702
//		… // and see what the program makes of it
//	})
//
// [All] lists the entries; [Markdown] is the table in docs/production.md.
// Functions that give a [netsim.Fault] can be undone, and a fault that never bit
// fails the run.
package conditions

//go:generate sh -c "go run ./production > ../../docs/production.md"
