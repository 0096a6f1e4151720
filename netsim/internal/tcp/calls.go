package tcp

import (
	"io"
	"syscall"
	"time"
)

// The program's side: what read, write, shutdown and close do. Calls that
// change what there is to send are followed by [Endpoint.Output] when the owner
// sees fit.

// Buffered is how many bytes wait to be read.
func (e *Endpoint) Buffered() int { return e.recvq.n }

// Unacknowledged is how many bytes were written and not acknowledged.
func (e *Endpoint) Unacknowledged() int { return int(max(0, e.end-max(e.una, 1))) }

// Space is how many bytes a write would take now.
func (e *Endpoint) Space() int {
	return max(0, e.cfg.SendBuffer-int(e.end-max(e.una, 1)))
}

// SetBuffers changes the sizes of the buffers; 0 leaves one as it is. A window
// that was advertised is not taken back.
func (e *Endpoint) SetBuffers(send, recv int) {
	if send > 0 {
		e.cfg.SendBuffer = send
		e.events |= Writable
	}
	if recv > 0 {
		e.cfg.RecvBuffer = recv
		if e.state == Closed {
			e.advertised = int64(recv) + 1
		}
	}
}

// Buffers is the sizes of the buffers.
func (e *Endpoint) Buffers() (send, recv int) { return e.cfg.SendBuffer, e.cfg.RecvBuffer }

// pending takes the error that the program has not seen yet.
func (e *Endpoint) pending() syscall.Errno {
	err := e.err
	e.err = 0
	return err
}

// Read takes received bytes. done is false when there is nothing to say yet and
// the caller has to wait. As on Linux, bytes that arrived before an error are
// read first, and the error is given once: io.EOF follows it.
func (e *Endpoint) Read(b []byte) (n int, err error, done bool) {
	if e.recvq.n > 0 {
		if len(b) == 0 {
			return 0, nil, true
		}
		return e.recvq.read(e.pool, b), nil, true
	}
	if e.finReceived {
		return 0, io.EOF, true
	}
	if err := e.pending(); err != 0 {
		return 0, err, true
	}
	if e.shutRead || e.state == Closed {
		return 0, io.EOF, true
	}
	return 0, nil, len(b) == 0
}

// WantsWindowUpdate reports whether the program has read so much that the peer
// should be told, because it may be waiting for room.
func (e *Endpoint) WantsWindowUpdate() bool {
	if e.state != Established || e.finReceived {
		return false
	}
	grown := e.window() - e.advertised
	old := e.advertised - e.rcvNxt
	return grown > 0 && grown >= int64(e.cfg.RecvBuffer/windowFraction) && (old < int64(e.cfg.RecvBuffer/2))
}

// Write takes bytes to send. done is false when there is no room yet.
func (e *Endpoint) Write(b []byte) (n int, err error, done bool) {
	if err := e.pending(); err != 0 {
		return 0, err, true
	}
	if e.finQueued || e.state == Closed || e.state == TimeWaiting {
		return 0, syscall.EPIPE, true
	}
	n = min(len(b), e.Space())
	if n > 0 {
		e.sendq.write(e.pool, e.end, b[:n])
		e.end += int64(n)
	}
	return n, nil, n == len(b)
}

// CloseWrite sends a FIN after all that was written.
func (e *Endpoint) CloseWrite() syscall.Errno {
	if e.state != Established && e.state != SynReceived {
		return syscall.ENOTCONN
	}
	e.finQueued = true
	e.events |= Writable
	return 0
}

// CloseRead makes reads return what is there and then io.EOF. The peer is told
// nothing, as on Linux.
func (e *Endpoint) CloseRead() syscall.Errno {
	if e.state != Established {
		return syscall.ENOTCONN
	}
	e.shutRead = true
	e.events |= Readable
	return 0
}

// Close is the program's last word: a reset if abort is set or bytes are left
// unread, otherwise a FIN after all that was written.
func (e *Endpoint) Close(now time.Duration, abort bool) {
	e.detached = true
	unread := e.recvq.n > 0
	e.recvq.drop(e.pool)
	switch {
	case e.state == Closed || e.state == TimeWaiting:
	case e.state == SynSent:
		e.die()
	case abort || unread:
		e.Output(now) // what was written a moment ago is on its way: a write sends at once
		e.Abort(now)
	default:
		e.finQueued = true
		if e.finAcked() && !e.finReceived {
			e.closeAt = now + FinTimeout
		}
	}
}

// Abort resets the connection: the peer gets a RST, the program at this end no
// error.
func (e *Endpoint) Abort(now time.Duration) {
	if e.state == SynReceived || e.state == Established {
		e.reset(now)
	}
	e.die()
}

// reset tells the peer that the connection is over.
func (e *Endpoint) reset(now time.Duration) {
	s := e.pool.NewSegment()
	s.Flags = RST | ACK
	s.Seq, s.Ack = e.nxt, e.rcvNxt
	e.emit(now, s)
}

// Fail ends the connection with an error for the program and tells the peer
// nothing, as when its address is gone.
func (e *Endpoint) Fail(err syscall.Errno) {
	if e.state != Closed {
		e.fail(err)
	}
}

// Flushed reports whether everything that was written, and the FIN if there is
// one, has been acknowledged, or never will be.
func (e *Endpoint) Flushed() bool {
	return e.state == Closed || e.state == TimeWaiting || e.una >= e.sendable()
}

// Err is the error that the program has not been given yet.
func (e *Endpoint) Err() syscall.Errno { return e.err }

// Reset is what a RST from the peer does.
func (e *Endpoint) Reset() {
	if e.state != Closed {
		e.inputReset(&Segment{Flags: RST, Seq: e.rcvNxt})
	}
}
