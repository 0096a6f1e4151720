package race_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/seed-5a7f77c4/deadair/selection/race"
	"github.com/seed-5a7f77c4/deadair/selection/rank"
	"github.com/seed-5a7f77c4/deadair/selection/route"
)

// A machine is known by its address on the LAN and by the one in its tailnet. What answers on the LAN today is a captive
// portal: it takes connections and knows nothing of the hello.
func Example() {
	machine, portal := serve("welcome"), serve("HTTP/1.1 302 Found")
	defer machine.Close()
	defer portal.Close()
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		// In place of the two networks, two listeners on loopback. A program passes the DialContext of its net.Dialer.
		to := map[string]net.Listener{"192.168.1.10:9000": portal, "100.64.0.7:9000": machine}[address]
		return (&net.Dialer{}).DialContext(ctx, network, to.Addr().String())
	}
	hello := func(ctx context.Context, c net.Conn) (net.Conn, error) {
		fmt.Fprintln(c, "hello")
		answer, err := bufio.NewReader(c).ReadString('\n')
		if err == nil && strings.TrimSpace(answer) != "welcome" {
			err = fmt.Errorf("this is not our machine: %q", strings.TrimSpace(answer))
		}
		return c, err
	}
	racer := race.New(race.OpenThenHello(dial, hello), race.DefaultPolicy())
	defer racer.Close()

	plan := race.Build(race.Input{Candidates: []route.Candidate{
		{Address: "100.64.0.7", Port: 9000},
		{Address: "192.168.1.10", Port: 9000},
		{Address: "machine.example", Port: 9000},
	}}, race.DefaultPolicy())
	fmt.Print(plan)

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	won, err := racer.Race(ctx, plan)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer won.Conn.Close()
	fmt.Println("connected by", won.Slot.Candidate)
	for i, lane := range won.Lanes {
		fmt.Println(plan.Slots[i].Address, lane.State, lane.Err)
	}
	fmt.Println("to blame:", won.Failed)
	// Output:
	//  0  +0s     lan 192.168.1.10:9000  (rank 1)
	//  1  +250ms  tailnet 100.64.0.7:9000  (best of another class)
	//  –  refused lan machine.example:9000  (route.Vet "machine.example": the secret would travel in plain text)
	// connected by tailnet 100.64.0.7:9000
	// 192.168.1.10 failed this is not our machine: "HTTP/1.1 302 Found"
	// 100.64.0.7 won <nil>
	// to blame: [192.168.1.10]
}

// serve answers the first line of every connection.
func serve(answer string) net.Listener {
	l, err := net.Listen("tcp", "127.0.0.1:0")
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
				defer c.Close()
				bufio.NewReader(c).ReadString('\n')
				fmt.Fprintln(c, answer)
			}()
		}
	}()
	return l
}

// A plan explains itself before anybody is dialled.
func ExampleBuild() {
	fmt.Print(race.Build(race.Input{
		Candidates: []route.Candidate{
			{Address: "192.168.1.10", Port: 9000},
			{Address: "wss://relay.example/tunnel/m1", Owner: "ann"},
		},
		Account: "ann",
		Facts:   rank.Facts{Path: &route.Path{Satisfied: true, Cellular: true}},
	}, race.DefaultPolicy()))
	// Output:
	//  0  +0s     relay wss://relay.example/tunnel/m1  (rank 1)
	//  1  +250ms  lan 192.168.1.10:9000  (best of another class; no local link)
}

// A program whose hello is encrypted, and proves who answers, may let public addresses in.
func ExampleBuild_vet() {
	fmt.Print(race.Build(race.Input{
		Candidates: []route.Candidate{
			{Address: "mirror-a.example", Port: 443},
			{Address: "mirror-b.example", Port: 443},
			{Address: "http://old.example"},
		},
		Vet: func(c route.Candidate) error {
			if strings.Contains(c.Address, "/") {
				return fmt.Errorf("%q is no host", c.Address)
			}
			return nil
		},
		Facts: rank.Facts{LastGood: "mirror-b.example"},
	}, race.DefaultPolicy()))
	// Output:
	//  0  +0s     lan mirror-b.example:443  (rank 1; remembered)
	//  1  +250ms  lan mirror-a.example:443  (by rank)
	//  –  refused lan [http://old.example]:8787  ("http://old.example" is no host)
}
