package conditions

import (
	"fmt"
	"io"
	"net"
	"time"

	"golang.org/x/net/http2"

	"github.com/seed-5a7f77c4/deadair/blackhole"
	"github.com/seed-5a7f77c4/deadair/netsim"
)

// StopsReading makes a server read no more than k bytes from each connection of
// a listener. The connection stays open; once the buffers of both ends are full
// the client's writes block, and with them whatever waits for the writer. It
// panics if k < 1. Report: golang/go#33425 (a POST of 200 KiB against 64 KiB of
// buffer; HTTP/2 holds a sync.Mutex while it writes).
func StopsReading(l net.Listener, k int64) net.Listener {
	mustBePositive("StopsReading", "k", int(k))
	l, err := blackhole.Listener(l, &blackhole.Fault{When: blackhole.AfterBytes(k), Do: blackhole.Stall(), On: blackhole.Up})
	if err != nil {
		panic(fmt.Errorf("conditions: StopsReading: %w", err))
	}
	return l
}

// RefuseUpload is a server that reads k bytes from c, answers, and closes with
// the rest unread. Linger is how long it keeps its reading half: with 0 the RST
// comes right behind the answer, and a client that writes gets ECONNRESET; with
// more the FIN comes first and the RST later, and that client gets EPIPE. What
// came before the RST stays readable. Report: golang/go#51109 (4 KiB of 8 MiB,
// 413).
func RefuseUpload(c net.Conn, k int64, answer string, linger time.Duration) error {
	defer c.Close()
	if _, err := io.CopyN(io.Discard, c, k); err != nil {
		return err
	}
	if _, err := io.WriteString(c, answer); err != nil {
		return err
	}
	if linger <= 0 {
		return nil
	}
	half, ok := c.(interface{ CloseWrite() error })
	if !ok {
		return fmt.Errorf("conditions: RefuseUpload: linger is %v and a %T has no CloseWrite", linger, c)
	}
	if err := half.CloseWrite(); err != nil {
		return err
	}
	time.Sleep(linger)
	return nil
}

// AnswerLost makes the bytes that a server sends from a port vanish, while its
// RST arrives: the client sees ECONNRESET and never learns why. Report:
// golang/go#51109 (the third way to see a refused upload).
func AnswerLost(n *netsim.Network, server *netsim.Host, port uint16) *netsim.Fault {
	return n.Apply(netsim.Rule{Name: "answer lost", From: server, SrcPort: port, Kind: netsim.Data, Verdict: drop})
}

// GoAway drains an HTTP/2 connection as a server or a balancer does: it sends a
// GOAWAY for each of the last stream numbers given, gap apart, and closes the
// connection gap after the latest. [AllStreams] alone is a drain in one step: a
// request that is on the wire then is lost, for the client cannot know that
// nobody saw it. AllStreams and then the number of the last request that was
// served is one in two steps: the client sends it again. Report:
// golang/go#78968 (50 ms apart).
func GoAway(c net.Conn, gap time.Duration, last ...uint32) error {
	framer := http2.NewFramer(c, nil)
	for _, id := range last {
		if err := framer.WriteGoAway(id, http2.ErrCodeNo, nil); err != nil {
			c.Close()
			return err
		}
		time.Sleep(gap)
	}
	return c.Close()
}

// AllStreams is the last stream number of a GOAWAY that rules no request out.
const AllStreams = 1<<31 - 1
