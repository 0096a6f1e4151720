package conditions

import (
	"fmt"
	"strings"
)

// An Entry of the catalogue is a public report and the line that makes its
// condition.
type Entry struct {
	Report   string   // as GitHub links it: "golang/go#30702"
	Symptom  string   // what a program in production sees
	Function string   // of this package
	Line     string   // what to write in a test
	Labels   []string // what the condition is about: "flow", "dns", "mobile", …
}

// All lists the catalogue in the order of the table in docs/production.md.
func All() []Entry {
	return []Entry{
		{"golang/go#30702", "every HTTP/2 request times out, and no new connection is dialled", "SilentTowards", `conditions.SilentTowards(n, app, "app>api:443#1")`, []string{"flow", "http2"}},
		{"golang/go#63422", "some of the connections to one host are dead, new ones work", "FlowsHashedAway", `conditions.FlowsHashedAway(n, n.Link(app, api), 2)`, []string{"flow"}},
		{"grpc/grpc-go#7542", "calls fail with their deadlines for a quarter of an hour", "SilentFlow", `conditions.SilentFlow(n, "app>api:443#1")`, []string{"flow"}},
		{"jackc/pgx#2394", "a pool hands out a dead connection", "SilentFlow", `conditions.SilentFlow(n, "app>db:5432#2")`, []string{"flow", "pool"}},
		{"moby/moby#34359", "a long wait for an answer never ends", "NATForgets", `conditions.NATForgets(n.Link(app, api), 300*time.Second)`, []string{"middlebox", "idle"}},
		{"go-sql-driver/mysql#257", "queries hang after a quiet quarter of an hour", "NATForgets", `conditions.NATForgets(n.Link(app, db), 15*time.Minute)`, []string{"middlebox", "idle", "pool"}},
		{"golang/go#13998", "the first request after a pause fails with \"connection reset by peer\"", "FirewallResets", `conditions.FirewallResets(n.Link(app, api), 300*time.Second)`, []string{"middlebox", "idle"}},
		{"kubernetes/kubernetes#74839", "a download breaks off with \"connection reset by peer\", and the server did not do it", "ResetReaderAfter", `conditions.ResetReaderAfter(n, app, 443, 1<<20)`, []string{"flow", "reset"}},
		{"open-octo/octo-agent#146", "a streamed answer stops in its middle and nothing fails", "StallAfter", `conditions.StallAfter(n, api, 443, 4096)`, []string{"flow", "stall"}},
		{"getlantern/lantern#4967", "the fastest proxy connects and then says nothing", "StallAfter", `conditions.StallAfter(n, proxy, 443, 512)`, []string{"proxy", "stall"}},
		{"golang/go#37549", "a SOCKS proxy accepts and Dial never returns", "StallAfter", `conditions.StallAfter(n, proxy, 1080, 0)`, []string{"proxy", "stall"}},
		{"router-for-me/CLIProxyAPI#3952", "an HTTP proxy never answers CONNECT", "StallAfter", `conditions.StallAfter(n, proxy, 3128, 0)`, []string{"proxy", "stall"}},
		{"hashicorp/yamux#142", "after a short outage a stream neither goes on nor fails", "SqueezedFor", `conditions.SqueezedFor(n, n.Path(app, api), 15*time.Second)`, []string{"flow", "outage"}},
		{"cockroachdb/cockroach#84289", "one host hears another and is not heard", "OneWayLoss", `conditions.OneWayLoss(n.Path(a, b))`, []string{"partition"}},
		{"cockroachdb/cockroach#84289", "old connections work, new ones time out", "SYNsLost", `conditions.SYNsLost(n, api)`, []string{"handshake"}},
		{"cockroachdb/cockroach#84289", "a name does not resolve, at one host only", "NameUnknown", `conditions.NameUnknown(names, "db.example.")`, []string{"dns"}},
		{"eclipse-paho/paho.golang#288", "a client publishes for ever to a broker that it does not hear", "OneWayLoss", `conditions.OneWayLoss(n.Path(broker, app))`, []string{"partition", "keepalive"}},
		{"tailscale/tailscale#92", "the direct path is dead and the relay is not used", "DirectPathLost", `conditions.DirectPathLost(n.Link(a, b))`, []string{"mobile", "partition"}},
		{"golang/go#44267", "\"TLS handshake timeout\"", "SlowHello", `l = conditions.SlowHello(l, 12*time.Second)`, []string{"handshake", "tls"}},
		{"golang/go#16012", "\"cannot assign requested address\"", "FewPorts", `netsim.Run(t, f, conditions.FewPorts(100))`, []string{"handshake", "ports"}},
		{"dragonflydb/dragonfly#1643", "dials take 1 s or 3 s, and none fails", "StalledAcceptor", `l = conditions.StalledAcceptor(l, 2*time.Second)`, []string{"handshake", "backlog"}},
		{"gravitational/teleport#6889", "all clients come back at once after a restart", "RestartStorm", `conditions.RestartStorm(n, api, 10*time.Second, clients...)`, []string{"handshake", "reset"}},
		{"golang/go#43398", "look-ups take 10 s and succeed", "NoAnswerForAAAA", `conditions.NoAnswerForAAAA(names)`, []string{"dns"}},
		{"golang/go#57694", "dials fail with i/o timeout before anything is dialled", "SilentNameServer", `conditions.SilentNameServer(n, dns1)`, []string{"dns"}},
		{"urnetwork/connect#207", "IPv6 connects at once, and TLS times out", "SegmentsLost", `conditions.SegmentsLost(n, api, true, 1480)`, []string{"middlebox", "mtu"}},
		{"Icinga/icinga2#2727", "heartbeats are late behind a bulk transfer", "SlowLink", `n.Path(app, api).SetConditions(conditions.SlowLink())`, []string{"middlebox", "queue"}},
		{"quic-go/quic-go#5815", "large datagrams vanish", "LargeDatagramsLost", `conditions.LargeDatagramsLost(n, n.Link(app, api), 1232)`, []string{"datagram", "mtu"}},
		{"quic-go/quic-go#5815", "\"message too long\"", "LargeDatagramsRefused", `conditions.LargeDatagramsRefused(wifi, 1232)`, []string{"datagram", "mtu"}},
		{"pion/dtls#479", "a handshake fails when one certain packet is lost", "KthDatagramLost", `conditions.KthDatagramLost(n, n.Link(app, api), k)`, []string{"datagram", "handshake"}},
		{"pion/dtls#479", "a handshake fails when one certain packet comes twice", "KthDatagramDoubled", `conditions.KthDatagramDoubled(n, n.Link(app, api), k)`, []string{"datagram", "handshake"}},
		{"getlantern/lantern#2588", "\"network is unreachable\", and all servers are thought bad", "NoNetworkFor", `conditions.NoNetworkFor(n, wifi, 30*time.Second)`, []string{"mobile"}},
		{"tailscale/tailscale#276", "connections of the Wi-Fi hang after it is gone", "WiFiLost", `conditions.WiFiLost(wifi)`, []string{"mobile"}},
		{"tailscale/tailscale#1634", "every name resolves, and nothing but a login page answers", "CaptivePortal", `p := conditions.CaptivePortal(n, phone, portal, dns, names)`, []string{"mobile", "dns"}},
		{"golang/go#35012", "after sleep the session is dead and the program does not know", "SleepFor", `conditions.SleepFor(n, phone, clk, 15*time.Minute)`, []string{"mobile", "clock"}},
		{"opnsense/core#9181", "handshakes are refused until the clock is right", "WrongDateFor", `clk := conditions.WrongDateFor(n, 30*24*time.Hour, 10*time.Minute)`, []string{"clock"}},
	}
}

// Markdown is docs/production.md.
func Markdown() string {
	var b strings.Builder
	b.WriteString(`# What you see in production → what to write here

Package scenarios/conditions is a catalogue of conditions from public reports.
Each is a line in a test; the comment of its function says what exactly happens,
and the tests beside it show a real client meeting it. In the lines below, n is
the network, app, api, db and so on are its hosts, l is a listener, names is a
dnsserver.Server. This page is made from the catalogue by go generate.

| what you see | report | write | about |
|---|---|---|---|
`)
	for _, e := range All() {
		owner, number, _ := strings.Cut(e.Report, "#")
		fmt.Fprintf(&b, "| %s | [%s](https://github.com/%s/issues/%s) | `%s` | %s |\n",
			e.Symptom, e.Report, owner, number, e.Line, strings.Join(e.Labels, ", "))
	}
	return b.String()
}
