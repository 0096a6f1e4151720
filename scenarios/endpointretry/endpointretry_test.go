package endpointretry_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/scenarios"
	"github.com/seed-5a7f77c4/deadair/scenarios/endpointretry"
)

func TestStories(t *testing.T) {
	stories := endpointretry.Stories()
	require.Len(t, stories, 25)
	for name, subject := range map[string]endpointretry.Subject{
		"HTTP1": endpointretry.Ours(),
		"HTTP2": endpointretry.Ours().OverHTTP2(),
	} {
		for _, story := range stories {
			t.Run(name+"/"+story.ID, func(t *testing.T) {
				first := scenarios.Run(t, story, subject, scenarios.Seed(1))
				first.Require(t)
				if subject.HTTP2 {
					return // a stream's goroutines race for the connection within one instant
				}
				again := scenarios.Run(t, story, subject, scenarios.Seed(1))
				assert.Equal(t, first.Hash, again.Hash, "the same seed, another trace")
			})
		}
	}
}

func TestMutants(t *testing.T) {
	matrix, err := scenarios.Matrix(t, endpointretry.Stories(), endpointretry.Ours(), endpointretry.Mutants(), 1, nil)
	require.NoError(t, err)
	if err := matrix.Check(); err != nil {
		matrix.WriteTo(os.Stderr)
		t.Fatal(err)
	}
}

// BenchmarkStory is one story, world and all.
func BenchmarkStory(b *testing.B) {
	for _, story := range endpointretry.Stories() {
		b.Run(story.ID, func(b *testing.B) {
			for b.Loop() {
				testing.RunTests(func(_, _ string) (bool, error) { return true, nil }, []testing.InternalTest{{Name: story.ID, F: func(t *testing.T) {
					scenarios.Run(t, story, endpointretry.Ours()).Require(t)
				}}})
			}
		})
	}
}
