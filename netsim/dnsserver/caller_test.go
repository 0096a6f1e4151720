package dnsserver

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestCallerOfSeesThroughTheTimeoutOfNet(t *testing.T) {
	for name, caller := range map[string]context.Context{
		"no end":     context.Background(),
		"a value":    context.WithValue(t.Context(), t, t),
		"a deadline": deadline(t, time.Hour),
		"earlier":    deadline(t, time.Second),
	} {
		wrapped, cancel := context.WithDeadline(caller, time.Now().Add(5*time.Second))
		assert.Equal(t, caller, callerOf(wrapped), name)
		cancel()
	}
	ended := deadline(t, -time.Second)
	assert.ErrorIs(t, over(ended), context.DeadlineExceeded)
	assert.NoError(t, over(deadline(t, time.Hour)))
	_, ends := callerOf(context.TODO()).Deadline()
	assert.False(t, ends, "what wraps nothing is taken to have no end")
}

func deadline(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}
