// Package race connects to one machine over several routes at once and keeps the first on which the application's own
// hello succeeded. A TCP connection that opens proves nothing: a captive portal, a half-open relay or another machine
// on the same address opens one too.
//
// A Racer stands where a net.Dialer would stand:
//
//	racer := race.New(race.OpenThenHello(dialer.DialContext, func(ctx context.Context, c net.Conn) (*Client, error) {
//		return newClient(ctx, c) // sends the hello and waits for the answer
//	}), race.DefaultPolicy())
//	defer racer.Close() // ends a race under way and waits for its attempts; what was won stays open
//	plan := race.Build(race.Input{Candidates: []route.Candidate{
//		{Address: "192.168.1.10", Port: 8787},
//		{Address: "100.64.0.7", Port: 8787},
//	}}, race.DefaultPolicy())
//	fmt.Println(plan) // who is tried when, and why
//	won, err := racer.Race(ctx, plan) // at most 10 s; won.Conn is the *Client, won.Failed the routes to blame
//
// Build makes the plan, Machine decides what happens while it runs, and neither waits nor dials. Racer is the thin
// driver that does.
package race
