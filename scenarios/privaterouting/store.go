package privaterouting

import (
	"context"
	"sync"

	"github.com/seed-5a7f77c4/deadair/scenarios/privaterouting/wire"
	"github.com/seed-5a7f77c4/deadair/selection/forward"
)

// store is a relay's memory: queues with their messages, and links.
type store struct {
	mu     sync.Mutex
	queues map[string]*queue
	links  map[string][]byte
}

type queue struct {
	key        string
	held       []*wire.Delivery
	subscriber *wire.Conn
	limit      int
}

// queueLimit is how many messages a queue holds for a subscriber who is away.
const queueLimit = 128

func newStore() store { return store{queues: map[string]*queue{}, links: map[string][]byte{}} }

// leave takes a connection out of all subscriptions.
func (st *store) leave(c *wire.Conn) {
	st.mu.Lock()
	defer st.mu.Unlock()
	for _, q := range st.queues {
		if q.subscriber == c {
			q.subscriber = nil
		}
	}
}

// command carries a relay command out; nil if the message is none. The connection is nil for a forwarded one.
func (s *Server) command(m wire.Message, c *wire.Conn) wire.Message {
	switch m := m.(type) {
	case *wire.NewQueue:
		return s.store.create(m)
	case *wire.Subscribe:
		if c == nil {
			return refuse("PROHIBITED")
		}
		answer, held := s.store.subscribe(m, c)
		for _, d := range held {
			_ = c.Send(s.ctx, 0, d) // an error means that the connection is over
		}
		return answer
	case *wire.Secure:
		return s.store.secure(m)
	case *wire.Send:
		answer, to, d := s.store.send(m)
		if to != nil {
			_ = to.Send(context.WithoutCancel(s.ctx), 0, d)
		}
		return answer
	case *wire.PutLink:
		return s.store.putLink(m)
	case *wire.GetLink:
		return s.store.getLink(m)
	}
	return nil
}

func refuse(detail string) *wire.Failure {
	return &wire.Failure{Origin: forward.Relay, Code: forward.Refused, Detail: detail}
}

func (st *store) create(m *wire.NewQueue) wire.Message {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.queues[m.Queue] == nil {
		st.queues[m.Queue] = &queue{limit: queueLimit}
	}
	return &wire.Done{}
}

func (st *store) subscribe(m *wire.Subscribe, c *wire.Conn) (wire.Message, []*wire.Delivery) {
	st.mu.Lock()
	defer st.mu.Unlock()
	q := st.queues[m.Queue]
	if q == nil {
		return refuse("NO_QUEUE"), nil
	}
	q.subscriber = c
	held := q.held
	q.held = nil
	return &wire.Done{}, held
}

func (st *store) secure(m *wire.Secure) wire.Message {
	st.mu.Lock()
	defer st.mu.Unlock()
	q := st.queues[m.Queue]
	switch {
	case q == nil:
		return refuse("NO_QUEUE")
	case q.key != "" && q.key != m.Key:
		return refuse("AUTH")
	}
	q.key = m.Key
	return &wire.Done{}
}

func (st *store) send(m *wire.Send) (answer wire.Message, to *wire.Conn, d *wire.Delivery) {
	st.mu.Lock()
	defer st.mu.Unlock()
	q := st.queues[m.Queue]
	switch {
	case q == nil:
		return refuse("NO_QUEUE"), nil, nil
	case q.key != "" && q.key != m.Key:
		return refuse("AUTH"), nil, nil
	}
	d = &wire.Delivery{Queue: m.Queue, ID: m.ID, Body: m.Body}
	if q.subscriber == nil {
		if len(q.held) >= q.limit {
			return refuse(forward.Quota), nil, nil
		}
		q.held = append(q.held, d)
	}
	return &wire.Done{}, q.subscriber, d
}

func (st *store) putLink(m *wire.PutLink) wire.Message {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.links[m.Link] = m.Data
	return &wire.Done{}
}

func (st *store) getLink(m *wire.GetLink) wire.Message {
	st.mu.Lock()
	defer st.mu.Unlock()
	data, ok := st.links[m.Link]
	if !ok {
		return refuse("NO_LINK")
	}
	return &wire.LinkData{Data: data}
}
