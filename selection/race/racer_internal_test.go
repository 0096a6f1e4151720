package race

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/selection/route"
)

type closer struct{ closed int }

func (c *closer) Close() error { c.closed++; return nil }

// A race that has its winner, and is superseded before it can hand it over, has none: the lock is held from the hello on
// until the race has run, which is when the attempt's ctx ends, and given back when another race owns the racer.
func TestSupersededAfterTheWin(t *testing.T) {
	var (
		r    *Racer[*closer]
		conn closer
	)
	attempts := make(chan context.Context, 1)
	r = New(func(ctx context.Context, _ route.Candidate, _ func()) (*closer, error) {
		r.mu.Lock()
		attempts <- ctx
		return &conn, nil
	}, DefaultPolicy())
	go func() {
		<-(<-attempts).Done()
		r.cancel(route.ErrSuperseded)
		r.owner.Begin()
		r.mu.Unlock()
	}()
	out, err := r.Race(t.Context(), Build(Input{Candidates: []route.Candidate{{Address: "10.0.0.1", Port: 9000}}}, DefaultPolicy()))
	assert.ErrorIs(t, err, route.ErrSuperseded)
	assert.Equal(t, Result{Winner: -1, Err: route.ErrSuperseded}, out.Result)
	assert.Equal(t, 1, conn.closed)
	assert.Zero(t, out.Slot)
	assert.Nil(t, out.Conn, "what is closed is not handed out")
	require.NoError(t, r.Close())
}
