package socksrelay

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// earlyLimit bounds what is read ahead while the relay dials. A client that sends more is not watched any longer.
const earlyLimit = 4 << 10

// watch reads ahead from the client while the relay dials, because a client that goes away must end the dial. What it
// reads is kept for the destination. stop ends the watch.
func (s *session) watch() (stop func()) {
	done := make(chan struct{})
	stopping := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 512)
		for len(s.early) < earlyLimit {
			n, err := s.client.Read(buf)
			s.early = append(s.early, buf[:n]...)
			if err != nil {
				if !errors.Is(err, os.ErrDeadlineExceeded) {
					s.cancel()
				}
				return
			}
			select {
			case <-stopping:
				return
			default:
			}
		}
	}()
	return func() {
		close(stopping)
		s.client.SetReadDeadline(time.Unix(1, 0))
		<-done
		s.client.SetReadDeadline(time.Time{})
	}
}

// lateConn is a connection whose dial is still going on: it exists for go-socks5, and its reads and writes wait.
type lateConn struct {
	dialled chan struct{}
	once    sync.Once
	closed  chan struct{}
	conn    net.Conn
	err     error
}

// later dials behind the back of a client that has been told of success.
func (s *session) later(network, destination string) net.Conn {
	l := &lateConn{dialled: make(chan struct{}), closed: make(chan struct{})}
	s.relay.work.Add(1)
	go func() {
		defer s.relay.work.Done()
		conn, err := s.connect(network, destination)
		l.conn, l.err = conn, err
		close(l.dialled)
		select {
		case <-l.closed: // Close may have come too early to see the connection
			l.Close()
		default:
		}
		if err != nil {
			s.Close()
		}
	}()
	return l
}

func (l *lateConn) wait() error {
	<-l.dialled
	return l.err
}

func (l *lateConn) Read(p []byte) (int, error) {
	if err := l.wait(); err != nil {
		return 0, &net.OpError{Op: "read", Net: "tcp", Err: err}
	}
	return l.conn.Read(p)
}

func (l *lateConn) Write(p []byte) (int, error) {
	if err := l.wait(); err != nil {
		return 0, &net.OpError{Op: "write", Net: "tcp", Err: err}
	}
	return l.conn.Write(p)
}

// Close ends the connection, or makes the dial close its result.
func (l *lateConn) Close() error {
	l.once.Do(func() { close(l.closed) })
	select {
	case <-l.dialled:
		if l.err != nil {
			return nil
		}
		return l.conn.Close()
	default:
		return nil
	}
}

func (l *lateConn) CloseWrite() error {
	if l.wait() != nil {
		return nil
	}
	return closeWrite(l.conn)
}

func (l *lateConn) LocalAddr() net.Addr              { return &net.TCPAddr{IP: net.IPv4zero} }
func (l *lateConn) RemoteAddr() net.Addr             { return &net.TCPAddr{IP: net.IPv4zero} }
func (l *lateConn) SetDeadline(time.Time) error      { return errors.ErrUnsupported }
func (l *lateConn) SetReadDeadline(time.Time) error  { return errors.ErrUnsupported }
func (l *lateConn) SetWriteDeadline(time.Time) error { return errors.ErrUnsupported }
