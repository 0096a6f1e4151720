// Package pick chooses a forwarding proxy for a destination.
//
// A pick is a cascade of filters over the user's servers. Each filter keeps the servers that it likes; one that would
// leave none is passed over. Among what is left the choice is uniform, from the generator handed in.
//
//	candidates := pick.Candidates(servers, destination, pick.Default...)
//	proxy := pick.One(rng, candidates)
//
// Who picks often keeps a buffer for [AppendCandidates], and the pick allocates nothing.
//
// Nothing remembers earlier failures: the proxy that just failed may be picked again, unless the filter [Not] is added.
package pick

import (
	"math/rand/v2"
	"slices"
)

// Server is a server as the user has it configured.
type Server struct {
	// Name identifies the server: it is what choices, connections and sessions are kept by.
	Name string
	// Hosts are the names and addresses under which it can be reached; two servers that share one are run in one place.
	Hosts []string
	// Operator runs the server. None ("") is a value like any other.
	Operator string
	// Enabled and Proxy say whether the user wants it used, and used as a proxy.
	Enabled, Proxy bool
}

// SharesHost reports whether the two servers have a host in common.
func (s Server) SharesHost(other Server) bool {
	for _, h := range s.Hosts {
		if slices.Contains(other.Hosts, h) {
			return true
		}
	}
	return false
}

// Filter reports whether a server should be kept as a proxy towards a destination.
type Filter func(server, destination Server) bool

// Default is the cascade of a messaging agent, in its order: role, operator, hosts.
var Default = []Filter{ProxyRole, OtherOperator, OtherHost}

// ProxyRole keeps the servers that are enabled with the proxy role.
func ProxyRole(server, _ Server) bool { return server.Enabled && server.Proxy }

// OtherOperator keeps the servers whose operator does not also run the destination.
func OtherOperator(server, destination Server) bool { return server.Operator != destination.Operator }

// OtherHost keeps the servers that share no host with the destination.
func OtherHost(server, destination Server) bool { return !server.SharesHost(destination) }

// Not leaves out the server with the given name: the one that was just forgotten, say.
func Not(name string) Filter {
	return func(server, _ Server) bool { return server.Name != name }
}

// Candidates runs the cascade. It keeps the order of the servers and does not change the slice; it is empty only if servers is.
func Candidates(servers []Server, destination Server, cascade ...Filter) []Server {
	return AppendCandidates(nil, servers, destination, cascade...)
}

// AppendCandidates appends to a buffer what Candidates returns, and returns the buffer.
func AppendCandidates(buffer, servers []Server, destination Server, cascade ...Filter) []Server {
	start := len(buffer)
	buffer = append(buffer, servers...)
	for _, keep := range cascade {
		kept := start
		for i := start; i < len(buffer); i++ {
			if !keep(buffer[i], destination) {
				continue
			}
			if kept < i {
				buffer[kept] = buffer[i]
			}
			kept++
		}
		if kept > start {
			buffer = buffer[:kept]
		}
	}
	return buffer
}

// One draws a candidate uniformly. A single candidate costs no draw. It returns false if there is none.
func One(rng *rand.Rand, candidates []Server) (Server, bool) {
	switch len(candidates) {
	case 0:
		return Server{}, false
	case 1:
		return candidates[0], true
	}
	return candidates[rng.IntN(len(candidates))], true
}
