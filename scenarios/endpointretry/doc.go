// Package endpointretry is the world of an HTTP proxy in front of several upstream
// providers, each with several endpoints, and the stories ER-1 … ER-25 of what such
// a proxy does when they fail: which endpoint is asked next, what counts against
// whom, and what the client sees of it.
//
// Client, proxy and providers are real net/http programs on simulated hosts. The
// endpoints refuse, reset, hang before and after the headers, answer any status,
// send an error as the first event of a stream, break a stream after content,
// present a certificate of somebody else, are silent, or have no address.
//
// The subject is a proxy. [Ours] is the forwarder of selection/failover; [Mutants]
// are what it becomes with one rule off or wrong, the old rule among them.
package endpointretry
