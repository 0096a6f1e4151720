// Package blackhole breaks one connection on purpose: bytes vanish, stand still, crawl, arrive in crumbs or damaged,
// and connections end by RST, FIN or half of one.
//
// A [Fault] is a value made of three parts: a [Trigger] that says when, an [Effect] that says what, and a [Direction]
// that says which bytes. Faults are put on a connection ([Client], [Server]), on everything a listener accepts
// ([Listener]) or on everything a dial function makes ([Dialer]), whether the connections are real sockets, simulated
// ones or net.Pipe ends:
//
//	hole := &blackhole.Fault{
//		When: blackhole.AfterTLSHandshake(),
//		Do:   blackhole.Swallow(),
//		On:   blackhole.Both,
//	}
//	dial, err := blackhole.Dialer(new(net.Dialer).DialContext, hole)
//
// A [Switch] turns a fault on and off while bytes flow, and can be thrown before the connection exists:
//
//	var sw blackhole.Switch
//	l, err = blackhole.Listener(l, &blackhole.Fault{When: sw.Thrown(), Do: blackhole.Stall(), On: blackhole.Up})
//	sw.On()
//
// Bytes meet the faults of a connection in the order in which they were given; a fault sees what the ones before it
// let through. [Then], [All], [Any] and [Until] make triggers out of triggers.
//
// Up means from the side that dialled to the side that accepted, whichever end is wrapped.
//
// # How it works
//
// The decisions are a pure state machine fed with the time, the direction and the bytes. The driver around it starts
// no goroutine; it runs in the goroutine that calls Read or Write, waits on channels of its own and never holds a lock
// while it waits, so it is at home in a testing/synctest bubble. While no fault of a connection is active and none has
// to look at the bytes, io.Copy between two TCP connections stays in the kernel (splice on Linux).
//
// # Limits
//
// A fault acts when somebody reads or writes; nothing is drained from the network behind the back of the program that
// holds the connection. [Delay] holds back the caller, so it is not the latency of a link. Close always closes the
// inner connection, whose peer therefore sees a FIN even through a hole. Faults belong below TLS: a tls.Conn whose
// write was interrupted cannot be used any more.
package blackhole
