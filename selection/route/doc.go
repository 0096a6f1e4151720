// Package route describes the ways to one machine: what a candidate is, which class of route it belongs to, under which
// key it is remembered, whether it may be dialled at all, which ports are tried, and what the phone's network looks like.
//
// Everything here is a pure function of its arguments.
//
//	admitted, refused := route.Admit([]route.Candidate{
//		{Address: "192.168.1.10", Port: 8787},
//		{Address: "wss://relay.example/tunnel/m1", Owner: "ann"},
//	}, "ann")
//	why := route.Requirement(refused) // nil, or what the user has to do before the relay can be used
package route
