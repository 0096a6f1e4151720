package socksrelay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/seed-5a7f77c4/deadair/blackhole"
)

// Times that hold where Config gives none.
const (
	// DefaultHandshakeTimeout is how long a client may take from the accept to the end of its request.
	DefaultHandshakeTimeout = 30 * time.Second
	// DefaultDialTimeout is how long resolving and dialling may take.
	DefaultDialTimeout = 60 * time.Second
	// DefaultGoneTimeout is how long a client whose end of stream a fault has swallowed keeps its connections. It is
	// Linux's tcp_fin_timeout, after which the kernel of a program that has closed its socket forgets it.
	DefaultGoneTimeout = 60 * time.Second
)

// Config is what a relay is made of.
type Config struct {
	// Dial makes the connections to the destinations; there is no default. For real ones it is new(net.Dialer).DialContext.
	Dial blackhole.DialFunc
	// Resolve turns the name that a client asks for into an address. nil leaves names to Dial.
	Resolve func(ctx context.Context, name string) (net.IP, error)
	// Valid checks user name and password. nil means that clients need not authenticate.
	Valid func(user, password string) bool
	// Allow says which destinations (host:port, as asked for) may be dialled; others are answered with reply 2. nil
	// means all of them.
	Allow func(destination string) bool
	// Faults are there from the start.
	Faults []*Fault
	// HandshakeTimeout: 0 means DefaultHandshakeTimeout, less than 0 none. It is for clients that are slow. A relay that
	// hangs does not keep time: while a fault holds up the handshake the time starts anew, and the client has all of it
	// again when the fault lets go.
	HandshakeTimeout time.Duration
	// GoneTimeout: 0 means DefaultGoneTimeout, less than 0 none. It ends a connection whose client has ended its stream
	// inside a black hole, where a client that has left looks like one that has only half-closed. A client that has
	// reset its connection is known to have left and is let go at once.
	GoneTimeout time.Duration
	// DialTimeout: 0 means DefaultDialTimeout, less than 0 none.
	DialTimeout time.Duration
	// Logger hears about every connection; nil means nobody.
	Logger *slog.Logger
}

// Relay is a SOCKS5 server. Its methods may be called concurrently.
type Relay struct {
	config Config
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu        sync.Mutex
	closed    bool
	faults    []*Fault
	listeners map[net.Listener]struct{}
	sessions  map[*session]struct{}
	accepted  int
}

// New makes a relay. It returns an error that names what is missing or impossible.
func New(config Config) (*Relay, error) {
	if config.Dial == nil {
		return nil, errors.New("socksrelay: New: Config.Dial is nil; for real connections set new(net.Dialer).DialContext")
	}
	if config.HandshakeTimeout == 0 {
		config.HandshakeTimeout = DefaultHandshakeTimeout
	}
	if config.DialTimeout == 0 {
		config.DialTimeout = DefaultDialTimeout
	}
	if config.GoneTimeout == 0 {
		config.GoneTimeout = DefaultGoneTimeout
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	r := &Relay{config: config, listeners: make(map[net.Listener]struct{}), sessions: make(map[*session]struct{})}
	for _, f := range config.Faults {
		if err := r.Add(f); err != nil {
			return nil, err
		}
	}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r, nil
}

// Add puts another fault on the connections that are accepted from now on.
func (r *Relay) Add(f *Fault) error {
	if err := f.prepare(); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, other := range r.faults {
		if other.String() == f.String() {
			return fmt.Errorf("socksrelay: fault %q: the name is taken", f)
		}
	}
	r.faults = append(r.faults, f)
	return nil
}

// Remove takes a fault off the connections that are accepted from now on and reports whether there was one.
func (r *Relay) Remove(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := len(r.faults)
	r.faults = slices.DeleteFunc(slices.Clone(r.faults), func(f *Fault) bool { return f.String() == name })
	return len(r.faults) < before
}

// Faults lists the faults in order.
func (r *Relay) Faults() []*Fault {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.faults)
}

// Missed names the faults that have never taken effect, nil if there is none. Ask at the end of a test: one that passes
// because its fault missed (another destination, fewer bytes than it waits for, no connection at all) proves nothing.
func (r *Relay) Missed() error {
	r.mu.Lock()
	accepted := r.accepted
	r.mu.Unlock()
	var errs []error
	for _, f := range r.Faults() {
		if f.Hits() == 0 {
			errs = append(errs, fmt.Errorf("socksrelay: fault %q never took effect, on %d connections so far", f, accepted))
		}
	}
	return errors.Join(errs...)
}

// Serve accepts connections until the relay is closed, which it answers with net.ErrClosed, or the listener fails. It
// closes the listener. When the system is short of file descriptors or memory it waits, at most a second at a time, and
// goes on.
func (r *Relay) Serve(l net.Listener) error {
	if l == nil {
		return errors.New("socksrelay: Serve: the listener is nil")
	}
	defer l.Close()
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return fmt.Errorf("socksrelay: Serve: %w", net.ErrClosed)
	}
	r.listeners[l] = struct{}{}
	r.mu.Unlock()
	var pause time.Duration
	for {
		conn, err := l.Accept()
		if err != nil && shortage(err) && r.ctx.Err() == nil {
			pause = min(max(2*pause, firstPause), lastPause)
			r.config.Logger.Warn("cannot accept a connection", "error", err, "again in", pause)
			r.rest(pause)
			continue
		}
		pause = 0
		if err != nil {
			r.mu.Lock()
			defer r.mu.Unlock()
			delete(r.listeners, l)
			if r.closed {
				return fmt.Errorf("socksrelay: Serve: %w", net.ErrClosed)
			}
			return fmt.Errorf("socksrelay: Serve: %w", err)
		}
		if s := r.admit(conn); s != nil {
			go s.serve()
		}
	}
}

// The pauses between attempts to accept while the system is short of something: those of net/http.
const (
	firstPause = 5 * time.Millisecond
	lastPause  = time.Second
)

// shortage reports whether accepting failed for want of something that may come back, or because of one client only.
func shortage(err error) bool {
	for _, passing := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED} {
		if errors.Is(err, passing) {
			return true
		}
	}
	return false
}

// rest waits, but not beyond the relay's end.
func (r *Relay) rest(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-r.ctx.Done():
	}
}

// ServeConn serves one connection of a client and returns when it has ended.
func (r *Relay) ServeConn(conn net.Conn) {
	if s := r.admit(conn); s != nil {
		s.serve()
	}
}

// admit makes the session of a connection; nil if the relay is closed.
func (r *Relay) admit(conn net.Conn) *session {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		conn.Close()
		return nil
	}
	r.accepted++
	s := &session{relay: r, n: r.accepted, since: time.Now()}
	var wire []*blackhole.Fault
	for _, f := range r.faults {
		if f.Select.picks(s.n) {
			s.faults = append(s.faults, f)
			if f.wire != nil {
				wire = append(wire, f.wire)
			}
		}
	}
	r.mu.Unlock()
	bound(conn)
	client, err := blackhole.Server(conn, wire...)
	if err != nil {
		r.config.Logger.Error("cannot put the faults on a connection", "n", s.n, "error", err)
		conn.Close()
		return nil
	}
	s.client = client.(faulty)
	s.client.OnLostEnd(s.lost)
	s.ctx, s.cancel = context.WithCancel(r.ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		client.Close()
		s.cancel()
		return nil
	}
	r.sessions[s] = struct{}{}
	r.work.Add(1)
	return s
}

func (r *Relay) dismiss(s *session) {
	r.mu.Lock()
	delete(r.sessions, s)
	r.mu.Unlock()
	r.work.Done()
}

// Close closes the listeners and every connection and returns when everything the relay started has ended.
func (r *Relay) Close() error {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return fmt.Errorf("socksrelay: Close: %w", net.ErrClosed)
	}
	r.closed = true
	var all []io.Closer
	for l := range r.listeners {
		all = append(all, l)
	}
	for _, s := range r.ordered() {
		all = append(all, s)
	}
	r.mu.Unlock()
	r.cancel()
	for _, c := range all {
		c.Close()
	}
	r.work.Wait()
	return nil
}

// ordered lists the sessions by number. The caller holds mu.
func (r *Relay) ordered() []*session {
	all := make([]*session, 0, len(r.sessions))
	for s := range r.sessions {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *session) int { return a.n - b.n })
	return all
}

// Connections tells about the connections that are open, by number.
func (r *Relay) Connections() []Connection {
	r.mu.Lock()
	sessions := r.ordered()
	r.mu.Unlock()
	all := make([]Connection, len(sessions))
	for i, s := range sessions {
		all[i] = s.describe()
	}
	return all
}

var discard = log.New(io.Discard, "", 0)
