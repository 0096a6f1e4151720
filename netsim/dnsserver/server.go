package dnsserver

import (
	"net"
	"sync"
)

// Server is a simulated name server. Its methods may be called at any time, from any goroutine.
type Server struct {
	mu      sync.Mutex // never held while anything waits
	zone    Zone
	rules   []*Rule
	hits    map[question]int
	closers map[interface{ Close() error }]struct{}
	closed  bool

	done    chan struct{} // closed by Close
	serving sync.WaitGroup
}

// question is what a query asks for, in canonical form.
type question struct {
	name string
	t    Type
}

// New makes a server of a zone. It panics if the zone has a name that is none.
func New(zone Zone) *Server {
	return &Server{
		zone:    zone.check("dnsserver.New"),
		hits:    make(map[question]int),
		closers: make(map[interface{ Close() error }]struct{}),
		done:    make(chan struct{}),
	}
}

// Set replaces the records of one name; empty Records make a name without records.
func (s *Server) Set(name string, r Records) {
	checked := Zone{name: r}.check("dnsserver.Server.Set")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.zone[canonical(name)] = checked[canonical(name)]
}

// Delete makes a name unknown.
func (s *Server) Delete(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.zone, canonical(name))
}

// Hits counts the questions that arrived for a pattern and a type, as [Server.On] takes them, answered or not.
func (s *Server) Hits(pattern string, t Type) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	total := 0
	for q, n := range s.hits {
		if matches(canonical(pattern), t, q.name, q.t) {
			total += n
		}
	}
	return total
}

// Start serves on a packet connection and a listener, in goroutines of its own, until Close. Either may be nil.
func (s *Server) Start(packets net.PacketConn, streams net.Listener) {
	if packets != nil && s.adopt(packets) {
		go func() {
			defer s.release(packets)
			s.servePackets(packets)
		}()
	}
	if streams != nil && s.adopt(streams) {
		go func() {
			defer s.release(streams)
			s.serveStreams(streams)
		}()
	}
}

// Close closes what the server serves on and waits until all its goroutines have ended.
func (s *Server) Close() error {
	s.mu.Lock()
	closers := s.closers
	if !s.closed {
		s.closed = true
		close(s.done)
	}
	s.closers = nil
	s.mu.Unlock()
	for c := range closers {
		c.Close()
	}
	s.serving.Wait()
	return nil
}

// adopt notes something to close, and one goroutine to wait for. It closes c and reports false if the server is.
func (s *Server) adopt(c interface{ Close() error }) bool {
	s.mu.Lock()
	adopted := !s.closed
	if adopted {
		s.closers[c] = struct{}{}
		s.serving.Add(1)
	}
	s.mu.Unlock()
	if !adopted {
		c.Close()
	}
	return adopted
}

// release ends what adopt began.
func (s *Server) release(c interface{ Close() error }) {
	c.Close()
	s.mu.Lock()
	delete(s.closers, c)
	s.mu.Unlock()
	s.serving.Done()
}
