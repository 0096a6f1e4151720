package privaterouting

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/seed-5a7f77c4/deadair/scenarios/privaterouting/wire"
	"github.com/seed-5a7f77c4/deadair/selection/choice"
	"github.com/seed-5a7f77c4/deadair/selection/forward"
)

// App is the agent under test with what a user does with it.
type App struct {
	w      *World
	client *forward.Client
	conn   *connector

	mu      sync.Mutex
	changes []Changed
	running sync.WaitGroup
	home    func() // ends the connection to the own server
}

// Changed is one change of a choice.
type Changed struct {
	At     time.Duration
	Event  choice.Event[string]
	Change choice.Change
}

// newApp starts an app. Its picks begin with the draws given, its table with the
// choices given, if there are any.
func newApp(w *World, draws []string, choices *choice.Table[forward.Key, string]) *App {
	a := &App{w: w}
	a.conn = &connector{
		dial: w.hosts["app"].DialContext, tls: w.clientTLS(), deliver: func(*wire.Delivery) {},
		note: func(what, about, text string) { w.Journal.Add("app", what, about, text) },
	}
	policy := w.subject.Policy
	client, err := forward.New(forward.Options{
		Connector: a.conn, Rand: w.generator(draws), Policy: &policy, Clock: w.setup.Clock,
		Config:  func(string) forward.Config { return w.config() },
		Changed: a.changed, Choices: choices,
	})
	if err != nil {
		w.play.Fatal(err)
	}
	a.client = client
	w.play.Cleanup(a.close)
	return a
}

func (a *App) close() {
	if a.home != nil {
		a.home()
	}
	a.client.Close()
	a.conn.running.Wait()
}

func (a *App) changed(key forward.Key, ev choice.Event[string], change choice.Change) {
	a.mu.Lock()
	a.changes = append(a.changes, Changed{At: a.w.play.Elapsed(), Event: ev, Change: change})
	a.mu.Unlock()
	a.w.Journal.Add("app", "choice", ev.Choice.Proxy, change.String())
}

// Changes are the changes of choices so far.
func (a *App) Changes() []Changed {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]Changed(nil), a.changes...)
}

// Forgotten is how often a choice was forgotten.
func (a *App) Forgotten() int {
	n := 0
	for _, c := range a.Changes() {
		if c.Change.Forgotten() {
			n++
		}
	}
	return n
}

// Choice is the choice in force towards the relay.
func (a *App) Choice() (choice.Entry[string], bool) { return a.ChoiceFor(relayName) }

// ChoiceFor is the choice in force towards a relay.
func (a *App) ChoiceFor(name string) (choice.Entry[string], bool) {
	return a.client.Choice(towards(name))
}

// towards is the key of the user's choice towards a relay.
func towards(name string) forward.Key { return forward.Key{User: user, Destination: name} }

// request is a command for the relay.
func request(m wire.Message, u forward.Urgency) forward.Request {
	return forward.Request{User: user, Destination: destination, Command: wire.Encode(m), Urgency: u}
}

// Do sends a command to the relay once.
func (a *App) Do(ctx context.Context, m wire.Message, u forward.Urgency) (forward.Result, error) {
	return a.DoAt(ctx, relayName, m, u)
}

// DoAt sends a command to a relay once.
func (a *App) DoAt(ctx context.Context, name string, m wire.Message, u forward.Urgency) (forward.Result, error) {
	r := request(m, u)
	r.Destination = relay(name)
	res, err := a.client.Do(ctx, r)
	if err != nil {
		a.w.Journal.Add("app", "failed", res.Proxy, err.Error())
	} else {
		a.w.Journal.Add("app", "answered", res.Proxy, m.Tag())
	}
	return res, err
}

// Deliver sends a message to a queue at the relay in the background, again and
// again. A reply to somebody who joined moves to the destination's own worker
// when it fails twice; an ordinary message does not.
func (a *App) Deliver(ctx context.Context, queue string, id uint64, moves bool) error {
	m := &wire.Send{Queue: queue, ID: id, Body: []byte("hello")}
	res, err := a.client.Deliver(ctx, request(m, forward.Urgency{}), moves)
	if err == nil {
		a.w.Journal.Add("app", "delivered", res.Proxy, fmt.Sprint("message ", id))
	}
	return err
}

// Listen makes the app's queue and link at home, and replies in the background
// to whoever joins: their queue is what the message says.
func (a *App) Listen(ctx context.Context) {
	conn, end := a.w.dial("app", homeName, wire.Events{Message: func(_ *wire.Conn, _ uint64, m wire.Message) {
		d, ok := m.(*wire.Delivery)
		if !ok {
			return
		}
		a.w.Journal.Add("app", "joined", string(d.Body), "")
		a.running.Go(func() { a.Deliver(ctx, string(d.Body), d.ID, true) })
	}})
	a.home = end
	a.w.play.Cleanup(a.running.Wait)
	a.w.call(ctx, conn, &wire.NewQueue{Queue: appQueue})
	a.w.call(ctx, conn, &wire.Subscribe{Queue: appQueue})
	a.w.call(ctx, conn, &wire.PutLink{Link: appLink, Data: []byte(appQueue)})
}

// Join looks a link up at the relay and taps Retry after each error, at most so
// often. It gives the errors as the user sees them, and whether it worked in the
// end.
func (a *App) Join(ctx context.Context, link string, retries int, think time.Duration) (seen []string, joined bool) {
	for n := 0; ; n++ {
		a.w.Journal.Add("app", "attempt", link, fmt.Sprint("n=", n))
		_, err := a.Do(ctx, &wire.GetLink{Link: link}, forward.Urgency{Interactive: true, Retry: n})
		if err == nil {
			return seen, true
		}
		seen = append(seen, errorText(err))
		if n == retries {
			return seen, false
		}
		time.Sleep(think)
	}
}

const (
	appQueue     = "app-inbox"
	appLink      = "app-link"
	contactQueue = "contact-inbox"
	contactLink  = "contact-link"
)

// Contact is the other side of a conversation. It uses the servers directly.
type Contact struct {
	w     *World
	relay *wire.Conn
	home  *wire.Conn
}

func newContact(w *World) *Contact { return &Contact{w: w} }

// Receive makes the contact's queue at the relay and listens to it.
func (c *Contact) Receive(ctx context.Context) {
	c.relay, _ = c.w.dial("contact", relayName, wire.Events{Message: func(_ *wire.Conn, _ uint64, m wire.Message) {
		if d, ok := m.(*wire.Delivery); ok {
			c.w.Journal.Add("contact", "received", d.Queue, fmt.Sprint("message ", d.ID))
		}
	}})
	c.w.call(ctx, c.relay, &wire.NewQueue{Queue: contactQueue})
	c.w.call(ctx, c.relay, &wire.Subscribe{Queue: contactQueue})
	c.w.call(ctx, c.relay, &wire.PutLink{Link: contactLink, Data: []byte(contactQueue)})
}

// Join looks the app's link up and sends the contact's own queue there.
func (c *Contact) Join(ctx context.Context, id uint64) {
	c.home, _ = c.w.dial("contact", homeName, wire.Events{})
	data, ok := c.w.call(ctx, c.home, &wire.GetLink{Link: appLink}).(*wire.LinkData)
	if !ok {
		c.w.play.Fatalf("the contact found no link %q", appLink)
	}
	c.w.call(ctx, c.home, &wire.Send{Queue: string(data.Data), ID: id, Body: []byte(contactQueue)})
}

// dial connects a host to a server, past all proxies, until the end is called or
// the story is over.
func (w *World) dial(from, to string, events wire.Events) (conn *wire.Conn, end func()) {
	raw, _, err := establish(w.play.Context(), w.hosts[from].DialContext, to, w.clientTLS())
	if err != nil {
		w.play.Fatalf("%s does not reach %s: %v", from, to, err)
	}
	conn = wire.NewConn(raw, events)
	var serving sync.WaitGroup
	serving.Go(func() { conn.Serve() })
	end = func() {
		conn.Close()
		serving.Wait()
	}
	w.play.Cleanup(end)
	return conn, end
}

// call asks a server something that it must be able to do.
func (w *World) call(ctx context.Context, conn *wire.Conn, m wire.Message) wire.Message {
	answer, err := conn.Call(ctx, m)
	if err != nil {
		w.play.Fatalf("%s: %v", m.Tag(), err)
	}
	if f, failed := answer.(*wire.Failure); failed {
		w.play.Fatalf("%s: %v", m.Tag(), f.Err())
	}
	return answer
}
