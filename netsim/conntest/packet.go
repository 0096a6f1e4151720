package conntest

import (
	"errors"
	"fmt"
	"net"
	"time"
)

// A PacketProperty is one promise of a net.PacketConn, tried on two of them
// that reach each other without loss.
type PacketProperty struct {
	Name   string
	Claims string
	Test   func(a, b net.PacketConn) error
}

// Packet is every property of packet connections.
func Packet() []PacketProperty {
	return []PacketProperty{
		{"KeepsBoundaries", "a datagram is read as it was written, with its sender", keepsBoundaries},
		{"ShortBuffer", "a datagram longer than the buffer is cut, and its rest is gone", shortBuffer},
		{"ReadDeadline", "a read waits until its deadline; the connection works afterwards", packetReadDeadline},
		{"DeadlineMoved", "a deadline moved while a read waits holds for that read", packetDeadlineMoved},
		{"PastWriteDeadline", "a write deadline that has passed fails a write", packetPastWriteDeadline},
		{"CloseUnblocksRead", "Close ends a read that waits, with net.ErrClosed", packetCloseUnblocks},
	}
}

// CheckPacket gives the properties that do not hold.
func CheckPacket(make func() (a, b net.PacketConn, err error), properties ...PacketProperty) []error {
	var failures []error
	for _, p := range properties {
		a, b, err := make()
		if err == nil {
			err = within(func() error { return p.Test(a, b) })
			a.Close()
			b.Close()
		}
		if err != nil {
			failures = append(failures, fmt.Errorf("%s: %w (%s)", p.Name, err, p.Claims))
		}
	}
	return failures
}

func readPacket(c net.PacketConn, buf []byte, want string, from net.Addr) error {
	if err := c.SetReadDeadline(time.Now().Add(patience / 2)); err != nil {
		return err
	}
	k, addr, err := c.ReadFrom(buf)
	if err != nil {
		return err
	}
	if string(buf[:k]) != want || addr.String() != from.String() {
		return fmt.Errorf("%q from %v, want %q from %v", buf[:k], addr, want, from)
	}
	return nil
}

func keepsBoundaries(a, b net.PacketConn) error {
	buf := make([]byte, 100)
	for _, s := range []string{"one", "", "three"} {
		if k, err := a.WriteTo([]byte(s), b.LocalAddr()); err != nil || k != len(s) {
			return fmt.Errorf("writing %q: %d, %v", s, k, err)
		}
		if err := readPacket(b, buf, s, a.LocalAddr()); err != nil {
			return err
		}
	}
	return nil
}

func shortBuffer(a, b net.PacketConn) error {
	for _, s := range []string{"truncated", "next"} {
		if _, err := a.WriteTo([]byte(s), b.LocalAddr()); err != nil {
			return err
		}
	}
	return errors.Join(readPacket(b, make([]byte, 5), "trunc", a.LocalAddr()), readPacket(b, make([]byte, 5), "next", a.LocalAddr()))
}

func packetReadDeadline(a, b net.PacketConn) error {
	start := time.Now()
	if err := b.SetReadDeadline(start.Add(moment)); err != nil {
		return err
	}
	_, _, err := b.ReadFrom(make([]byte, 1))
	if d := time.Since(start); d < moment {
		return fmt.Errorf("the read took %v where %v were due", d, moment)
	}
	return errors.Join(isTimeout(err), keepsBoundaries(a, b))
}

func packetReading(c net.PacketConn) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, _, err := c.ReadFrom(make([]byte, 1))
		done <- err
	}()
	time.Sleep(moment)
	return done
}

func packetDeadlineMoved(a, _ net.PacketConn) error {
	if err := a.SetReadDeadline(time.Now().Add(time.Hour)); err != nil {
		return err
	}
	r := packetReading(a)
	if err := a.SetReadDeadline(time.Now().Add(moment)); err != nil {
		return err
	}
	return isTimeout(<-r)
}

func packetPastWriteDeadline(a, b net.PacketConn) error {
	if err := a.SetWriteDeadline(time.Now().Add(-time.Second)); err != nil {
		return err
	}
	_, err := a.WriteTo([]byte("x"), b.LocalAddr())
	return isTimeout(err)
}

func packetCloseUnblocks(a, _ net.PacketConn) error {
	r := packetReading(a)
	if err := a.Close(); err != nil {
		return err
	}
	return isClosed(<-r)
}
