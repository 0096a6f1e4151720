package netsim_test

import (
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/clock"
	"github.com/seed-5a7f77c4/deadair/netsim"
)

// panicText is what f panics with.
func panicText(t *testing.T, f func()) (text string) {
	t.Helper()
	defer func() {
		r := recover()
		require.NotNil(t, r, "no panic")
		text = fmt.Sprint(r)
	}()
	f()
	return
}

// TestBadUse: a panic that names the call and the value.
func TestBadUse(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a, b := n.Host("a", netsim.Addr("192.0.2.1")), n.Host("b")
		other := netsim.New()
		defer other.Close()
		stranger := other.Host("stranger")
		l := listen(t, b, ":7")
		apply := func(r netsim.Rule) func() {
			if (r.Verdict == netsim.Verdict{}) {
				r.Verdict = drop
			}
			return func() { n.Apply(r) }
		}
		for name, c := range map[string]struct {
			f    func()
			want []string
		}{
			"duplicate host":      {func() { n.Host("a") }, []string{`Network.Host("a")`, "there is a host of that name"}},
			"no name":             {func() { n.Host("") }, []string{`Network.Host("")`}},
			"odd name":            {func() { n.Host("a b") }, []string{`Network.Host("a b")`}},
			"option of nothing":   {func() { n.Host("c", nil) }, []string{`Network.Host("c")`, "an option is nil"}},
			"no interface name":   {func() { a.Interface("", netsim.Wireless) }, []string{`Host.Interface("") of a`}},
			"odd interface name":  {func() { a.Interface("a b>c", netsim.Wireless) }, []string{`Host.Interface("a b>c") of a`}},
			"no medium":           {func() { a.Interface("x", 0) }, []string{`Host.Interface("x") of a`, "medium 0"}},
			"unknown medium":      {func() { a.Interface("x", 99) }, []string{"medium 99"}},
			"interface option":    {func() { a.Interface("x", netsim.Wireless, nil) }, []string{"an option is nil"}},
			"gone how":            {func() { netsim.WhenGone(99) }, []string{"WhenGone(99)"}},
			"taken alias":         {func() { n.Alias("a", b) }, []string{`Network.Alias("a"`}},
			"alias of nobody":     {func() { n.Alias("c") }, []string{`Network.Alias("c"`}},
			"taken address":       {func() { n.Host("c", netsim.Addr("192.0.2.1")) }, []string{"192.0.2.1", "taken by a"}},
			"not an address":      {func() { n.Host("c", netsim.Addr("wifi")) }, []string{`Addr("wifi")`}},
			"multicast":           {func() { n.Host("c", netsim.Addr("224.0.0.1")) }, []string{`Addr("224.0.0.1")`}},
			"backlog":             {func() { n.Host("c", netsim.HostBacklog(-1)) }, []string{"HostBacklog(-1)"}},
			"dark":                {func() { n.Dark("night") }, []string{`Network.Dark("night")`}},
			"negative delay":      {func() { n.Link(a, b).SetConditions(netsim.Conditions{Latency: -1}) }, []string{"SetConditions of a-b", "Latency is -1ns"}},
			"probability":         {func() { n.Path(a, b).SetConditions(netsim.Conditions{Loss: 1.5}) }, []string{"SetConditions of a>b", "Loss is 1.5"}},
			"not a number":        {func() { netsim.Defaults(netsim.Conditions{Loss: math.NaN()}) }, []string{"Defaults(", "Loss is NaN"}},
			"stranger":            {func() { n.Link(a, stranger) }, []string{"Link", `"stranger" belongs to another network`}},
			"no host":             {func() { n.Path(a, nil) }, []string{"Path", "a host is nil"}},
			"negative time":       {func() { n.After(-time.Second, "x", func() {}) }, []string{`Network.After(-1s, "x")`}},
			"forget at once":      {func() { n.Link(a, b).ForgetIdle(0, netsim.Silently) }, []string{"ForgetIdle(0s", "a-b"}},
			"forget how":          {func() { n.Link(a, b).ForgetIdle(1, 9) }, []string{"ForgetIdle(1ns, 9)", "no such"}},
			"watch":               {func() { a.WatchConnectivity(-1, nil) }, []string{"WatchConnectivity(-1ns)"}},
			"accept errors":       {func() { l.FailAccept() }, []string{"Listener.FailAccept([])"}},
			"listener's backlog":  {func() { l.SetBacklog(-1) }, []string{"Listener.SetBacklog(-1)"}},
			"buffers":             {func() { netsim.Buffers(0, 1) }, []string{"Buffers(0, 1)"}},
			"SYN retries":         {func() { netsim.SYNRetries(-1) }, []string{"SYNRetries(-1)"}},
			"retries":             {func() { netsim.Retries(0) }, []string{"Retries(0)"}},
			"network's backlog":   {func() { netsim.Backlog(-1) }, []string{"Backlog(-1)"}},
			"ports":               {func() { netsim.EphemeralPorts(2, 1) }, []string{"EphemeralPorts(2, 1)"}},
			"datagram buffer":     {func() { netsim.DatagramBuffer(0) }, []string{"DatagramBuffer(0)"}},
			"payloads":            {func() { netsim.Payloads(-1) }, []string{"Payloads(-1)"}},
			"trace limit":         {func() { netsim.TraceLimit(-1) }, []string{"TraceLimit(-1)"}},
			"used host's wifi":    {func() { b.Interface("wlan0", netsim.Wireless) }, []string{`Host.Interface("wlan0") of b`, "in use"}},
			"nothing to watch":    {func() { a.WatchConnectivity(1, nil) }, []string{"WatchConnectivity(1ns, nil)"}},
			"somebody's darkness": {func() { n.Dark("192.0.2.1") }, []string{`Network.Dark("192.0.2.1")`, "address of a"}},
			"verdict":             {func() { n.Apply(netsim.Rule{Name: "r"}) }, []string{`Network.Apply("r")`, "the verdict does nothing"}},
			"verdict's number":    {apply(netsim.Rule{Verdict: netsim.Verdict{Delay: -1}}), []string{"Delay -1ns"}},
			"verdict's action":    {apply(netsim.Rule{Verdict: netsim.Verdict{Action: 99}}), []string{"no action 99"}},
			"verdict's sense":     {apply(netsim.Rule{Verdict: netsim.Verdict{Action: netsim.Drop, Delay: 1}}), []string{"does not pass"}},
			"rule's host":         {apply(netsim.Rule{From: stranger}), []string{`"stranger" belongs to another network`}},
			"rule's link":         {apply(netsim.Rule{Between: n.Link(a, b), From: a}), []string{"Between excludes From"}},
			"new and established": {apply(netsim.Rule{New: true, Established: true}), []string{"both New and Established"}},
			"established SYN":     {apply(netsim.Rule{Established: true, Kind: netsim.SYN}), []string{"an established connection sends no SYN"}},
			"range":               {apply(netsim.Rule{First: 3, Last: 2}), []string{"packets 3 to 2"}},
			"every in range":      {apply(netsim.Rule{First: 1, Last: 2, Every: 3}), []string{"packets 1 to 2", "3-th"}},
			"negative every":      {apply(netsim.Rule{Every: -1}), []string{"Every -1"}},
			"sizes":               {apply(netsim.Rule{MinSize: 100, MaxSize: 99}), []string{"sizes 100 to 99"}},
			"small size":          {apply(netsim.Rule{MaxSize: 10}), []string{"10 bytes"}},
			"ports that exclude":  {apply(netsim.Rule{Port: 1, SrcPort: 2, DstPort: 3}), []string{"port 2 to port 3"}},
			"tcp's datagrams":     {apply(netsim.Rule{Proto: netsim.TCP, Kind: netsim.Datagram}), []string{"tcp has no DGRAM"}},
			"udp's SYN":           {apply(netsim.Rule{Proto: netsim.UDP, Kind: netsim.SYN | netsim.FIN}), []string{"udp has no SYN+FIN"}},
			"established UDP":     {apply(netsim.Rule{Established: true, Proto: netsim.UDP}), []string{"an established connection sends no DGRAM"}},
			"reset UDP":           {apply(netsim.Rule{Proto: netsim.UDP, Verdict: netsim.Verdict{Action: netsim.Reset}}), []string{"udp has no connection"}},
			"reset datagrams":     {apply(netsim.Rule{Kind: netsim.Datagram, Verdict: netsim.Verdict{Action: netsim.Reset}}), []string{"tcp has no DGRAM"}},
			"large size":          {apply(netsim.Rule{MinSize: 70000}), []string{"as large as 70000 bytes"}},
			"negative after":      {apply(netsim.Rule{After: -1}), []string{"After -1ns"}},
			"taken, folded":       {func() { n.Host("A.") }, []string{`Network.Host("A.")`, "there is a host of that name"}},
			"an address's name":   {func() { n.Host("10.0.0.1") }, []string{`Network.Host("10.0.0.1")`, "for an address"}},
			"everybody's name":    {func() { n.Host("LocalHost.") }, []string{`Network.Host("LocalHost.")`, "for itself"}},
			"nothing but a dot":   {func() { n.Host(".") }, []string{`Network.Host(".")`}},
			"name of two lines":   {func() { n.Host("a\nb") }, []string{`Network.Host("a\nb")`}},
			"odd alias":           {func() { n.Alias("a b", b) }, []string{`Network.Alias("a b"`}},
			"nothing to start":    {func() { n.Go("x", nil) }, []string{`Network.Go("x", nil)`}},
			"nothing later":       {func() { n.After(1, "x", nil) }, []string{`Network.After(1ns, "x", nil)`}},
			"never":               {func() { n.After(math.MaxInt64, "x", func() {}) }, []string{"Network.After(2562047h", "more than 87600h"}},
			"told never":          {func() { a.WatchConnectivity(math.MaxInt64, func(netsim.Connectivity) {}) }, []string{"WatchConnectivity(2562047h", "more than 87600h"}},
			"endless delay":       {func() { n.Link(a, b).SetConditions(netsim.Conditions{Latency: math.MaxInt64}) }, []string{"Latency is 2562047h", "0 to 87600h"}},
			"endless jitter":      {func() { n.Link(a, b).SetConditions(netsim.Conditions{Jitter: math.MaxInt64}) }, []string{"Jitter is 2562047h"}},
			"endless slots":       {func() { n.Link(a, b).SetConditions(netsim.Conditions{Slots: &netsim.Slots{MinDelay: math.MaxInt64}}) }, []string{"Slots.MinDelay", "2562047h"}},
			"endless phases": {func() {
				n.Link(a, b).SetConditions(netsim.Cycle(netsim.Phase{For: 1}, netsim.Phase{For: math.MaxInt64}))
			}, []string{"Phases[1].For is 2562047h"}},
			"verdict's delay":  {apply(netsim.Rule{Verdict: netsim.Verdict{Delay: math.MaxInt64}}), []string{"delay of 2562047h"}},
			"verdict's copies": {apply(netsim.Rule{Verdict: netsim.Verdict{Duplicate: math.MaxInt}}), []string{"9223372036854775807 copies"}},
			"stranger's link":  {apply(netsim.Rule{Between: other.Link(stranger, other.Host("x"))}), []string{"Between belongs to another network"}},
			"no link":          {apply(netsim.Rule{Between: &netsim.Link{}}), []string{"Between belongs to another network"}},
			"transport":        {apply(netsim.Rule{Proto: 17}), []string{"no transport 17"}},
		} {
			text := panicText(t, c.f)
			for _, want := range c.want {
				require.Contains(t, text, want, name)
			}
			require.True(t, strings.HasPrefix(text, "netsim: "), "%s: %s", name, text)
		}
	})
}

func TestUseAfterClose(t *testing.T) {
	netsim.Run(t, func(t *testing.T, _ *netsim.Network) {
		n := netsim.New()
		a, b := n.Host("a"), n.Host("b")
		link := n.Link(a, b)
		wifi := n.Host("phone").Interface("wifi", netsim.Wireless)
		l := listen(t, b, ":7")
		client, server := pair(t, a, b)
		udp := packetConn(t, a, ":9")
		blocked := make(chan error, 4)
		go func() { _, err := client.Read(make([]byte, 1)); blocked <- err }()
		go func() { _, err := l.Accept(); blocked <- err }()
		go func() { _, _, err := udp.ReadFrom(nil); blocked <- err }()
		link.Cut().MayMiss()
		go func() { _, err := a.Dial("tcp", "b:7"); blocked <- err }()
		time.Sleep(time.Second)
		require.NoError(t, n.Close())
		require.NoError(t, n.Close())
		for range 4 {
			require.ErrorIs(t, <-blocked, net.ErrClosed)
		}
		for name, call := range map[string]func() error{
			"Read":         func() error { _, err := server.Read(make([]byte, 1)); return err },
			"Write":        func() error { _, err := server.Write([]byte("x")); return err },
			"Close":        func() error { return server.Close() },
			"Dial":         func() error { _, err := a.Dial("tcp", "b:7"); return err },
			"Dial UDP":     func() error { _, err := a.Dial("udp", "b:7"); return err },
			"Listen":       func() error { _, err := a.Listen("tcp", ":0"); return err },
			"ListenPacket": func() error { _, err := a.ListenPacket("udp", ":0"); return err },
			"Accept":       func() error { _, err := l.Accept(); return err },
			"buffer":       func() error { return udp.SetReadBuffer(1) },
			"WriteTo":      func() error { _, err := udp.WriteTo(nil, udpAddr(b, 9)); return err },
		} {
			require.ErrorIs(t, call(), net.ErrClosed, name)
		}
		for name, f := range map[string]func(){
			"Host":           func() { n.Host("c") },
			"Alias":          func() { n.Alias("c", a) },
			"Link":           func() { n.Link(a, b) },
			"Path":           func() { n.Path(a, b) },
			"Go":             func() { n.Go("x", func() {}) },
			"After":          func() { n.After(0, "x", func() {}) },
			"Apply":          func() { n.Apply(netsim.Rule{Verdict: drop}) },
			"Cut":            func() { link.Cut() },
			"Heal":           func() { link.Heal() },
			"Reset":          func() { link.Reset() },
			"ResetFlow":      func() { n.ResetFlow("a>b:7#1") },
			"Move":           func() { wifi.Move("home", "192.168.1.2") },
			"SetAddresses":   func() { wifi.SetAddresses("192.168.1.2") },
			"Down":           wifi.Down,
			"Cut wifi":       func() { wifi.Cut() },
			"SetConditions":  func() { link.SetConditions(netsim.Conditions{}) },
			"ForgetIdle":     func() { link.ForgetIdle(time.Second, netsim.Silently) },
			"Partition":      func() { n.Partition(map[string][]string{"a": {"b"}}) },
			"Crash":          a.Crash,
			"Restart":        a.Restart,
			"Pause":          a.Pause,
			"Resume":         a.Resume,
			"SetExpensive":   func() { a.SetExpensive(true) },
			"Watch":          func() { a.WatchConnectivity(0, func(netsim.Connectivity) {}) },
			"Interface":      func() { a.Interface("wlan0", netsim.Wireless) },
			"SetResolver":    func() { a.SetResolver(nil) },
			"Listener stuff": func() { l.FailAccept(net.ErrClosed) },
			"Notef":          func() { n.Notef("x") },
		} {
			require.Contains(t, panicText(t, f), "the network is closed", name)
		}
	})
}

// TestUseFromOutsideTheBubble: an error or a panic, never a hang.
func TestUseFromOutsideTheBubble(t *testing.T) {
	inside, outside := make(chan struct{}), make(chan struct{})
	var n *netsim.Network
	var a *netsim.Host
	var client, server *netsim.Conn
	var l *netsim.Listener
	var udp *netsim.PacketConn
	go func() {
		defer close(outside)
		<-inside
		for name, call := range map[string]func() error{
			"Read":         func() error { _, err := client.Read(make([]byte, 1)); return err },
			"Write":        func() error { _, err := client.Write([]byte("x")); return err },
			"Close":        func() error { return client.Close() },
			"SetDeadline":  func() error { return client.SetDeadline(time.Now()) },
			"Dial":         func() error { _, err := a.Dial("tcp", "b:7"); return err },
			"Dial UDP":     func() error { _, err := a.Dial("udp", "b:7"); return err },
			"Listen":       func() error { _, err := a.Listen("tcp", ":0"); return err },
			"ListenPacket": func() error { _, err := a.ListenPacket("udp", ":0"); return err },
			"Accept":       func() error { _, err := l.Accept(); return err },
			"ReadFrom":     func() error { _, _, err := udp.ReadFrom(nil); return err },
			"WriteTo":      func() error { _, err := udp.WriteTo(nil, udpAddr(a, 9)); return err },
		} {
			if err := call(); err == nil || !strings.Contains(err.Error(), "the network lives in a bubble's virtual time") {
				t.Errorf("%s: %v", name, err)
			}
		}
		for name, f := range map[string]func(){
			"Host":  func() { n.Host("c") },
			"Go":    func() { n.Go("x", func() {}) },
			"After": func() { n.After(time.Second, "x", func() {}) },
			"Cut":   func() { n.Link(a, a).Cut() },
			"Crash": a.Crash,
			"Apply": func() { n.Apply(netsim.Rule{Verdict: drop}) },
		} {
			func() {
				defer func() {
					if r := fmt.Sprint(recover()); !strings.Contains(r, "the network lives in a bubble's virtual time") {
						t.Errorf("%s: %s", name, r)
					}
				}()
				f()
			}()
		}
	}()
	netsim.Run(t, func(t *testing.T, m *netsim.Network) {
		n, a = m, m.Host("a")
		b := m.Host("b")
		l, udp = listen(t, b, ":7"), packetConn(t, a, ":9")
		client, server = pair(t, a, b)
		close(inside)
		<-outside
		write(t, client, "still works")
		require.Equal(t, "still works", readN(t, server, 11))
	})
}

// TestUseFromAnotherBubble: the process ends, as for any thing of Go that belongs
// to another bubble, and says where. The calls are made in a process of their own.
func TestUseFromAnotherBubble(t *testing.T) {
	const which = "NETSIM_TEST_CALL_FROM_ANOTHER_BUBBLE"
	var n *netsim.Network
	var a *netsim.Host
	var conn *netsim.Conn
	calls := map[string]func(){
		"netsim.(*Conn).Read":     func() { conn.Read(make([]byte, 1)) },
		"netsim.(*Host).Dial":     func() { a.Dial("tcp", "b:7") },
		"netsim.(*Network).Apply": func() { n.Apply(netsim.Rule{Verdict: drop}) },
		"netsim.(*Trace).Len":     func() { n.Trace().Len() },
	}
	if call := os.Getenv(which); call != "" {
		clock.Run(t, func(t *testing.T) {
			n = netsim.New()
			a = n.Host("a")
			conn, _ = pair(t, a, n.Host("b"))
		})
		clock.Run(t, func(t *testing.T) { calls[call]() })
		return
	}
	for call := range calls {
		child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
		child.Env = append(os.Environ(), which+"="+call)
		text, err := child.CombinedOutput()
		require.Error(t, err, call)
		require.Contains(t, string(text), "synctest channel from outside bubble")
		require.Contains(t, string(text), call)
	}
}

func TestRealNetworkUsedInABubble(t *testing.T) {
	n := netsim.New()
	defer n.Close()
	a := n.Host("a")
	clock.Run(t, func(t *testing.T) {
		_, err := a.Dial("tcp", "a:7")
		require.ErrorContains(t, err, "the other way round")
	})
}

func TestAddressOfNobody(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		a := n.Host("a")
		for _, network := range []string{"tcp", "udp"} {
			d := after(func() {
				_, err := a.Dial(network, "203.0.113.1:80")
				require.ErrorContains(t, err, "nobody has the address 203.0.113.1")
			})
			require.Zero(t, d)
		}
		for _, address := range []string{"nobody:80", "a", "a:port", "a:99999", "[::1:80"} {
			_, err := a.Dial("tcp", address)
			require.Error(t, err, address)
		}
		_, err := a.Dial("tcp", "nobody:80")
		var dns *net.DNSError
		require.ErrorAs(t, err, &dns)
		require.True(t, dns.IsNotFound)
		for _, network := range []string{"", "tcp5", "unix", "ip"} {
			_, err := a.Dial(network, "a:80")
			require.ErrorAs(t, err, new(net.UnknownNetworkError), network)
			_, err = a.Listen(network, ":80")
			require.ErrorAs(t, err, new(net.UnknownNetworkError), network)
			_, err = a.ListenPacket(network, ":80")
			require.ErrorAs(t, err, new(net.UnknownNetworkError), network)
		}
		_, err = (&netsim.Dialer{}).Dial("tcp", "a:80")
		require.ErrorContains(t, err, "Dialer without a Host")
	})
}
