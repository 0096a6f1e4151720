package dnsserver

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"

	"golang.org/x/net/dns/dnsmessage"
)

// outcome is an answer or an error.
type outcome struct {
	message []byte
	err     error
}

var errInvalidResponse = errors.New("invalid DNS response") // net's text

// run takes a query through the servers until an answer counts or all have been asked often enough: what net's
// tryOneName and exchange do.
func (e *exchanger) run(ctx context.Context, query []byte) (last outcome) {
	for i := range Attempts * len(e.servers) {
		if err := over(ctx); err != nil { // what net's own next dial would say
			return outcome{err: err}
		}
		last = e.attempt(ctx, query, e.servers[i%len(e.servers)])
		if !last.failed() {
			return last
		}
	}
	return last
}

// attempt asks one server, over UDP, and over TCP if the answer is truncated.
func (e *exchanger) attempt(ctx context.Context, query []byte, server string) outcome {
	o := e.roundTrip(ctx, "udp", query, server)
	if o.truncated() {
		o = e.roundTrip(ctx, "tcp", query, server)
	}
	return o
}

// roundTrip asks and waits for the answer. Only the context's deadline ends it early: net does not notice either when
// a context is cancelled meanwhile.
func (e *exchanger) roundTrip(ctx context.Context, network string, query []byte, server string) outcome {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	conn, err := e.dial(ctx, network, server)
	if err != nil {
		return outcome{err: err}
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	conn.SetDeadline(deadline)
	if network == "tcp" {
		return askStream(conn, query)
	}
	return askPackets(conn, query)
}

func askPackets(conn net.Conn, query []byte) outcome {
	if _, err := conn.Write(query); err != nil {
		return outcome{err: err}
	}
	buf := make([]byte, maxPacket)
	for {
		n, err := conn.Read(buf)
		if err != nil {
			return outcome{err: err}
		}
		if answers(buf[:n], query) { // anything else may be a forgery: go on waiting
			return outcome{message: buf[:n]}
		}
	}
}

func askStream(conn net.Conn, query []byte) outcome {
	if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(query))), query...)); err != nil {
		return outcome{err: err}
	}
	message, err := readFramed(conn)
	if err == nil && !answers(message, query) {
		err = errInvalidResponse
	}
	return outcome{message, err}
}

func readFramed(r io.Reader) ([]byte, error) {
	var length [2]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	message := make([]byte, binary.BigEndian.Uint16(length[:]))
	_, err := io.ReadFull(r, message)
	return message, err
}

// answers reports whether a message is an answer to a query.
func answers(message, query []byte) bool {
	var asked, answered dnsmessage.Parser
	want, err := asked.Start(query)
	if err != nil {
		return false
	}
	got, err := answered.Start(message)
	if err != nil || !got.Response || got.ID != want.ID {
		return false
	}
	q, err := asked.Question()
	if err != nil {
		return false
	}
	a, err := answered.Question()
	return err == nil && a.Type == q.Type && a.Class == q.Class && canonical(a.Name.String()) == canonical(q.Name.String())
}

func (o outcome) truncated() bool {
	var p dnsmessage.Parser
	h, err := p.Start(o.message)
	return o.err == nil && err == nil && h.Truncated
}

// failed reports whether net goes on to the next server after this: errors, error codes other than NXDOMAIN, and
// referrals that lead nowhere.
func (o outcome) failed() bool {
	if o.err != nil {
		return true
	}
	var p dnsmessage.Parser
	h, err := p.Start(o.message)
	if err != nil {
		return true
	}
	switch h.RCode {
	case dnsmessage.RCodeNameError:
		return false
	case dnsmessage.RCodeSuccess:
		return !h.Authoritative && !h.RecursionAvailable && bare(p)
	default:
		return true
	}
}

// bare reports whether a message has neither answers nor additional records.
func bare(p dnsmessage.Parser) bool {
	if p.SkipAllQuestions() != nil {
		return false
	}
	if _, err := p.AnswerHeader(); err != dnsmessage.ErrSectionDone {
		return false
	}
	if p.SkipAllAnswers() != nil || p.SkipAllAuthorities() != nil {
		return false
	}
	_, err := p.AdditionalHeader()
	return err == dnsmessage.ErrSectionDone
}
