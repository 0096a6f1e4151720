package retry

import (
	"time"

	"github.com/seed-5a7f77c4/deadair/selection/breaker"
)

// grant is a permit together with the breaker that gave it. The zero grant, and
// one that was released, reports to nobody.
type grant struct {
	breaker *breaker.Breaker
	permit  breaker.Permit
}

// acquire takes a permit; a breaker that does not exist (nil) always lets pass.
func acquire(b *breaker.Breaker, now time.Time) (grant, bool) {
	if b == nil {
		return grant{}, true
	}
	permit, ok := b.Acquire(now)
	if !ok {
		return grant{}, false
	}
	return grant{breaker: b, permit: permit}, true
}

// report passes a result on, unless it proves nothing.
func (g *grant) report(r breaker.Result, now time.Time) {
	if g.breaker != nil && r != breaker.Abandoned {
		g.breaker.Done(&g.permit, r, now)
	}
}

// release ends the grant.
func (g *grant) release(now time.Time) {
	if g.breaker != nil {
		g.breaker.Done(&g.permit, breaker.Abandoned, now)
		g.breaker = nil
	}
}
