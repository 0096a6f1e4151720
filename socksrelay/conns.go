package socksrelay

import (
	"errors"
	"io"
	"net"

	"github.com/seed-5a7f77c4/deadair/blackhole"
)

// clientConn is what go-socks5 sees of a client. It corrects the reply and carries the data in a way that keeps one
// direction alive when the other has failed.
type clientConn struct {
	net.Conn
	s *session
}

// Read gives what was read ahead during the dial first.
func (c *clientConn) Read(p []byte) (int, error) {
	if n := copy(p, c.s.early); n > 0 {
		c.s.early = c.s.early[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}

func (c *clientConn) flushEarly(w io.Writer) (int64, error) {
	n, err := w.Write(c.s.early)
	c.s.early = nil
	return int64(n), err
}

// shortestReply tells a SOCKS reply from the answers before it, which have two bytes. go-socks5 writes each in one go.
const shortestReply = 10

func (c *clientConn) Write(p []byte) (int, error) {
	if len(p) >= shortestReply {
		if _, err := c.Conn.Write(rewriteReply(p, c.s.code, c.s.bound)); err != nil {
			return 0, err
		}
		c.s.phase.Store(int32(Data))
		return len(p), nil
	}
	return c.Conn.Write(p)
}

// WriteTo carries the client's data to the destination.
func (c *clientConn) WriteTo(w io.Writer) (int64, error) {
	if t, ok := w.(*target); ok {
		w = t.Conn
	}
	if n, err := c.flushEarly(w); err != nil {
		return n, nil // an error in writing, as in carry
	}
	n, err := carry(w, c.Conn)
	c.s.found()
	return n, err
}

// CloseWrite ends the stream towards the client.
func (c *clientConn) CloseWrite() error { return closeWrite(c.Conn) }

// target is what go-socks5 sees of a destination.
type target struct {
	net.Conn
	s *session
}

// WriteTo carries the destination's data to the client.
func (t *target) WriteTo(w io.Writer) (int64, error) {
	if c, ok := w.(*clientConn); ok {
		w = c.Conn
	}
	return carry(w, t.Conn)
}

// CloseWrite ends the stream towards the destination.
func (t *target) CloseWrite() error { return closeWrite(t.Conn) }

// LocalAddr is always a *net.TCPAddr, which go-socks5 takes for granted.
func (t *target) LocalAddr() net.Addr {
	switch a := t.Conn.LocalAddr().(type) {
	case *net.TCPAddr:
		return a
	case *net.UDPAddr:
		return &net.TCPAddr{IP: a.IP, Port: a.Port}
	}
	return &net.TCPAddr{IP: net.IPv4zero}
}

// closeWrite ends the stream towards c; a connection that cannot end one of its streams is closed.
func closeWrite(c net.Conn) error {
	if h, ok := c.(interface{ CloseWrite() error }); ok {
		return h.CloseWrite()
	}
	return c.Close()
}

// carry copies one direction. An error in writing ends this direction only: what the other end has still sent gets
// through, and its connection ends the other direction by itself. An error in reading means that the sender has gone.
func carry(dst io.Writer, src io.Reader) (int64, error) {
	n, err := blackhole.Copy(dst, src)
	var op *net.OpError
	if errors.As(err, &op) && op.Op != "read" {
		return n, nil
	}
	return n, err
}
