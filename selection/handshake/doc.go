// Package handshake opens a tunnel through a relay that may have to wake up first.
//
// With ready=2 the relay answers at once that it has accepted the socket, and later that the machine's end of the tunnel
// is ready; the hello goes out then. An old relay says neither, and takes the hello at once on a socket without
// ready=2. Machine decides, Dialer drives it over the caller's sockets, Registry keeps a phone from dialling one
// machine twice.
//
//	d := handshake.Dialer[*websocket.Conn]{Open: open, Token: token, Signal: signal, Hello: hello,
//		Registry: registry, Policy: handshake.DefaultPolicy()}
//	conn, v2, err := d.Dial(ctx, "wss://relay.example/tunnel/m1", memory.Endpoint(key).NegotiatedReadyV2, opened)
package handshake
