package dnsserver

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"time"
)

// maxPacket is the largest query that is read; resolvers send some hundred bytes.
const maxPacket = 4096

func (s *Server) servePackets(c net.PacketConn) {
	buf := make([]byte, maxPacket)
	for {
		n, from, err := c.ReadFrom(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // an answer that nobody took, a host that is down: not the end of the server
			if !s.wait(pause) {
				return
			}
			continue
		}
		reply := s.answer(buf[:n], false)
		if reply.message == nil {
			continue
		}
		if reply.after == 0 {
			c.WriteTo(reply.message, from)
			continue
		}
		s.serving.Add(1)
		go func() {
			defer s.serving.Done()
			if s.wait(reply.after) {
				c.WriteTo(reply.message, from)
			}
		}()
	}
}

func (s *Server) serveStreams(l net.Listener) {
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			if !s.wait(pause) {
				return
			}
			continue
		}
		if s.adopt(c) {
			go func() {
				defer s.release(c)
				s.serveStream(c)
			}()
		}
	}
}

// pause is the time between two calls that fail, as http.Server's first between two of Accept.
const pause = 5 * time.Millisecond

// serveStream answers one query after the other; each message has its length before it (RFC 1035, 4.2.2).
func (s *Server) serveStream(c net.Conn) {
	for {
		var length [2]byte
		if _, err := io.ReadFull(c, length[:]); err != nil {
			return
		}
		query := make([]byte, binary.BigEndian.Uint16(length[:]))
		if _, err := io.ReadFull(c, query); err != nil {
			return
		}
		reply := s.answer(query, true)
		if reply.message == nil {
			continue
		}
		if !s.wait(reply.after) {
			return
		}
		framed := binary.BigEndian.AppendUint16(nil, uint16(len(reply.message)))
		if _, err := c.Write(append(framed, reply.message...)); err != nil {
			return
		}
	}
}

// wait lets d pass; false if the server is closed first.
func (s *Server) wait(d time.Duration) bool {
	if d == 0 {
		return !s.isClosed()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-s.done:
		return false
	}
}

func (s *Server) isClosed() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}
