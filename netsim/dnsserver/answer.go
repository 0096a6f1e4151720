package dnsserver

import (
	"math"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

const (
	plainUDP = 512 // bytes in an answer over UDP, unless the query allows more by EDNS(0)
	ttl      = 60  // seconds; Go's resolver keeps nothing
)

// reply is what is sent for a query: nothing if message is nil.
type reply struct {
	message []byte
	after   time.Duration
}

// answer decides on one query. What is no query gets no answer.
func (s *Server) answer(query []byte, stream bool) reply {
	var p dnsmessage.Parser
	header, err := p.Start(query)
	if err != nil || header.Response {
		return reply{}
	}
	q, err := p.Question()
	if err != nil {
		return reply{}
	}
	limit := math.MaxUint16
	if !stream {
		limit = udpLimit(p)
	}
	asked := question{canonical(q.Name.String()), q.Type}

	s.mu.Lock()
	s.hits[asked]++
	fault := s.lookup(asked.name, asked.t)
	records, exists := s.zone.find(asked.name, asked.t)
	s.mu.Unlock()

	if fault.Drop {
		return reply{}
	}
	if fault.Lie != nil {
		records, exists = fault.Lie.of(asked.name, asked.t), true
	}
	out := dnsmessage.Header{
		ID: header.ID, Response: true, Authoritative: true,
		RecursionDesired: header.RecursionDesired, RecursionAvailable: true,
		RCode: fault.RCode,
	}
	if !exists && fault.RCode == dnsmessage.RCodeSuccess && !fault.Empty {
		out.RCode = dnsmessage.RCodeNameError
	}
	if fault.RCode != dnsmessage.RCodeSuccess || fault.Empty {
		records = nil
	}
	if fault.WrongID {
		out.ID = ^out.ID
	}
	message, err := build(out, q, records)
	if err != nil {
		out.RCode = dnsmessage.RCodeServerFailure
		message, err = build(out, q, nil)
	} else if len(message) > limit || fault.Truncate && !stream {
		out.Truncated = true
		message, err = build(out, q, nil)
	}
	if err != nil {
		return reply{}
	}
	return reply{message, fault.Delay}
}

// udpLimit reads from the OPT record how large an answer the asker takes.
func udpLimit(p dnsmessage.Parser) int {
	if p.SkipAllQuestions() != nil || p.SkipAllAnswers() != nil || p.SkipAllAuthorities() != nil {
		return plainUDP
	}
	for {
		h, err := p.AdditionalHeader()
		if err != nil {
			return plainUDP
		}
		if h.Type == dnsmessage.TypeOPT {
			return max(plainUDP, int(h.Class))
		}
		if p.SkipAdditional() != nil {
			return plainUDP
		}
	}
}

func build(h dnsmessage.Header, q dnsmessage.Question, records []record) ([]byte, error) {
	m := dnsmessage.Message{Header: h, Questions: []dnsmessage.Question{q}}
	for _, r := range records {
		name, err := dnsmessage.NewName(r.name)
		if err != nil {
			return nil, err
		}
		header := dnsmessage.ResourceHeader{Name: name, Class: q.Class, TTL: ttl}
		m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: r.body})
	}
	return m.Pack()
}
