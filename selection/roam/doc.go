// Package roam keeps one connection to a machine alive while the phone walks through networks: when to look for a better
// route, how a new connection replaces the old one, when to try again.
//
//	s := roam.NewSession(roam.Config[*Conn]{Race: race, Alive: ping, Adopt: use, Record: remember, Done: ended,
//		Policy: roam.DefaultPolicy(), Path: &path, Seed: seed})
//	go s.Run(ctx)
//	s.Path(path)         // whenever the system reports another path
//	s.Observe(observed)  // whenever discovery sees, or loses, the machine
//
// Decide is the decision as a table, Monitor feeds it with path and discovery updates over time, Ladder spaces the
// attempts to reconnect; none of them waits. Session is the driver: it makes before it breaks.
package roam
