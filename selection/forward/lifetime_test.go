package forward

import (
	"context"
	"math/rand/v2"
	"net"
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

// A connection that is still being made belongs to the network that is left, too.
func TestReconnectAndCloseEndWhatIsBeingMade(t *testing.T) {
	for name, end := range map[string]func(*rig) error{
		"reconnect": func(r *rig) error { r.Reconnect(); return nil },
		"close":     func(r *rig) error { return r.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, "a", nil, func(t *testing.T, r *rig) {
				r.net.connect = func(ctx context.Context, _ string) error { return after(ctx, 10*time.Second, nil) }
				results := make(chan error, 2)
				for range 2 {
					go func() { _, err := r.Do(t.Context(), request()); results <- err }()
				}
				r.until(time.Second)
				require.NoError(t, end(r))
				for range 2 {
					require.EqualError(t, <-results, "BROKER NETWORK: the connection ended")
				}
				require.Equal(t, []string{"connect a", "close a"}, r.net.took())
				require.Empty(t, r.ended.get(), "the client's own close is no end to be told")
				require.Zero(t, r.Choices())
			})
		})
	}
}

func TestAClosedClientConnectsNoMore(t *testing.T) {
	inBubble(t, "a", nil, func(t *testing.T, r *rig) {
		require.NoError(t, r.Close())
		_, err := r.Do(t.Context(), request())
		require.ErrorIs(t, err, net.ErrClosed)
		_, err = r.Direct(t.Context(), request())
		require.ErrorIs(t, err, net.ErrClosed)
		require.Empty(t, r.net.took())
		require.Zero(t, r.Choices())
	})
}
