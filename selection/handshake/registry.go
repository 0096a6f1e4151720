package handshake

import (
	"fmt"
	"strings"
	"sync"

	"github.com/seed-5a7f77c4/deadair/selection/route"
)

// Token proves the ownership of a dial. Zero owns nothing.
type Token uint64

// Registry lets one dial to each machine be under way. Its zero value is ready; many goroutines may use it.
type Registry struct {
	// Trusting drops the check of tokens, as a registry did that orphaned tunnels: any release frees the key.
	Trusting bool

	mu    sync.Mutex
	last  Token
	owner map[string]Token
}

// MachineKey is host/last path segment of a relay's URL; the query is ignored.
func MachineKey(url string) string {
	_, rest, _ := strings.Cut(strings.TrimSpace(url), "://")
	rest, _, _ = strings.Cut(rest, "?")
	rest, _, _ = strings.Cut(rest, "#")
	host, path, _ := strings.Cut(strings.TrimRight(rest, "/"), "/")
	return strings.ToLower(host) + "/" + path[strings.LastIndexByte(path, '/')+1:]
}

// Acquire takes the key for a dial; while another dial has it, the error is route.ErrBusy, which blames no route.
func (r *Registry) Acquire(key string) (Token, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.owner[key] != 0 {
		return 0, fmt.Errorf("handshake.Registry %q: %w", key, route.ErrBusy)
	}
	if r.owner == nil {
		r.owner = make(map[string]Token)
	}
	r.last++
	r.owner[key] = r.last
	return r.last, nil
}

// Release gives the key back, if the token is its owner's. It reports whether it did.
func (r *Registry) Release(key string, t Token) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if held := r.owner[key]; held == 0 || held != t && !r.Trusting {
		return false
	}
	delete(r.owner, key)
	return true
}

// ReleaseAll frees every key, as a new attempt to connect does before it dials.
func (r *Registry) ReleaseAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.owner)
}
