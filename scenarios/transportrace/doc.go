// Package transportrace is the world of a phone that reaches one machine over its LAN, a tailnet or a relay, and the
// stories TR-1 … TR-27 about it.
//
// The phone has Wi-Fi, cellular and tailnet interfaces. The machine has a LAN and a tailnet address, a WebSocket server
// that authenticates, and a control socket to a tunnel relay. Everything speaks real WebSockets, the relay over TLS. A
// walk is a script of a few lines:
//
//	w := transportrace.NewWorld(p, transportrace.Setup{})
//	phone := w.Phone(subject, transportrace.AllRoutes)
//	w.WiFi.Up()          // at home
//	p.At(time.Minute)
//	w.WiFi.Down()        // into the street
package transportrace
