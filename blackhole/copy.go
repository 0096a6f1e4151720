package blackhole

import (
	"io"
	"net"
	"os"
	"time"
)

const (
	firstCopyBuffer = 2 << 10
	lastCopyBuffer  = 64 << 10
	// kernelPortion is the most that goes through the kernel in one piece: the size of the pipe that splice uses.
	kernelPortion = 1 << 20
)

// ReadFrom writes all of r, through the faults. While no fault is active or has to see the bytes, the copy from a TCP
// connection, wrapped or not, stays in the kernel.
func (c *Conn) ReadFrom(r io.Reader) (int64, error) { return Copy(c, r) }

// WriteTo reads to the end, through the faults, and writes to w; see ReadFrom.
func (c *Conn) WriteTo(w io.Writer) (int64, error) { return Copy(w, c) }

// Copy is io.Copy that keeps to the kernel between TCP connections, also through the connections of this package,
// whenever their faults allow it. In user space it begins with a small buffer and lets it grow with the traffic, so
// that a connection that is silent costs little.
func Copy(dst io.Writer, src io.Reader) (int64, error) {
	var total int64
	buf := make([]byte, 0, firstCopyBuffer)
	kernel := newKernelCopy(dst, src)
	for {
		n, end, err := kernel.run()
		total += n
		if end || err != nil {
			return total, err
		}
		read, err := src.Read(buf[:cap(buf)])
		if read > 0 {
			written, werr := dst.Write(buf[:read])
			total += int64(written)
			if werr != nil {
				return total, werr
			}
			if written < read {
				return total, io.ErrShortWrite
			}
		}
		if err == io.EOF {
			return total, nil
		} else if err != nil {
			return total, err
		}
		if read == cap(buf) && read < lastCopyBuffer {
			buf = make([]byte, 0, 2*cap(buf))
		}
	}
}

// kernelCopy moves what has arrived at one TCP connection to another without taking it into user space. nil moves
// nothing.
type kernelCopy struct {
	src, dst *net.TCPConn
	file     *os.File // instead of src
	from, to *Conn    // the faults around src and dst, if any
}

func newKernelCopy(dst io.Writer, src io.Reader) *kernelCopy {
	k := &kernelCopy{}
	k.from, k.src = throughFaults(src)
	k.to, k.dst = throughFaults(dst)
	if f, ok := src.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			k.file = f
		}
	}
	if k.dst == nil || k.file == nil && (k.src == nil || !canPeek) {
		return nil
	}
	return k
}

// throughFaults finds the TCP connection below at most one layer of faults.
func throughFaults(x any) (*Conn, *net.TCPConn) {
	switch v := x.(type) {
	case *net.TCPConn:
		return nil, v
	case *TCPConn:
		if tcp, ok := v.Conn.inner.(*net.TCPConn); ok {
			return v.Conn, tcp
		}
	case *Conn:
		if tcp, ok := v.inner.(*net.TCPConn); ok {
			return v, tcp
		}
	}
	return nil, nil
}

// run goes on as long as the faults let bytes pass unseen. end reports the end of the source.
func (k *kernelCopy) run() (total int64, end bool, err error) {
	if k == nil {
		return 0, false, nil
	}
	for {
		n, end, more, err := k.portion()
		total += n
		if end || err != nil || !more {
			return total, end, err
		}
	}
}

// portion waits until something has arrived and moves it. It asks the faults after the wait: what arrives after a
// fault became active does not slip through. more is false if the bytes have to go through user space.
func (k *kernelCopy) portion() (n int64, end, more bool, err error) {
	if k.free() == 0 {
		return 0, false, false, nil
	}
	arrived := kernelPortion
	if k.file == nil {
		if arrived, err = peek(k.src); err != nil || arrived == 0 {
			return 0, false, false, nil // the ordinary Read finds the end or the error
		}
	}
	if k.from != nil {
		if k.from.enter(&k.from.r, "read") != nil {
			return 0, false, false, nil
		}
		defer k.from.r.leave()
		if len(k.from.r.pending) > 0 || k.from.r.end != nil || k.from.stopped(&k.from.r, "read") != nil {
			return 0, false, false, nil
		}
	}
	if k.to != nil {
		if k.to.enter(&k.to.w, "write") != nil {
			return 0, false, false, nil
		}
		defer k.to.w.leave()
		if k.to.stopped(&k.to.w, "write") != nil {
			return 0, false, false, nil
		}
		k.to.w.begin(true)
	}
	free := min(k.free(), int64(arrived))
	var src io.Reader = k.src
	if k.file != nil {
		src = k.file
	}
	woken := false
	if free > 0 {
		n, err = k.dst.ReadFrom(&io.LimitedReader{R: src, N: free})
		k.passed(n)
	}
	if k.to != nil {
		woken = k.to.w.finish()
	}
	switch {
	case woken:
		return n, false, false, nil // the fault that woke it decides about the rest
	case err != nil && k.to != nil:
		return n, false, false, k.to.innerError(&k.to.w, "write", err)
	case err != nil || free == 0:
		return n, false, false, err
	}
	return n, k.file != nil && n < free, true, nil
}

func (k *kernelCopy) free() int64 {
	n := int64(Unbounded)
	if k.from != nil {
		n = min(n, k.from.free(&k.from.r))
	}
	if k.to != nil {
		n = min(n, k.to.free(&k.to.w))
	}
	return n
}

func (k *kernelCopy) passed(n int64) {
	if k.from != nil {
		k.from.skip(&k.from.r, n)
		k.from.read.Add(n)
	}
	if k.to != nil {
		k.to.skip(&k.to.w, n)
		k.to.wrote.Add(n)
	}
}

func (c *Conn) free(h *half) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pipes.free(time.Now(), h.d)
}

func (c *Conn) skip(h *half, n int64) {
	c.mu.Lock()
	c.pipes.skip(h.d, n)
	c.mu.Unlock()
	c.perform()
}
