package blackhole

import "net"

// Abort closes a connection by RST: it sets the linger time to 0 on the first connection that has SetLinger, looking
// through NetConn methods (as tls.Conn has), and closes the connection. Without SetLinger it is an ordinary Close.
func Abort(c net.Conn) error {
	inner := c
	for inner != nil {
		if l, ok := inner.(interface{ SetLinger(sec int) error }); ok {
			if l.SetLinger(0) == nil {
				return inner.Close()
			}
		}
		w, ok := inner.(interface{ NetConn() net.Conn })
		if !ok {
			break
		}
		inner = w.NetConn()
	}
	return c.Close()
}
