// Package wire is the protocol of the private-routing world: framed messages between agents, proxies and relays.
//
// A frame is a length (2 bytes, big-endian, of what follows), a correlation number (8 bytes) and a message: a tag of four
// letters and its fields. Texts and byte strings have a length of 2 bytes before them. An answer carries the number of
// its question; 0 marks what comes unasked.
//
// Parsing is strict: whatever is not exactly a message is an error that names it, and ends the connection.
//
//	c := wire.NewConn(raw, wire.Events{})
//	go c.Serve()
//	answer, err := c.Call(ctx, &wire.Ping{}) // *wire.Pong
package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

const correlationLen = 8

// WriteFrame writes one frame, in one Write.
func WriteFrame(w io.Writer, correlation uint64, m Message) error {
	body := Encode(m)
	frame := make([]byte, 2, 2+correlationLen+len(body))
	binary.BigEndian.PutUint16(frame, uint16(correlationLen+len(body)))
	frame = binary.BigEndian.AppendUint64(frame, correlation)
	_, err := w.Write(append(frame, body...))
	return err
}

// ReadFrame reads one frame. It returns io.EOF only between frames; inside one the end is io.ErrUnexpectedEOF.
func ReadFrame(r io.Reader) (correlation uint64, m Message, err error) {
	var head [2 + correlationLen]byte
	if _, err := io.ReadFull(r, head[:2]); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = fmt.Errorf("wire: a frame's length: %w", err)
		}
		return 0, nil, err
	}
	n := int(binary.BigEndian.Uint16(head[:2])) - correlationLen
	if n < 4 || n > MaxMessage {
		return 0, nil, malformed("a frame of %d bytes: want %d to %d", n+correlationLen, correlationLen+4, correlationLen+MaxMessage)
	}
	if err := readRest(r, head[2:], "correlation"); err != nil {
		return 0, nil, err
	}
	body := make([]byte, n)
	if err := readRest(r, body, "message"); err != nil {
		return 0, nil, err
	}
	m, err = Decode(body)
	return binary.BigEndian.Uint64(head[2:]), m, err
}

func readRest(r io.Reader, b []byte, what string) error {
	if _, err := io.ReadFull(r, b); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return fmt.Errorf("wire: a frame's %s: %w", what, err)
	}
	return nil
}
