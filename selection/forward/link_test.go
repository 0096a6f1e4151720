package forward

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// silence makes the network's servers answer nothing but the session.
func silence(r *rig) {
	r.net.forward = func(ctx context.Context, _ string, _ Session) error { return silent(ctx) }
	r.net.command = func(ctx context.Context, _ string) error { return silent(ctx) }
	r.net.ping = func(ctx context.Context, _ string) error { return silent(ctx) }
}

// try sends forwards that time out.
func (r *rig) try(t *testing.T, n int) {
	t.Helper()
	for range n {
		_, err := r.Do(t.Context(), request())
		require.Error(t, err)
	}
}

func TestASilentConnectionIsDroppedAt1200(t *testing.T) {
	inBubble(t, "a", silence, func(t *testing.T, r *rig) {
		r.try(t, 3)
		r.until(1200*time.Second - time.Nanosecond)
		assert.Empty(t, r.ended.get())
		r.until(1200 * time.Second)
		assert.Equal(t, []string{"a"}, r.ended.get())
		assert.Empty(t, r.proxy(), "its end forgets")
		assert.Equal(t, []string{"connect a", "session a", "forward a", "forward a", "forward a", "ping a", "close a"}, r.net.took())
	})
}

func TestTheSilenceOfAPingCounts(t *testing.T) {
	inBubble(t, "a", silence, func(t *testing.T, r *rig) {
		r.try(t, 2)
		r.until(1201 * time.Second)
		assert.Equal(t, []string{"a"}, r.ended.get())
	})
	inBubble(t, "a", func(r *rig) { silence(r); r.net.ping = nil }, func(t *testing.T, r *rig) {
		r.try(t, 2)
		r.until(3000 * time.Second)
		assert.Empty(t, r.ended.get(), "two time-outs and answered pings")
	})
}

func TestAPingThatFailsAtOnceIsNoTimeout(t *testing.T) {
	inBubble(t, "a", silence, func(t *testing.T, r *rig) {
		r.net.ping = func(context.Context, string) error { return &Error{Code: Unexpected} }
		r.try(t, 2)
		r.until(3000 * time.Second)
		assert.Empty(t, r.ended.get())
	})
}

func TestTimeoutsOfEveryKindCount(t *testing.T) {
	inBubble(t, "a", silence, func(t *testing.T, r *rig) {
		r.net.ping = nil
		own := request()
		own.Destination = server("a")
		for range 3 {
			_, err := r.Direct(t.Context(), own)
			require.EqualError(t, err, "BROKER TIMEOUT: context deadline exceeded")
		}
		assert.Equal(t, 90*time.Second, r.elapsed())
		r.until(1201 * time.Second)
		assert.Equal(t, []string{"a"}, r.ended.get())
	})
	inBubble(t, "a", silence, func(t *testing.T, r *rig) {
		r.net.ping = nil
		r.net.session = func(ctx context.Context, _ string) error { return silent(ctx) }
		for range 3 {
			r.try(t, 1)
			time.Sleep(PersistErrorInterval)
		}
		r.until(1201 * time.Second)
		assert.Equal(t, []string{"a"}, r.ended.get())
	})
}

func TestReportsAreNoTimeouts(t *testing.T) {
	inBubble(t, "a", silence, func(t *testing.T, r *rig) {
		r.net.ping = nil
		r.net.forward = func(context.Context, string, Session) error { return reported }
		r.try(t, 5)
		r.until(3000 * time.Second)
		assert.Empty(t, r.ended.get())
	})
}

func TestWhatIsReceivedStartsAfresh(t *testing.T) {
	inBubble(t, "a", silence, func(t *testing.T, r *rig) {
		r.net.ping = nil
		r.try(t, 3)
		r.until(500 * time.Second)
		r.net.links[0].watch.Received()
		r.until(3600 * time.Second)
		assert.Empty(t, r.ended.get())
		pings := 0
		for _, what := range r.net.took() {
			if what == "ping a" {
				pings++
			}
		}
		assert.Equal(t, 5, pings, "at 1100, 1700, … 3500")
	})
}

func TestNothingTicksAfterClose(t *testing.T) {
	inBubble(t, "a", silence, func(t *testing.T, r *rig) {
		r.try(t, 3)
		require.NoError(t, r.Close())
		r.net.took()
		r.until(5000 * time.Second)
		assert.Empty(t, r.net.took())
		assert.Empty(t, r.ended.get())
	})
}
