package dnsserver

import (
	"fmt"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// Fault says how a server misbehaves towards a question. Its parts can be combined: late and lying, say.
type Fault struct {
	Drop     bool             // no answer at all
	Delay    time.Duration    // the answer comes later
	RCode    dnsmessage.RCode // this code and no records, whatever the zone says
	Empty    bool             // the name exists, but has no records: no error and nothing in it
	Lie      *Records         // these records instead of the zone's
	Truncate bool             // over UDP: no records and the TC flag, so that the resolver asks again over TCP
	WrongID  bool             // the answer bears the number of another question
}

// The usual faults.
var (
	Silent     = Fault{Drop: true}
	ServFail   = Fault{RCode: dnsmessage.RCodeServerFailure}
	NXDomain   = Fault{RCode: dnsmessage.RCodeNameError}
	Refused    = Fault{RCode: dnsmessage.RCodeRefused}
	Empty      = Fault{Empty: true}
	Truncated  = Fault{Truncate: true}
	Misaddress = Fault{WrongID: true}
)

// Slow answers correctly after d.
func Slow(d time.Duration) Fault { return Fault{Delay: d} }

// Hijack answers with these addresses, whatever the name: a captive portal. It panics if one is none.
func Hijack(addrs ...string) Fault {
	lie := Addr(addrs...)
	return Fault{Lie: &lie}
}

// Rule is a fault in force. The rule that was made last wins where several match.
type Rule struct {
	server  *Server
	pattern string
	qtype   Type
	fault   Fault
	hits    int
}

// Hits is how many questions met the rule so far.
func (r *Rule) Hits() int {
	r.server.mu.Lock()
	defer r.server.mu.Unlock()
	return r.hits
}

// Remove ends the rule. Removing it again does nothing.
func (r *Rule) Remove() {
	r.server.mu.Lock()
	defer r.server.mu.Unlock()
	r.server.rules = without(r.server.rules, r)
}

func without(rules []*Rule, gone *Rule) []*Rule {
	kept := make([]*Rule, 0, len(rules))
	for _, r := range rules {
		if r != gone {
			kept = append(kept, r)
		}
	}
	return kept
}

// On makes a fault meet the questions for a name and type. The pattern is a name ("app.example."), a name and all
// below it ("*.example."), or "*" for all names; [Any] stands for all types. It panics on a pattern that matches
// nothing and on a negative delay.
func (s *Server) On(pattern string, t Type, f Fault) *Rule {
	call := fmt.Sprintf("dnsserver.Server.On(%q, %v)", pattern, t)
	if pattern == "" {
		panic(call + ": an empty pattern matches nothing")
	}
	checkName(call, strings.TrimPrefix(strings.TrimPrefix(pattern, "*"), "."))
	if f.Delay < 0 {
		panic(fmt.Sprintf("%s: a delay of %v", call, f.Delay))
	}
	r := &Rule{server: s, pattern: canonical(pattern), qtype: t, fault: f}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules = append(s.rules, r)
	return r
}

// matches compares a canonical pattern and a type with those of a question.
func matches(pattern string, of Type, name string, t Type) bool {
	if of != Any && of != t {
		return false
	}
	if pattern == "*." || pattern == name {
		return true
	}
	suffix, wild := strings.CutPrefix(pattern, "*")
	return wild && (strings.HasSuffix(name, suffix) || name == suffix[1:])
}

// lookup finds the rule for a question and counts the hit; the zero fault if there is none. s.mu is held.
func (s *Server) lookup(name string, t Type) Fault {
	for i := len(s.rules) - 1; i >= 0; i-- {
		if r := s.rules[i]; matches(r.pattern, r.qtype, name, t) {
			r.hits++
			return r.fault
		}
	}
	return Fault{}
}
