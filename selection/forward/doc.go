// Package forward is the client that reaches destinations through forwarding proxies.
//
//	client, err := forward.New(forward.Options{
//		Connector: connector,                                // makes connections
//		Config: func(user string) forward.Config { … },     // what the user wants
//		Rand:   rand.New(rand.NewPCG(seed, 0)),
//	})
//	res, err := client.Deliver(ctx, forward.Request{User: "u", Destination: relay, Command: cmd}, true)
//
// It decides whether a command is proxied ([Config]), picks a proxy, shares connections and relay sessions, holds every
// step to its limit ([Times]), gives failures their class ([Error]) and tells the table of choices, which decides when a
// proxy is left. [Client.Deliver] repeats a command on a retry ladder; [Client.Do] tries once.
//
// Every rule is a field of [Policy], consulted at one place. There is no network in this package: it asks a [Connector]
// for connections, and runs on whatever that is.
package forward
