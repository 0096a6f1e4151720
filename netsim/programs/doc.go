// Package programs runs real programs on a simulated network, unchanged:
//
//	go test ./...
//
// It is a module of its own, so that what these programs need is no need of the
// library. Each does something real under latency and loss, and meets a fault.
// Those that can replay are held to it with [netsim.CheckReplay]. The files named
// after conditions show how grpc-go and quic-go meet the conditions of package
// scenarios/conditions that were reported of them.
//
// [netsim.CheckReplay]: https://pkg.go.dev/github.com/seed-5a7f77c4/deadair/netsim#CheckReplay
package programs
