package socksrelay_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/net/proxy"

	"github.com/seed-5a7f77c4/deadair/blackhole"
	"github.com/seed-5a7f77c4/deadair/socksrelay"
)

// A relay whose connections go silent after one exchange, between a real client and a real server.
func Example() {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	go func() {
		if c, err := server.Accept(); err == nil {
			io.Copy(c, c)
			c.Close()
		}
	}()
	relay, err := socksrelay.New(socksrelay.Config{
		Dial:   new(net.Dialer).DialContext,
		Faults: []*socksrelay.Fault{socksrelay.BlackHole(blackhole.AfterExchanges(1))},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer relay.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	go relay.Serve(listener)

	dialer, _ := proxy.SOCKS5("tcp", listener.Addr().String(), nil, proxy.Direct)
	c, err := dialer.Dial("tcp", server.Addr().String())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	buf := make([]byte, 4)
	c.Write([]byte("ping"))
	io.ReadFull(c, buf)
	fmt.Printf("%s\n", buf)
	_, err = c.Write([]byte("ping"))
	fmt.Println("write:", err)
	c.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
	_, err = c.Read(buf)
	fmt.Println("timed out:", errors.Is(err, os.ErrDeadlineExceeded))
	// Output:
	// ping
	// write: <nil>
	// timed out: true
}

// A relay that answers every request for one host with "connection refused".
func ExampleRefuse() {
	refuse := socksrelay.Refuse(5)
	refuse.Select = socksrelay.Selector{Destination: "api.example"}
	relay, err := socksrelay.New(socksrelay.Config{Dial: new(net.Dialer).DialContext, Faults: []*socksrelay.Fault{refuse}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer relay.Close()
	client, server := net.Pipe()
	defer client.Close()
	go relay.ServeConn(server)
	dialer, _ := proxy.SOCKS5("tcp", "", nil, given{client})
	_, err = dialer.Dial("tcp", "api.example:443")
	fmt.Println(err)
	// Output: socks connect tcp: unknown error connection refused
}
