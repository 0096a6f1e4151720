package netsim_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/seed-5a7f77c4/deadair/netsim"
)

// network is a network with two hosts whose listener answers with what it gets.
func network(opts ...netsim.Option) (n *netsim.Network, app, relay *netsim.Host) {
	n = netsim.New(opts...)
	app, relay = n.Host("app"), n.Host("relay")
	l, err := relay.Listen("tcp", ":7")
	if err != nil {
		panic(err)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				io.Copy(c, c)
				c.Close()
			}()
		}
	}()
	return n, app, relay
}

func Example() {
	n, app, _ := network(netsim.Defaults(netsim.Conditions{Latency: time.Millisecond}))
	defer n.Close()
	c, err := app.Dial("tcp", "relay:7")
	if err != nil {
		panic(err)
	}
	fmt.Fprint(c, "hello")
	answer := make([]byte, 5)
	io.ReadFull(c, answer)
	fmt.Println(string(answer))
	// Output: hello
}

func ExampleLink_Cut() {
	n, app, relay := network()
	defer n.Close()
	cut := n.Link(app, relay).Cut()
	_, err := (&netsim.Dialer{Host: app, Timeout: 10 * time.Millisecond}).Dial("tcp", "relay:7")
	fmt.Println(err.(interface{ Timeout() bool }).Timeout(), cut.Hits())
	// Output: true 1
}

func ExampleLink_Refuse() {
	n, app, relay := network()
	defer n.Close()
	n.Link(app, relay).Refuse()
	_, err := app.Dial("tcp", "relay:7")
	fmt.Println(errors.Is(err, syscall.ECONNREFUSED))
	// Output: true
}

func ExampleNetwork_Apply() {
	n, app, relay := network()
	defer n.Close()
	// The answers of the second connection vanish; the first and the third are well.
	n.Apply(netsim.Rule{From: relay, Conn: 2, Kind: netsim.Data, Verdict: netsim.Verdict{Action: netsim.Drop}})
	for range 3 {
		c, err := app.Dial("tcp", "relay:7")
		if err != nil {
			panic(err)
		}
		fmt.Fprint(c, "x")
		c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		_, err = c.Read(make([]byte, 1))
		fmt.Println(err == nil)
	}
	// Output:
	// true
	// false
	// true
}

func ExampleNetwork_Partition() {
	n := netsim.New()
	defer n.Close()
	for _, name := range []string{"a", "b", "c"} {
		n.Host(name)
	}
	f := n.Partition(map[string][]string{"a": {"b", "c"}}).MayMiss() // a hears nobody, all hear a
	fmt.Println(f.Name())
	// Output: partition map[a:[b c]]
}

func ExampleSplit() {
	fmt.Println(netsim.Split([]string{"a", "b"}, []string{"c"}))
	// Output: map[a:[c] b:[c] c:[a b]]
}

func ExampleNetwork_Sockets() {
	n := netsim.New(netsim.Seed(1))
	defer n.Close()
	h := n.Host("relay", netsim.Addr("192.0.2.1"))
	h.Listen("tcp", ":443")
	h.ListenPacket("udp", "192.0.2.1:53")
	for _, s := range n.Sockets() {
		fmt.Println(s)
	}
	// Output:
	// relay udp UNCONN 0 0 192.0.2.1:53 *
	// relay tcp LISTEN 0 4096 [::]:443 *
}

// A phone leaves the house: its tunnel dies with the Wi-Fi, and the next dial
// leaves by the cellular interface.
func ExampleHost_Interface() {
	n, _, relay := network()
	defer n.Close()
	phone := n.Host("phone")
	wifi := phone.Interface("wifi", netsim.Wireless, netsim.Zone("home"), netsim.Addresses("192.168.1.23"), netsim.WhenGone(netsim.Abort))
	phone.Interface("cell", netsim.Cellular, netsim.Addresses("192.0.2.23"))
	for range 2 {
		c, err := phone.Dial("tcp", relay.Name()+":7")
		if err != nil {
			panic(err)
		}
		fmt.Println(c.LocalAddr().(*net.TCPAddr).IP)
		wifi.Down()
		_, err = c.Write([]byte("x"))
		fmt.Println(errors.Is(err, syscall.ECONNABORTED))
	}
	// Output:
	// 192.168.1.23
	// true
	// 192.0.2.23
	// false
}

func ExampleNetwork_ResetFlow() {
	n, app, _ := network()
	defer n.Close()
	c, err := app.Dial("tcp", "relay:7")
	if err != nil {
		panic(err)
	}
	n.ResetFlow(c.(*netsim.Conn).Flow())
	_, err = c.Read(make([]byte, 1))
	fmt.Println(errors.Is(err, syscall.ECONNRESET))
	// Output: true
}
