package forward

import (
	"context"
	"sync"

	"github.com/seed-5a7f77c4/deadair/clock"
	"github.com/seed-5a7f77c4/deadair/selection/choice"
	"github.com/seed-5a7f77c4/deadair/selection/idle"
	"github.com/seed-5a7f77c4/deadair/selection/pick"
	"github.com/seed-5a7f77c4/deadair/selection/share"
)

// link is a connection with what the client keeps beside it: the relay sessions, the choices that use it, and the
// drop rule.
type link struct {
	Link
	clock    clock.Clock
	rule     idle.Rule
	limits   Limits
	sessions *share.Group[string, Session]
	ended    func(used map[Key]choice.Choice[string])

	mu    sync.Mutex
	over  bool
	used  map[Key]choice.Choice[string]
	state idle.State
	watch *clock.Timer
	stop  context.CancelFunc
}

// start begins the watch over a connection.
func (l *link) start(conn Link) {
	ctx, cancel := context.WithCancel(context.Background())
	l.mu.Lock()
	l.Link, l.stop = conn, cancel
	l.state = idle.Start(l.clock.Now())
	over := l.over
	if !over {
		l.watch = l.clock.AfterFunc(l.rule.Every, func() { l.look(ctx) })
	}
	l.mu.Unlock()
	if over { // it ended while it was being made
		cancel()
		conn.Close()
	}
}

// use notes that a choice goes by this connection. It reports false if the connection is over.
func (l *link) use(key Key, c choice.Choice[string]) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return false
	}
	l.used[key] = c
	return true
}

func (l *link) received() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state.Received(l.clock.Now())
}

func (l *link) timedOut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state.TimedOut()
}

// look applies the drop rule and arms the watch for the next look. A ping's own silence counts as a time-out.
func (l *link) look(ctx context.Context) {
	l.mu.Lock()
	if l.over {
		l.mu.Unlock()
		return
	}
	now := l.clock.Now()
	verdict := l.state.Check(l.rule, now)
	l.watch.Reset(l.state.Due(l.rule).Sub(now))
	l.mu.Unlock()
	switch verdict {
	case idle.End:
		l.end()
	case idle.Ping:
		ctx, cancel := l.clock.WithTimeout(ctx, l.limits.Command)
		defer cancel()
		if err := l.Ping(ctx); err != nil && ctx.Err() == context.DeadlineExceeded {
			l.timedOut()
		}
	}
}

// end takes the connection out of use, once, and tells the client which choices went by it.
func (l *link) end() {
	l.mu.Lock()
	if l.over {
		l.mu.Unlock()
		return
	}
	l.over = true
	used := l.used
	l.mu.Unlock()
	l.ended(used)
	l.release()
}

// close ends the connection on the client's behalf: nobody is told.
func (l *link) close() {
	l.mu.Lock()
	was := l.over
	l.over = true
	l.mu.Unlock()
	if !was {
		l.release()
	}
}

func (l *link) release() {
	l.mu.Lock()
	conn, stop, watch := l.Link, l.stop, l.watch
	l.mu.Unlock()
	if conn == nil {
		return // start will see that it is over
	}
	stop()
	if watch != nil {
		watch.Stop()
	}
	conn.Close()
}

// session is create-or-wait for the relay session.
func (l *link) session(ctx context.Context, relay pick.Server, credentials string, limits Limits) (share.Got[Session], error) {
	got, err := l.sessions.Get(ctx, relay.Name, limits.Session(), func(own context.Context, _ share.Attempt) (Session, error) {
		s, err := l.Session(own, relay, credentials)
		err = asBroker(ctx, err)
		l.countTimeout(err)
		return s, err
	})
	return got, asBroker(ctx, err)
}

// forward sends a command through a session.
func (l *link) forward(ctx context.Context, s Session, command []byte, limits Limits) ([]byte, error) {
	own, cancel := l.clock.WithTimeout(ctx, limits.Forward())
	defer cancel()
	answer, err := l.Forward(own, s, command)
	err = asBroker(ctx, err)
	l.countTimeout(err)
	return answer, err
}

// command sends a command to the server itself.
func (l *link) command(ctx context.Context, command []byte, limits Limits) ([]byte, error) {
	own, cancel := l.clock.WithTimeout(ctx, limits.Command)
	defer cancel()
	answer, err := l.Command(own, command)
	err = asBroker(ctx, err)
	l.countTimeout(err)
	return answer, err
}

func (l *link) countTimeout(err error) {
	if e := AsError(err); e != nil && e.Origin == Broker && e.Code == Timeout {
		l.timedOut()
	}
}
