package conditions_test

import (
	"net"
	"testing"
	"time"

	"github.com/seed-5a7f77c4/deadair/clock"
	"github.com/seed-5a7f77c4/deadair/netsim"
	"github.com/seed-5a7f77c4/deadair/netsim/dnsserver"
	"github.com/seed-5a7f77c4/deadair/scenarios/conditions"
	"github.com/seed-5a7f77c4/deadair/socksrelay"
)

// lines holds the line of every entry, so that the compiler reads what others are
// told to write. Nothing calls it.
func lines(
	t *testing.T, f func(*testing.T, *netsim.Network), n *netsim.Network,
	app, api, db, broker, proxy, peer, a, b, dns, dns1, dns2, phone, portal *netsim.Host, clients []*netsim.Host,
	wifi *netsim.Interface, l net.Listener, c net.Conn, relay *socksrelay.Relay, names *dnsserver.Server, clk *clock.Skewed,
	answer string, k int,
) []any {
	conditions.SilentTowards(n, app, "app>api:443#1")
	conditions.FlowsHashedAway(n, n.Link(app, api), 2)
	conditions.SilentFlow(n, "app>api:443#1")
	conditions.SilentFlow(n, "app>db:5432#4")
	conditions.NATForgets(n.Link(app, db), 15*time.Minute)
	conditions.NATForgets(n.Link(app, api), 300*time.Second)
	conditions.FirewallResets(n.Link(app, api), 300*time.Second)
	conditions.OneWayLoss(n.Path(broker, app))
	conditions.SqueezedFor(n, n.Path(app, api), 15*time.Second)
	conditions.OneWayLoss(n.Path(a, b))
	conditions.DirectPathLost(n.Link(a, b))
	l = conditions.StopsReading(l, 4096)
	conditions.GoAway(c, 50*time.Millisecond, conditions.AllStreams)
	conditions.GoAway(c, 50*time.Millisecond, conditions.AllStreams, 1)
	conditions.RefuseUpload(c, 4096, answer, 0)
	conditions.AnswerLost(n, api, 80)
	conditions.ResetReaderAfter(n, app, 443, 1<<20)
	conditions.StallAfter(n, api, 443, 4096)
	n.Path(app, api).SetConditions(conditions.SlowLink())
	l = conditions.SlowHello(l, 12*time.Second)
	conditions.SegmentsLost(n, api, true, 1480)
	conditions.IPv6Lost(n, api)
	conditions.SYNsLost(n, api)
	l = conditions.StalledAcceptor(l, 2*time.Second)
	conditions.HelloThenSilence(n, peer, api)
	netsim.Run(t, f, conditions.FewPorts(100))
	conditions.RestartStorm(n, api, 10*time.Second, clients...)
	relay.Add(conditions.SilentRelay())
	relay.Add(conditions.RequestUnanswered())
	relay.Add(conditions.RequestRefused(4))
	relay.Add(conditions.SuccessTooEarly())
	conditions.StallAfter(n, proxy, 3128, 0)
	c = conditions.HalfCloseAfter(c, 5)
	conditions.StallAfter(n, proxy, 443, 512)
	conditions.NoAnswerForAAAA(names)
	conditions.SilentNameServer(n, dns1)
	conditions.SilentNameServer(n, dns2)
	conditions.NameServerFails(names)
	conditions.NameUnknown(names, "db.example.")
	conditions.LargeDatagramsLost(n, n.Link(app, api), 1232)
	conditions.LargeDatagramsRefused(wifi, 1232)
	conditions.LossAbove(n, n.Link(app, api), 1412, 100)
	conditions.KthDatagramLost(n, n.Link(app, api), k)
	conditions.KthDatagramDoubled(n, n.Link(app, api), k)
	conditions.KthDatagramSwapped(n, n.Link(app, api), k)
	conditions.NoNetworkFor(n, wifi, 30*time.Second)
	conditions.WiFiLost(wifi)
	p := conditions.CaptivePortal(n, phone, portal, dns, names)
	q := conditions.CaptivePortal(n, phone, portal, dns, names, 443)
	conditions.SleepFor(n, phone, clk, 15*time.Minute)
	wrong := conditions.WrongDateFor(n, 30*24*time.Hour, 10*time.Minute)
	return []any{l, c, p, q, wrong}
}
