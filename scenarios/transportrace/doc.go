// Package transportrace is the world of a phone that reaches one machine over its LAN, a tailnet or a relay, and the
// stories TR-1 … TR-27 about it.
//
// The phone has Wi-Fi, cellular and tailnet interfaces. The machine has a LAN and a tailnet address, a WebSocket server
// that authenticates, and a control socket to a tunnel relay. Everything speaks real WebSockets, the relay and the
// account service over TLS. A walk is a script of a few lines:
//
//	w := transportrace.NewWorld(p, transportrace.Setup{})
//	phone := w.Phone(subject, transportrace.AllRoutes)
//	phone.Start()
//	w.Walk(
//		transportrace.Leg{For: 20 * time.Second, Place: "home", WiFi: transportrace.Home, Cell: true},
//		transportrace.Leg{For: 20 * time.Second, Place: "street", Cell: true},
//		transportrace.Leg{For: 6 * time.Second, Place: "tunnel"},
//		transportrace.Leg{For: 20 * time.Second, Place: "office", WiFi: "office", Cell: true},
//	)
//
// What came of it is in the phone's records (Phone.Races, Phone.Connections), in the machine's and the relay's, and in
// the network's trace (World.Dialled).
package transportrace
