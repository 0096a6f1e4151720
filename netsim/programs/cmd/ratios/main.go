// Ratios reads the output of this module's benchmarks and prints what netsim
// costs beside what one would take instead:
//
//	go test -run '^$' -bench . . | go run ./cmd/ratios
//
// It fails when a bar is missed, or when a benchmark that a bar needs is absent.
package main

import (
	"bufio"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"text/tabwriter"
)

// A bar is a figure that netsim has to keep: a's unit, divided by b's where
// there is a b, at most or at least the limit.
type bar struct {
	what, a, b, unit string
	atLeast          bool
	limit            float64
}

var bars = []bar{
	{"stream round trip, time / simnet's datagrams", "RoundTrip/stream/ours", "RoundTrip/datagram/simnet", "ns/op", false, 1. / 3},
	{"datagram round trip, time / simnet's", "RoundTrip/datagram/ours", "RoundTrip/datagram/simnet", "ns/op", false, 1. / 3},
	{"stream round trip, allocations", "RoundTrip/stream/ours", "", "allocs/op", false, 4},
	{"32 KiB one way, throughput / net.Pipe's", "OneWay32KiB/ours", "OneWay32KiB/net.Pipe", "MB/s", true, 1},
	{"connect+accept+close, time / loopback's", "ConnectAcceptClose/ours", "ConnectAcceptClose/loopback", "ns/op", false, 1. / 5},
	{"100 000 idle connections, bytes each", "IdleConnections", "", "B/conn", false, 4096},
	{"100 000 idle connections, goroutines", "IdleConnections", "", "goroutines", false, 1},
	{"10 000 hosts, seconds", "TenThousandHosts", "", "s/op", false, 1},
	{"a million events, seconds", "MillionEvents", "", "s/op", false, 2},
}

var procs = regexp.MustCompile(`-\d+$`)

// parse takes the figures of one line of a benchmark's output.
func parse(line string, into map[string]float64) {
	f := strings.Fields(line)
	if len(f) < 4 || !strings.HasPrefix(f[0], "Benchmark") {
		return
	}
	name := procs.ReplaceAllString(strings.TrimPrefix(f[0], "Benchmark"), "")
	for i := 2; i+1 < len(f); i += 2 {
		v, err := strconv.ParseFloat(f[i], 64)
		if err != nil {
			return
		}
		into[name+" "+f[i+1]] = v
		if f[i+1] == "ns/op" {
			into[name+" s/op"] = v / 1e9
		}
	}
}

func main() {
	figures := map[string]float64{}
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		parse(in.Text(), figures)
	}
	if err := in.Err(); err != nil {
		fmt.Fprintln(os.Stderr, "ratios:", err)
		os.Exit(1)
	}
	out := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(out, "what\tmeasured\tbar\t")
	failed := false
	for _, b := range bars {
		v, ok := figures[b.a+" "+b.unit]
		if b.b != "" {
			peer, have := figures[b.b+" "+b.unit]
			ok = ok && have && peer > 0
			v /= peer
		}
		sign, kept := "≤", v <= b.limit
		if b.atLeast {
			sign, kept = "≥", v >= b.limit
		}
		verdict := "kept"
		switch {
		case !ok:
			verdict, failed = "not measured", true
		case !kept:
			verdict, failed = "MISSED", true
		}
		fmt.Fprintf(out, "%s\t%.3g\t%s %.3g\t%s\n", b.what, v, sign, b.limit, verdict)
	}
	out.Flush()
	if failed {
		os.Exit(1)
	}
}
