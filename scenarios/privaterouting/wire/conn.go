package wire

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
)

// Events are what a connection tells its owner. They are called from Serve, one at a time.
type Events struct {
	// Received is called for every frame, before anything else.
	Received func()
	// Message is called for every frame that is no answer to a Call.
	Message func(c *Conn, correlation uint64, m Message)
}

// Conn is a connection that carries frames, with questions and answers in any order. One goroutine runs Serve; the other
// methods may be called from many.
type Conn struct {
	raw    net.Conn
	events Events
	write  chan struct{} // holds a token while somebody writes; a channel, for a write may block

	mu      sync.Mutex
	last    uint64
	pending map[uint64]chan Message
}

// NewConn returns a connection over raw. Nothing is read before Serve.
func NewConn(raw net.Conn, events Events) *Conn {
	return &Conn{raw: raw, events: events, write: make(chan struct{}, 1), pending: map[uint64]chan Message{}}
}

// Serve reads frames until the connection ends or breaks the protocol, and closes it. The error is io.EOF if the other
// side closed it properly.
func (c *Conn) Serve() error {
	defer c.raw.Close()
	r := bufio.NewReader(c.raw)
	for {
		correlation, m, err := ReadFrame(r)
		if err != nil {
			return err
		}
		if c.events.Received != nil {
			c.events.Received()
		}
		if answer := c.asked(correlation); answer != nil {
			answer <- m
		} else if c.events.Message != nil {
			c.events.Message(c, correlation, m)
		}
	}
}

func (c *Conn) asked(correlation uint64) chan Message {
	c.mu.Lock()
	defer c.mu.Unlock()
	answer := c.pending[correlation]
	delete(c.pending, correlation)
	return answer
}

// Call sends a question and waits for its answer or the end of ctx. The end of the connection does not end the wait: the
// answer simply never comes.
func (c *Conn) Call(ctx context.Context, m Message) (Message, error) {
	answer := make(chan Message, 1)
	c.mu.Lock()
	c.last++
	correlation := c.last
	c.pending[correlation] = answer
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.pending, correlation)
		c.mu.Unlock()
	}()
	if err := c.Send(ctx, correlation, m); err != nil {
		return nil, err
	}
	select {
	case m := <-answer:
		return m, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("wire: no answer to %s: %w", m.Tag(), ctx.Err())
	}
}

// Send sends one frame.
func (c *Conn) Send(ctx context.Context, correlation uint64, m Message) error {
	select {
	case c.write <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("wire: no turn to send %s: %w", m.Tag(), ctx.Err())
	}
	defer func() { <-c.write }()
	if err := WriteFrame(c.raw, correlation, m); err != nil {
		return fmt.Errorf("wire: send %s: %w", m.Tag(), err)
	}
	return nil
}

// Close ends the connection; Serve returns.
func (c *Conn) Close() error { return c.raw.Close() }

// RemoteAddr is the other side's.
func (c *Conn) RemoteAddr() net.Addr { return c.raw.RemoteAddr() }

// Ended reports whether an error of Serve is the ordinary end of a connection, by either side.
func Ended(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) }
