package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unicode/utf8"
)

// MaxMessage is the longest message, in bytes, without its frame's header.
const MaxMessage = 16 << 10

// ErrMalformed is in the chain of every error about bytes that are no message.
var ErrMalformed = errors.New("malformed")

func malformed(format string, args ...any) error {
	return fmt.Errorf("wire: "+format+": %w", append(args, ErrMalformed)...)
}

// Encode returns a message as bytes: its tag and its fields. It panics if the message is longer than MaxMessage or a
// text longer than 65535 bytes; callers bound what they send.
func Encode(m Message) []byte {
	w := writer{append(make([]byte, 0, 64), m.Tag()...)}
	m.put(&w)
	if len(w.buf) > MaxMessage {
		panic(fmt.Sprintf("wire: Encode: %s of %d bytes is longer than %d", m.Tag(), len(w.buf), MaxMessage))
	}
	return w.buf
}

// Decode is the reverse of Encode. It is strict: an unknown tag, a field that is cut off or out of its range, bytes left
// over or too many give an error that names the message and the field, and wraps ErrMalformed.
func Decode(b []byte) (Message, error) {
	if len(b) < 4 {
		return nil, malformed("a message of %d bytes has no tag", len(b))
	}
	if len(b) > MaxMessage {
		return nil, malformed("a message of %d bytes is longer than %d", len(b), MaxMessage)
	}
	tag := string(b[:4])
	m := blank(tag)
	if m == nil {
		return nil, malformed("unknown tag %q", tag)
	}
	r := reader{buf: b[4:], tag: tag}
	m.get(&r)
	if r.err == nil && len(r.buf) > 0 {
		r.err = malformed("%s: %d bytes left over", tag, len(r.buf))
	}
	if r.err != nil {
		return nil, r.err
	}
	return m, nil
}

type writer struct{ buf []byte }

func (w *writer) byte(v byte)     { w.buf = append(w.buf, v) }
func (w *writer) uint16(v uint16) { w.buf = binary.BigEndian.AppendUint16(w.buf, v) }
func (w *writer) uint64(v uint64) { w.buf = binary.BigEndian.AppendUint64(w.buf, v) }
func (w *writer) text(s string)   { w.bytes([]byte(s)) }
func (w *writer) bytes(b []byte) {
	if len(b) > 0xffff {
		panic(fmt.Sprintf("wire: Encode: a field of %d bytes is longer than 65535", len(b)))
	}
	w.uint16(uint16(len(b)))
	w.buf = append(w.buf, b...)
}

// reader takes fields off a message. After the first error it gives zero values.
type reader struct {
	buf []byte
	tag string
	err error
}

func (r *reader) take(field string, n int) []byte {
	if r.err != nil {
		return nil
	}
	if len(r.buf) < n {
		r.err = malformed("%s: %s: %d bytes missing", r.tag, field, n-len(r.buf))
		return nil
	}
	b := r.buf[:n]
	r.buf = r.buf[n:]
	return b
}

func (r *reader) uint16(field string) uint16 {
	if b := r.take(field, 2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

func (r *reader) uint64(field string) uint64 {
	if b := r.take(field, 8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

// enum reads a byte below n.
func (r *reader) enum(field string, n int) byte {
	b := r.take(field, 1)
	if b == nil {
		return 0
	}
	if int(b[0]) >= n {
		r.err = malformed("%s: %s: %d is not below %d", r.tag, field, b[0], n)
		return 0
	}
	return b[0]
}

func (r *reader) bytes(field string) []byte {
	n := r.uint16(field)
	return append([]byte(nil), r.take(field, int(n))...)
}

func (r *reader) text(field string) string {
	s := string(r.take(field, int(r.uint16(field))))
	if r.err == nil && !utf8.ValidString(s) {
		r.err = malformed("%s: %s: not UTF-8", r.tag, field)
	}
	return s
}

// name reads a text that must not be empty.
func (r *reader) name(field string) string {
	s := r.text(field)
	if r.err == nil && s == "" {
		r.err = malformed("%s: %s: empty", r.tag, field)
	}
	return s
}
