package conntest

import (
	"errors"
	"fmt"
	"net"
	"time"
)

// A ListenerProperty is one promise of a net.Listener and of the dials to it.
// Test is given a listener of its own and what dials it.
type ListenerProperty struct {
	Name   string
	Claims string
	Test   func(l net.Listener, dial func() (net.Conn, error)) error
}

// Listener is every property of listeners.
func Listener() []ListenerProperty {
	return []ListenerProperty{
		{"Accepts", "Accept gives the other end of a dial", accepts},
		{"DialNeedsNoAccept", "a dial succeeds before anybody accepts", dialNeedsNoAccept},
		{"CloseUnblocksAccept", "Close ends an Accept that waits, with net.ErrClosed", closeUnblocksAccept},
		{"AcceptAfterClose", "Accept fails with net.ErrClosed after Close", acceptAfterClose},
		{"DialAfterClose", "a dial fails after Close", dialAfterClose},
		{"ConnOutlivesListener", "a connection goes on when its listener is closed", connOutlivesListener},
	}
}

// CheckListener gives the properties that do not hold.
func CheckListener(make func() (net.Listener, func() (net.Conn, error), error), properties ...ListenerProperty) []error {
	var failures []error
	for _, p := range properties {
		l, dial, err := make()
		if err == nil {
			err = within(func() error { return p.Test(l, dial) })
			l.Close()
		}
		if err != nil {
			failures = append(failures, fmt.Errorf("%s: %w (%s)", p.Name, err, p.Claims))
		}
	}
	return failures
}

func accepts(l net.Listener, dial func() (net.Conn, error)) error {
	dialled := make(chan error, 1)
	go func() {
		c, err := dial()
		if err == nil {
			err = errors.Join(send(c, "hello"), c.Close())
		}
		dialled <- err
	}()
	c, err := l.Accept()
	if err != nil {
		return err
	}
	defer c.Close()
	return errors.Join(receive(c, "hello"), <-dialled)
}

func dialNeedsNoAccept(l net.Listener, dial func() (net.Conn, error)) error {
	c, err := dial()
	if err != nil {
		return err
	}
	return c.Close()
}

func closeUnblocksAccept(l net.Listener, _ func() (net.Conn, error)) error {
	done := make(chan error, 1)
	go func() {
		_, err := l.Accept()
		done <- err
	}()
	time.Sleep(moment)
	if err := l.Close(); err != nil {
		return err
	}
	return isClosed(<-done)
}

func isClosed(err error) error {
	if !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("%v (%T) is not net.ErrClosed", err, err)
	}
	return nil
}

func acceptAfterClose(l net.Listener, _ func() (net.Conn, error)) error {
	if err := l.Close(); err != nil {
		return err
	}
	_, err := l.Accept()
	return isClosed(err)
}

func dialAfterClose(l net.Listener, dial func() (net.Conn, error)) error {
	if err := l.Close(); err != nil {
		return err
	}
	if c, err := dial(); err == nil {
		return errors.Join(errors.New("it succeeds"), c.Close())
	}
	return nil
}

func connOutlivesListener(l net.Listener, dial func() (net.Conn, error)) error {
	a, err := dial()
	if err != nil {
		return err
	}
	defer a.Close()
	b, err := l.Accept()
	if err != nil {
		return err
	}
	defer b.Close()
	return errors.Join(l.Close(), exchange(a, b, "still there"))
}
