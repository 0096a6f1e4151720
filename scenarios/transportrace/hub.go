package transportrace

import (
	"slices"
	"sync"
)

// hub tells its listeners what is new, in the order in which they came.
type hub[T any] struct {
	mu        sync.Mutex
	listeners []*func(T)
}

func (h *hub[T]) add(f func(T)) (remove func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.listeners = append(h.listeners, &f)
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.listeners = slices.DeleteFunc(h.listeners, func(l *func(T)) bool { return l == &f })
	}
}

func (h *hub[T]) tell(news T) {
	h.mu.Lock()
	listeners := slices.Clone(h.listeners)
	h.mu.Unlock()
	for _, f := range listeners {
		(*f)(news)
	}
}
