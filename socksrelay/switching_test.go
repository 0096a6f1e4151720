package socksrelay_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/proxy"

	"github.com/seed-5a7f77c4/deadair/blackhole"
	"github.com/seed-5a7f77c4/deadair/socksrelay"
)

// TestFaultsAreSwitchedFromManySidesWhileBytesFlow lets real connections echo while others switch a stall, add and
// remove faults and look: every byte comes back, in order, because a stall loses none.
func TestFaultsAreSwitchedFromManySidesWhileBytesFlow(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := server.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { io.Copy(c, c); c.Close() })
		}
	})
	var sw blackhole.Switch
	stall := &socksrelay.Fault{Name: "stall", Phase: socksrelay.Data, Do: blackhole.Stall(), Switch: &sw}
	relay, err := socksrelay.New(socksrelay.Config{Dial: new(net.Dialer).DialContext, Faults: []*socksrelay.Fault{stall}})
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	relaying := make(chan error, 1)
	go func() { relaying <- relay.Serve(l) }()

	over := make(chan struct{})
	var switching sync.WaitGroup
	for i := range 3 {
		switching.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-over:
					return
				default:
				}
				sw.Set(n%2 == i%2)
				name := fmt.Sprint("later ", i)
				assert.NoError(t, relay.Add(&socksrelay.Fault{Name: name, Phase: socksrelay.Data, Do: blackhole.Delay(time.Microsecond)}))
				relay.Connections()
				assert.True(t, relay.Remove(name))
				sw.Off()
			}
		})
	}
	var clients sync.WaitGroup
	for i := range 4 {
		clients.Go(func() {
			d, err := proxy.SOCKS5("tcp", l.Addr().String(), nil, proxy.Direct)
			if !assert.NoError(t, err) {
				return
			}
			for range 2 {
				c, err := d.Dial("tcp", server.Addr().String())
				if !assert.NoError(t, err) {
					return
				}
				sent := make([]byte, 100_000)
				random := rand.New(rand.NewPCG(1, uint64(i)))
				for j := range sent {
					sent[j] = byte(random.Uint32())
				}
				clients.Go(func() { c.Write(sent); c.(interface{ CloseWrite() error }).CloseWrite() })
				got, err := io.ReadAll(c)
				assert.NoError(t, err)
				assert.True(t, bytes.Equal(sent, got), "%d bytes of %d came back", len(got), len(sent))
				c.Close()
			}
		})
	}
	clients.Wait()
	close(over)
	switching.Wait()
	require.NoError(t, relay.Close())
	require.ErrorIs(t, <-relaying, net.ErrClosed)
	server.Close()
	serving.Wait()
}

// TestStrangeNamesArePassedOnAsTheyAre holds that the relay neither cuts nor cleans what a client asks for.
func TestStrangeNamesArePassedOnAsTheyAre(t *testing.T) {
	for what, name := range map[string]string{
		"255 bytes":      strings.Repeat("n", 255),
		"a NUL":          "127.0.0.1\x00.example",
		"a line break":   "a\nb",
		"not UTF-8":      "\xff\xfe",
		"a colon":        "localhost:1",
		"a bracket":      "[x:y",
		"an IPv6 number": "2001:db8::1",
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var asked string
				named := &socksrelay.Fault{Phase: socksrelay.Data, Do: blackhole.Stall(), Select: socksrelay.Selector{Destination: name}}
				l := serve(t, socksrelay.Config{Faults: []*socksrelay.Fault{named}, Dial: func(ctx context.Context, n, a string) (net.Conn, error) {
					asked = a
					return echo(ctx, n, a)
				}})
				request := "\x05\x01\x00\x05\x01\x00\x03" + string([]byte{byte(len(name))}) + name + "\x01\xbb"
				got := converse(t, l, []byte(request))
				assert.Equal(t, "\x05\x00\x05\x00\x00", got[:5], "success")
				assert.Equal(t, net.JoinHostPort(name, "443"), asked)
				assert.Positive(t, named.Hits(), "a fault is selected by it")
			})
		})
	}
}

// TestNamesThatTheResolverRefusesAreUnreachable uses the real dialer, which answers these without asking the network.
func TestNamesThatTheResolverRefusesAreUnreachable(t *testing.T) {
	for _, name := range []string{strings.Repeat("n", 255), "127.0.0.1\x00.example", "a\nb"} {
		relay, err := socksrelay.New(socksrelay.Config{Dial: new(net.Dialer).DialContext})
		require.NoError(t, err)
		client, server := net.Pipe()
		served := make(chan struct{})
		go func() { defer close(served); relay.ServeConn(server) }()
		d, err := proxy.SOCKS5("tcp", "", nil, given{client})
		require.NoError(t, err)
		_, err = d.Dial("tcp", net.JoinHostPort(name, "443"))
		require.ErrorContains(t, err, "host unreachable", "%q", name)
		client.Close()
		<-served
		require.NoError(t, relay.Close())
	}
}
