// Package memory keeps what a phone has learnt about the routes to one machine: which endpoint worked on which network,
// which endpoints have been failing, and the profile in which both are stored.
//
// A Memory is plain data that its owner guards; nothing in it waits or reads a clock.
//
//	m := memory.New(memory.DefaultPolicy())
//	m.Record(now, path.Fingerprint(), failed, &memory.Success{Key: key})
//	if m.Failing(now, key) { … } // twice in a row, the last time no more than 120 s ago
package memory
