package handshake_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strings"

	"github.com/seed-5a7f77c4/deadair/selection/handshake"
)

// line is a socket that speaks in lines.
type line struct {
	net.Conn
	in *bufio.Reader
}

func (l *line) read() (string, error) {
	text, err := l.in.ReadString('\n')
	return strings.TrimSpace(text), err
}

// A relay accepts the tunnel, wakes the machine up, says ready, and passes the hello on.
func Example() {
	var registry handshake.Registry
	dialer := handshake.Dialer[*line]{
		Open: func(_ context.Context, url string, v2 bool) (*line, error) {
			fmt.Println("open", url, v2)
			near, far := net.Pipe() // a program dials its WebSocket here
			go func() {
				defer far.Close()
				fmt.Fprintf(far, "accepted\nready\n")
				hello, _ := bufio.NewReader(far).ReadString('\n')
				fmt.Fprint(far, "welcome, ", hello)
			}()
			return &line{near, bufio.NewReader(near)}, nil
		},
		Token: func(context.Context) (string, error) { return "ann's token", nil },
		Signal: func(_ context.Context, l *line) (handshake.Signal, error) {
			text, err := l.read()
			return map[string]handshake.Signal{"accepted": handshake.Accepted, "ready": handshake.Ready}[text], err
		},
		Hello: func(_ context.Context, l *line, token string) error {
			fmt.Fprintln(l, token)
			answer, err := l.read()
			fmt.Println(answer)
			return err
		},
		Registry: &registry,
		Policy:   handshake.DefaultPolicy(),
	}
	conn, v2, err := dialer.Dial(context.Background(), "wss://relay.example/tunnel/m1", false, func() {})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	fmt.Println("connected, ready=2:", v2)
	// Output:
	// open wss://relay.example/tunnel/m1 true
	// welcome, ann's token
	// connected, ready=2: true
}
