// Package conntest says whether a net.Conn keeps what the interface promises,
// one function a property. It runs on anything that makes pairs of connections,
// inside a synctest bubble and outside.
//
//	func TestConn(t *testing.T) {
//		conntest.Run(t, func() (a, b net.Conn, stop func(), err error) {
//			a, b = net.Pipe()
//			return a, b, func() { a.Close(); b.Close() }, nil
//		}, conntest.Stream()...)
//	}
//
// [Run] makes no subtests, which a bubble forbids; [Check] gives the failures
// as errors instead, for those who expect some.
package conntest

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// A MakePair gives two connected ends and what closes them and all behind them.
type MakePair func() (a, b net.Conn, stop func(), err error)

// A Property is one promise and what shows that it is kept. Test returns nil,
// or an error that says what was seen instead.
type Property struct {
	Name   string
	Claims string
	Test   func(a, b net.Conn) error
}

// patience bounds every wait of a property, so that none hangs.
const patience = 10 * time.Second

// moment is a wait that is long for a machine and short for a reader.
const moment = 50 * time.Millisecond

// Run fails t for every property that does not hold.
func Run(t testing.TB, make MakePair, properties ...Property) {
	t.Helper()
	for _, f := range Check(make, properties...) {
		t.Error(f)
	}
}

// A Failure is a property that does not hold.
type Failure struct {
	Property Property
	Err      error
}

// Error says which rule was broken, and how.
func (f *Failure) Error() string {
	return fmt.Sprintf("%s: %v (%s)", f.Property.Name, f.Err, f.Property.Claims)
}

// Unwrap is what was seen.
func (f *Failure) Unwrap() error { return f.Err }

// Check gives the properties that do not hold, each tried on a pair of its own.
func Check(make MakePair, properties ...Property) []*Failure {
	var failures []*Failure
	for _, p := range properties {
		a, b, stop, err := make()
		if err == nil {
			err = within(func() error { return p.Test(a, b) })
			stop()
		}
		if err != nil {
			failures = append(failures, &Failure{p, err})
		}
	}
	return failures
}

// within gives up on f when it hangs; what it waits for ends when its pair is
// closed.
func within(f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case err := <-done:
		return err
	case <-late.C:
		return fmt.Errorf("it hangs, for %v", patience)
	}
}

// Stream is every property that any net.Conn with a stream behind it keeps.
func Stream() []Property {
	return []Property{
		{"DeliversInOrder", "what is written is read, whole and in order", deliversInOrder},
		{"BothWaysAtOnce", "both ends read and write at the same time", bothWays},
		{"EOFAfterClose", "the peer of a closed end reads what was written before, then io.EOF", eofAfterClose},
		{"ClosedEnd", "calls on a closed end fail and do not block", closedEnd},
		{"CloseUnblocksRead", "Close ends a read that waits", closeUnblocks},
		{"PastReadDeadline", "a read deadline that has passed fails a read, though bytes may be there", pastReadDeadline},
		{"PastWriteDeadline", "a write deadline that has passed fails a write, though it need not block", pastWriteDeadline},
		{"FutureReadDeadline", "a read waits until its deadline, not less and not much more", futureReadDeadline},
		{"DeadlineSet", "a deadline set while a read waits without one holds for that read", deadlineSet},
		{"DeadlineMovedEarlier", "a deadline moved while a read waits holds for that read", deadlineMovedEarlier},
		{"DeadlineMovedLater", "a deadline postponed while a read waits holds for that read", deadlineMovedLater},
		{"DeadlineCleared", "a deadline cleared while a read waits leaves that read waiting", deadlineCleared},
		{"UsableAfterDeadline", "a connection works after a time-out, and has lost nothing", usableAfterDeadline},
		{"DeadlineIsNetError", "the error of a deadline is a net.Error with Timeout, and os.ErrDeadlineExceeded", deadlineError},
		{"Addresses", "both addresses are known", addresses},
	}
}

// HalfClose is what a *net.TCPConn promises besides: CloseWrite and CloseRead.
func HalfClose() []Property {
	return []Property{
		{"CloseWrite", "after CloseWrite the peer reads io.EOF and can still send", closeWrite},
		{"WriteAfterCloseWrite", "a write after CloseWrite fails", writeAfterCloseWrite},
		{"CloseRead", "after CloseRead reads end with io.EOF, and writes go on", closeRead},
	}
}

func send(c net.Conn, s string) error {
	if err := c.SetWriteDeadline(time.Now().Add(patience / 2)); err != nil {
		return err
	}
	if k, err := c.Write([]byte(s)); err != nil || k != len(s) {
		return fmt.Errorf("writing %d bytes: %d, %v", len(s), k, err)
	}
	return c.SetWriteDeadline(time.Time{})
}

// receive reads want. An error of the deadline is not looked at: a pipe whose
// other end is closed takes none.
func receive(c net.Conn, want string) error {
	c.SetReadDeadline(time.Now().Add(patience / 2))
	defer c.SetReadDeadline(time.Time{})
	got := make([]byte, len(want))
	if k, err := io.ReadFull(c, got); err != nil {
		return fmt.Errorf("reading %d bytes: %d, %v", len(want), k, err)
	}
	if string(got) != want {
		return fmt.Errorf("other bytes came than were written")
	}
	return nil
}

// exchange sends from one end to the other, where a write may wait for the read.
func exchange(from, to net.Conn, s string) error {
	sent := make(chan error, 1)
	go func() { sent <- send(from, s) }()
	return errors.Join(receive(to, s), <-sent)
}

func pattern(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i ^ i>>8)
	}
	return string(b)
}

func deliversInOrder(a, b net.Conn) error { return exchange(a, b, pattern(300<<10)) }

func bothWays(a, b net.Conn) error {
	other := make(chan error, 1)
	go func() { other <- exchange(b, a, pattern(100<<10)) }()
	return errors.Join(exchange(a, b, pattern(100<<10)), <-other)
}

func eofAfterClose(a, b net.Conn) error {
	go func() {
		send(a, "last words")
		a.Close()
	}()
	if err := receive(b, "last words"); err != nil {
		return err
	}
	return wantEOF(b)
}

func wantEOF(c net.Conn) error {
	c.SetReadDeadline(time.Now().Add(patience / 2))
	defer c.SetReadDeadline(time.Time{})
	if k, err := c.Read(make([]byte, 1)); k != 0 || err != io.EOF {
		return fmt.Errorf("reading gives %d, %v where io.EOF was due", k, err)
	}
	return nil
}

func closedEnd(a, b net.Conn) error {
	if err := a.Close(); err != nil {
		return err
	}
	if _, err := a.Read(make([]byte, 1)); err == nil {
		return errors.New("a read succeeds")
	}
	if _, err := a.Write([]byte("x")); err == nil {
		return errors.New("a write succeeds")
	}
	return nil
}

// reading starts a read and gives its error, once it has been let begin.
func reading(c net.Conn) <-chan error {
	done := make(chan error, 1)
	go func() {
		k, err := c.Read(make([]byte, 1))
		if err == nil {
			err = fmt.Errorf("%d bytes came", k)
		}
		done <- err
	}()
	time.Sleep(moment)
	return done
}

func closeUnblocks(a, b net.Conn) error {
	r := reading(a)
	if err := a.Close(); err != nil {
		return err
	}
	<-r
	return nil
}

func isTimeout(err error) error {
	var ne net.Error
	if !errors.As(err, &ne) || !ne.Timeout() {
		return fmt.Errorf("%v (%T) where a time-out was due", err, err)
	}
	return nil
}

func pastReadDeadline(a, b net.Conn) error {
	sent := make(chan error, 1)
	go func() { sent <- send(b, "x") }()
	time.Sleep(moment)
	if err := a.SetReadDeadline(time.Now().Add(-time.Second)); err != nil {
		return err
	}
	_, err := a.Read(make([]byte, 1))
	return errors.Join(isTimeout(err), receive(a, "x"), <-sent)
}

func pastWriteDeadline(a, b net.Conn) error {
	if err := a.SetWriteDeadline(time.Now().Add(-time.Second)); err != nil {
		return err
	}
	_, err := a.Write([]byte("x"))
	return isTimeout(err)
}

func futureReadDeadline(a, b net.Conn) error {
	start := time.Now()
	if err := a.SetReadDeadline(start.Add(moment)); err != nil {
		return err
	}
	_, err := a.Read(make([]byte, 1))
	if d := time.Since(start); d < moment || d > patience/2 {
		return fmt.Errorf("the read took %v where %v were due", d, moment)
	}
	return isTimeout(err)
}

func deadlineSet(a, b net.Conn) error {
	r := reading(a)
	if err := a.SetReadDeadline(time.Now().Add(moment)); err != nil {
		return err
	}
	return isTimeout(<-r)
}

func deadlineMovedEarlier(a, b net.Conn) error {
	if err := a.SetReadDeadline(time.Now().Add(time.Hour)); err != nil {
		return err
	}
	r := reading(a)
	if err := a.SetReadDeadline(time.Now().Add(moment)); err != nil {
		return err
	}
	return isTimeout(<-r)
}

func deadlineMovedLater(a, b net.Conn) error {
	first := time.Now().Add(4 * moment)
	if err := a.SetReadDeadline(first); err != nil {
		return err
	}
	r := reading(a)
	second := first.Add(2 * moment)
	if err := a.SetReadDeadline(second); err != nil {
		return err
	}
	err := <-r
	if time.Now().Before(second) {
		return fmt.Errorf("the read ended %v early: %v", time.Until(second), err)
	}
	return isTimeout(err)
}

func deadlineCleared(a, b net.Conn) error {
	if err := a.SetReadDeadline(time.Now().Add(3 * moment)); err != nil {
		return err
	}
	r := reading(a)
	if err := a.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	timer := time.NewTimer(5 * moment)
	defer timer.Stop()
	select {
	case err := <-r:
		return fmt.Errorf("the read ended: %v", err)
	case <-timer.C:
		return nil
	}
}

func usableAfterDeadline(a, b net.Conn) error {
	if err := futureReadDeadline(a, b); err != nil {
		return err
	}
	if err := a.SetDeadline(time.Time{}); err != nil {
		return err
	}
	return errors.Join(exchange(b, a, pattern(1000)), exchange(a, b, pattern(1000)))
}

func deadlineError(a, b net.Conn) error {
	if err := a.SetReadDeadline(time.Now().Add(-time.Second)); err != nil {
		return err
	}
	_, err := a.Read(make([]byte, 1))
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("%v (%T) is not os.ErrDeadlineExceeded", err, err)
	}
	return isTimeout(err)
}

func addresses(a, b net.Conn) error {
	for _, c := range []net.Conn{a, b} {
		if c.LocalAddr() == nil || c.RemoteAddr() == nil || c.LocalAddr().Network() == "" {
			return fmt.Errorf("local %v, remote %v", c.LocalAddr(), c.RemoteAddr())
		}
	}
	return nil
}

type halfCloser interface {
	CloseWrite() error
	CloseRead() error
}

func half(c net.Conn) (halfCloser, error) {
	h, ok := c.(halfCloser)
	if !ok {
		return nil, fmt.Errorf("%T has no CloseWrite and CloseRead", c)
	}
	return h, nil
}

func closeWrite(a, b net.Conn) error {
	h, err := half(a)
	if err != nil {
		return err
	}
	if err := errors.Join(exchange(a, b, "question"), h.CloseWrite(), wantEOF(b)); err != nil {
		return err
	}
	return exchange(b, a, "answer")
}

func writeAfterCloseWrite(a, b net.Conn) error {
	h, err := half(a)
	if err != nil {
		return err
	}
	if err := h.CloseWrite(); err != nil {
		return err
	}
	if _, err := a.Write([]byte("x")); err == nil {
		return errors.New("a write succeeds")
	}
	return nil
}

func closeRead(a, b net.Conn) error {
	h, err := half(a)
	if err != nil {
		return err
	}
	return errors.Join(h.CloseRead(), wantEOF(a), exchange(a, b, "still"))
}
