package forward

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-5a7f77c4/deadair/selection/pick"
)

// step is what a server does with one request: how long it takes, and how it ends.
type step struct {
	after time.Duration
	err   error
}

func (s step) take(ctx context.Context) error { return after(ctx, s.after, s.err) }

// TestNoRequestIsLostOrSentTwice lets many goroutines send through servers that fail in all ways, at random instants,
// with connections that end and callers that leave. Each request must end; one that succeeds was answered exactly once;
// none is forwarded more often than NO_SESSION allows; and nothing is left behind.
func TestNoRequestIsLostOrSentTwice(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		requests := rapid.IntRange(1, 12).Draw(rt, "requests")
		ends := rapid.IntRange(0, 4).Draw(rt, "ends")
		var broken string
		synctest.Test(t, func(*testing.T) { broken = schedule(seed, requests, ends) })
		if broken != "" {
			rt.Fatal(broken)
		}
	})
}

// record is what the property is judged by.
type record struct {
	mu        sync.Mutex
	forwarded map[string]int
	answered  map[string]int
	unknown   map[string]int
	problems  []string
}

func (r *record) problem(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.problems = append(r.problems, fmt.Sprintf(format, args...))
}

func schedule(seed uint64, requests, ends int) string {
	rng, answers := rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(seed, 3))
	rec := &record{forwarded: map[string]int{}, answered: map[string]int{}, unknown: map[string]int{}}
	draw := func(errs ...error) step {
		rec.mu.Lock()
		defer rec.mu.Unlock()
		return step{after: time.Duration(answers.IntN(80_000)) * time.Millisecond, err: errs[answers.IntN(len(errs))]}
	}
	net := &network{
		connect: func(ctx context.Context, _ string) error { return draw(nil, nil, nil, &Error{Code: Network}).take(ctx) },
		session: func(ctx context.Context, _ string) error { return draw(nil, nil, nil, reported, noHost).take(ctx) },
	}
	k := counting{net, rec, draw}
	servers := []pick.Server{server("a"), server("b"), server("c")}
	client, err := New(Options{
		Connector: k, Rand: rand.New(rand.NewPCG(seed, 2)),
		Config: func(string) Config { return Config{Servers: servers, Mode: Always} },
	})
	if err != nil {
		return err.Error()
	}
	done := make(chan string, requests)
	for i := range requests {
		name := fmt.Sprintf("request %d", i)
		start, leaves := rng.IntN(100), rng.IntN(4) == 0
		go func() {
			time.Sleep(time.Duration(start) * time.Second)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			if leaves {
				time.AfterFunc(20*time.Second, cancel)
			}
			_, err := client.Do(ctx, Request{User: "u", Destination: destination, Command: []byte(name)})
			rec.mu.Lock()
			answered, forwarded, unknown := rec.answered[name], rec.forwarded[name], rec.unknown[name]
			rec.mu.Unlock()
			if err == nil && answered != 1 {
				rec.problem("%s succeeded with %d answers", name, answered)
			}
			if forwarded > 1+unknown || forwarded > 2 {
				rec.problem("%s was forwarded %d times, with NO_SESSION %d times", name, forwarded, unknown)
			}
			done <- name
		}()
	}
	for range ends {
		time.Sleep(time.Duration(rng.IntN(60)) * time.Second)
		net.mu.Lock()
		var l *testLink
		if n := len(net.links); n > 0 {
			l = net.links[rng.IntN(n)]
		}
		net.mu.Unlock()
		if l != nil {
			l.watch.Ended(nil)
		}
	}
	limit := time.After(time.Hour)
	for range requests {
		select {
		case <-done:
		case <-limit:
			return "a request was still under way after an hour"
		}
	}
	client.Close()
	if client.Choices() != 0 {
		rec.problem("%d choices outlive the client", client.Choices())
	}
	for _, l := range net.links {
		if !l.closed {
			rec.problem("a connection to %s was not closed", l.name)
		}
	}
	return strings.Join(rec.problems, "; ")
}

// counting is a network that counts what becomes of each command.
type counting struct {
	*network
	rec  *record
	draw func(...error) step
}

func (n counting) Connect(ctx context.Context, to Endpoint, watch Watch) (Link, error) {
	l, err := n.network.Connect(ctx, to, watch)
	if err != nil {
		return nil, err
	}
	return countingLink{l.(*testLink), n}, nil
}

type countingLink struct {
	*testLink
	n counting
}

func (l countingLink) Forward(ctx context.Context, s Session, command []byte) ([]byte, error) {
	rec, name := l.n.rec, string(command)
	next := l.n.draw(nil, nil, reported, noSession, &Error{Origin: Relay, Code: Refused, Detail: "AUTH"})
	rec.mu.Lock()
	rec.forwarded[name]++
	if next.err == noSession {
		rec.unknown[name]++
	}
	rec.mu.Unlock()
	if err := next.take(ctx); err != nil {
		return nil, err
	}
	rec.mu.Lock()
	rec.answered[name]++
	rec.mu.Unlock()
	return l.testLink.Forward(ctx, s, command)
}
