package blackhole_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/seed-5a7f77c4/deadair/blackhole"
)

func ExampleClient() {
	a, b := net.Pipe()
	c, err := blackhole.Client(a, &blackhole.Fault{
		When: blackhole.AfterBytes(5),
		Do:   blackhole.Swallow(),
		On:   blackhole.Up,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	go func() {
		c.Write([]byte("hello world")) // succeeds
		c.Close()
	}()
	got, _ := io.ReadAll(b)
	fmt.Printf("%s\n", got)
	// Output: hello
}

func ExampleSwitch() {
	var sw blackhole.Switch
	a, b := net.Pipe()
	defer b.Close()
	hole := &blackhole.Fault{When: sw.Thrown(), Do: blackhole.Swallow(), On: blackhole.Both}
	c, err := blackhole.Client(a, hole)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	sw.On()
	n, err := c.Write([]byte("gone"))
	fmt.Println(n, err)
	c.SetReadDeadline(time.Now().Add(time.Millisecond))
	_, err = c.Read(make([]byte, 1))
	fmt.Println(errors.Is(err, os.ErrDeadlineExceeded), hole.Bytes(), "bytes swallowed")
	// Output:
	// 4 <nil>
	// true 4 bytes swallowed
}
