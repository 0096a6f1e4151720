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
// [Groups] is the catalogue: of each report the symptom, the line to write, and
// what a real Go client makes of it; [Markdown] is docs/production.md, where one
// looks for what one sees. Functions that give a [netsim.Fault] can be undone, and
// a fault that never bit fails the run. Those that take a listener or a connection
// give one to use in its place, and need no network: they break real sockets too.
package conditions

//go:generate sh -c "go run ./production > ../../docs/production.md"
