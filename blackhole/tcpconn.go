package blackhole

import (
	"errors"
	"fmt"
	"net"
	"time"
)

// halfCloser is what makes a connection one of two streams that end one by one.
type halfCloser interface {
	CloseRead() error
	CloseWrite() error
}

// TCPConn is a [Conn] whose inner connection can end its two streams one by one, as *net.TCPConn, *net.UnixConn and
// simulated TCP connections can. The methods named after those of *net.TCPConn hand on to the inner connection; where
// it has no such method they return an error that wraps errors.ErrUnsupported.
type TCPConn struct {
	*Conn
	inner halfCloser
}

// CloseRead shuts the reading side; later reads return io.EOF.
func (c *TCPConn) CloseRead() error { return c.inner.CloseRead() }

// CloseWrite ends the stream that is written. The end meets the faults as bytes do: it may vanish, stand still or be
// delayed; in that time CloseWrite does not return.
func (c *TCPConn) CloseWrite() error { return c.endWriting() }

// SetLinger is as for *net.TCPConn.
func (c *TCPConn) SetLinger(sec int) error {
	return handOn(c, "SetLinger", func(in interface{ SetLinger(int) error }) error { return in.SetLinger(sec) })
}

// SetNoDelay is as for *net.TCPConn.
func (c *TCPConn) SetNoDelay(noDelay bool) error {
	return handOn(c, "SetNoDelay", func(in interface{ SetNoDelay(bool) error }) error { return in.SetNoDelay(noDelay) })
}

// SetKeepAlive is as for *net.TCPConn.
func (c *TCPConn) SetKeepAlive(on bool) error {
	return handOn(c, "SetKeepAlive", func(in interface{ SetKeepAlive(bool) error }) error { return in.SetKeepAlive(on) })
}

// SetKeepAlivePeriod is as for *net.TCPConn.
func (c *TCPConn) SetKeepAlivePeriod(d time.Duration) error {
	return handOn(c, "SetKeepAlivePeriod", func(in interface{ SetKeepAlivePeriod(time.Duration) error }) error {
		return in.SetKeepAlivePeriod(d)
	})
}

// SetKeepAliveConfig is as for *net.TCPConn.
func (c *TCPConn) SetKeepAliveConfig(config net.KeepAliveConfig) error {
	return handOn(c, "SetKeepAliveConfig", func(in interface {
		SetKeepAliveConfig(net.KeepAliveConfig) error
	}) error {
		return in.SetKeepAliveConfig(config)
	})
}

// SetReadBuffer is as for *net.TCPConn.
func (c *TCPConn) SetReadBuffer(bytes int) error {
	return handOn(c, "SetReadBuffer", func(in interface{ SetReadBuffer(int) error }) error { return in.SetReadBuffer(bytes) })
}

// SetWriteBuffer is as for *net.TCPConn.
func (c *TCPConn) SetWriteBuffer(bytes int) error {
	return handOn(c, "SetWriteBuffer", func(in interface{ SetWriteBuffer(int) error }) error { return in.SetWriteBuffer(bytes) })
}

// handOn calls a method that the inner connection may have.
func handOn[I any](c *TCPConn, method string, call func(I) error) error {
	in, ok := c.Conn.inner.(I)
	if !ok {
		return c.opError("set", fmt.Errorf("%T has no %s: %w", c.Conn.inner, method, errors.ErrUnsupported))
	}
	return call(in)
}
