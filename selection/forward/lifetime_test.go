package forward

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/selection/choice"
	"github.com/seed-5a7f77c4/deadair/selection/pick"
)

// Forgetting by hand leaves the connection, its session and what is on its way; the late report is the old choice's.
func TestForgetLeavesTheConnectionAlone(t *testing.T) {
	inBubble(t, "a", nil, func(t *testing.T, r *rig) {
		require.False(t, r.Forget(key))
		_, err := r.Do(t.Context(), request())
		require.NoError(t, err)
		r.net.took()
		r.net.forward = func(ctx context.Context, _ string, _ Session) error { return after(ctx, 10*time.Second, reported) }
		late := make(chan error, 1)
		go func() { _, err := r.Do(t.Context(), request()); late <- err }()
		r.until(time.Second)
		require.True(t, r.Forget(key))
		require.Empty(t, r.proxy())
		r.net.forward = nil
		_, err = r.Do(t.Context(), request())
		require.NoError(t, err)
		require.Equal(t, []string{"forward a", "forward a"}, r.net.took(), "over the same connection and session")
		require.ErrorIs(t, <-late, error(reported))
		e, _ := r.Choice(key)
		require.False(t, e.Streak.Running())
		require.Empty(t, r.changes.get())
	})
}

func TestAClientBeginsWithTheTableItIsGiven(t *testing.T) {
	table := choice.NewTable[Key, string](choice.Default())
	table.Choose(key, "b")
	inBubble(t, "ab", nil, func(t *testing.T, r *rig) {
		require.Zero(t, r.Choices(), "a new client has no choice")
		given, err := New(Options{Connector: r.net, Config: func(string) Config { return r.config }, Rand: rand.New(rand.NewPCG(1, 1)), Choices: table})
		require.NoError(t, err)
		res, err := given.Do(t.Context(), request())
		require.NoError(t, err)
		require.Equal(t, "b", res.Proxy)
		require.NoError(t, given.Close())
		require.Zero(t, table.Len())
	})
}

func TestReconnectForgetsAndCloses(t *testing.T) {
	inBubble(t, "a", nil, func(t *testing.T, r *rig) {
		_, err := r.Do(t.Context(), request())
		require.NoError(t, err)
		r.net.took()
		r.Reconnect()
		assert.Zero(t, r.Choices())
		assert.Equal(t, []string{"close a"}, r.net.took())
		assert.Empty(t, r.ended.get(), "the client's own close is no end to be told")
		r.net.end("a") // late, of a connection that is closed
		assert.Empty(t, r.ended.get())
	})
}

func TestAChoiceSurvivesTheRemovalOfItsServer(t *testing.T) {
	inBubble(t, "a", nil, func(t *testing.T, r *rig) {
		_, err := r.Do(t.Context(), request())
		require.NoError(t, err)
		r.config.Servers = []pick.Server{server("b")}
		res, err := r.Do(t.Context(), request())
		require.NoError(t, err)
		assert.Equal(t, "a", res.Proxy, "a changed server list does not clear a choice")
	})
}
