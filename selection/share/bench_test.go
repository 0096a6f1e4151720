package share_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/clock"
	"github.com/seed-5a7f77c4/deadair/selection/share"
)

// What is there already is the common case: every command asks for its
// connection and its session.
func BenchmarkGetStored(b *testing.B) {
	g := newGroup()
	ctx := context.Background()
	create := func(context.Context, share.Attempt) (string, error) { return "thing", nil }
	_, err := g.Get(ctx, "k", time.Minute, create)
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		if got, _ := g.Get(ctx, "k", time.Minute, create); got.How != share.Stored {
			b.Fatal(got.How)
		}
	}
}

// Making a thing arms a timer for its limit, so it costs what context.WithTimeout
// does.
func BenchmarkGetMade(b *testing.B) {
	g := share.NewGroup[string, string](share.For(0), clock.System)
	ctx := context.Background()
	create := func(context.Context, share.Attempt) (string, error) { return "thing", nil }
	b.ReportAllocs()
	for b.Loop() {
		got, _ := g.Get(ctx, "k", time.Minute, create)
		g.Remove("k", got.Attempt)
	}
}
