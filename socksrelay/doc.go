// Package socksrelay is a SOCKS5 relay that fails on purpose, in any phase of the conversation. It is a server over
// github.com/armon/go-socks5 whose client connections carry faults of package blackhole.
//
// The relay that passes every handshake, the SOCKS one and the TLS one after it, and then swallows every byte in both
// directions without closing anything:
//
//	relay, err := socksrelay.New(socksrelay.Config{
//		Dial:   new(net.Dialer).DialContext,
//		Faults: []*socksrelay.Fault{socksrelay.BlackHole(blackhole.AfterTLSHandshake())},
//	})
//	go relay.Serve(listener)
//	defer relay.Close()
//
// Listener and dial function may be real or simulated. A [Fault] names a [Phase], says what happens in it (an effect of
// package blackhole, or an [Answer] of the relay's own) and to which connections ([Selector]).
//
// # Limits
//
// CONNECT only: go-socks5 answers BIND and UDP ASSOCIATE with reply 7, "command not supported", and so does the relay.
// A fault of phase Dial holds back or breaks off what the client sees of the dial; it does not hold back the dial, which
// has no bytes for an effect to act on. Give [Config] a Dial that waits or fails for that. A real TCP connection over
// loopback gets a send buffer of 208 KiB; others keep what the kernel gives them.
package socksrelay
