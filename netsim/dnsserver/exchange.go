package dnsserver

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// exchange is the connection that package net gets to ask its question on: the query is written, the answer read, both
// with their length before them. net uses it from one goroutine.
type exchange struct {
	*exchanger
	caller context.Context
	query  []byte
	answer []byte // what has not been read yet
}

var errNotFramed = errors.New("dnsserver: a query without its length before it")

func (x *exchange) Write(b []byte) (int, error) {
	if len(b) < 2 || int(binary.BigEndian.Uint16(b)) != len(b)-2 {
		return 0, errNotFramed
	}
	x.query = append([]byte(nil), b[2:]...)
	return len(b), nil
}

func (x *exchange) Read(b []byte) (int, error) {
	if x.query != nil {
		query := x.query
		x.query = nil
		answer, err := x.ask(query)
		if err != nil {
			return 0, err
		}
		x.answer = append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...)
	}
	if len(x.answer) == 0 {
		return 0, io.EOF
	}
	n := copy(b, x.answer)
	x.answer = x.answer[n:]
	return n, nil
}

// ask finds out what there is to say to a query.
func (x *exchange) ask(query []byte) ([]byte, error) {
	var p dnsmessage.Parser
	header, err := p.Start(query)
	if err != nil {
		return nil, err
	}
	asked, err := p.Question()
	if err != nil {
		return nil, err
	}
	l := lookup{question{canonical(asked.Name.String()), asked.Type}, x.caller}
	o, owed := x.pay(l)
	if !owed {
		if o = x.run(x.caller, query); o.failed() {
			x.owe(l, o)
		}
	}
	if o.err != nil {
		return nil, o.err
	}
	answer := append([]byte(nil), o.message...)
	binary.BigEndian.PutUint16(answer, header.ID)
	return answer, nil
}

// Deadlines that net sets are those of its own time-out: they do not count. The caller's is in its context.
func (x *exchange) SetDeadline(time.Time) error      { return nil }
func (x *exchange) SetReadDeadline(time.Time) error  { return nil }
func (x *exchange) SetWriteDeadline(time.Time) error { return nil }
func (x *exchange) Close() error                     { return nil }
func (x *exchange) LocalAddr() net.Addr              { return exchangeAddr{} }
func (x *exchange) RemoteAddr() net.Addr             { return exchangeAddr{} }

// exchangeAddr stands for all the servers of a resolver.
type exchangeAddr struct{}

func (exchangeAddr) Network() string { return "dns" }
func (exchangeAddr) String() string  { return "name servers" }
