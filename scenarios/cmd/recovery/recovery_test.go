package main

import (
	"bytes"
	"encoding/xml"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/scenarios/privaterouting"
)

func TestShareAndQuantile(t *testing.T) {
	r := result{trials: 4, after: []float64{62, 62, 126}}
	for _, tc := range []struct{ at, want float64 }{{61, 0}, {62, 0.5}, {125, 0.5}, {126, 0.75}, {600, 0.75}} {
		require.Equal(t, tc.want, r.share(r.after, tc.at), "at %v", tc.at)
	}
	require.Equal(t, 62.0, r.quantile(r.after, 0.5))
	require.Equal(t, 126.0, r.quantile(r.after, 0.75))
	require.True(t, math.IsNaN(r.quantile(r.after, 0.95)), "one of four never did")
	require.Zero(t, result{}.share(nil, 10))
}

func TestBadArguments(t *testing.T) {
	for _, tc := range []struct {
		c    config
		says string
	}{
		{config{seeds: 0}, "-seeds 0"},
		{config{seeds: 1, merge: true}, "-merge names no files"},
		{config{seeds: 1, files: []string{"x"}}, `what is "x"`},
	} {
		require.ErrorContains(t, tc.c.check(), tc.says)
	}
	_, err := load(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// Two shards merged are the whole, to the letter, and the plots are XML.
func TestShardsMerge(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	run := func(c config) string {
		var out bytes.Buffer
		require.NoError(t, c.run(t, &out, io.Discard))
		return out.String()
	}
	whole := run(config{seeds: 6, first: 1})
	t.Setenv("TEST_TOTAL_SHARDS", "2")
	for i, index := range []string{"0", "1"} {
		t.Setenv("TEST_SHARD_INDEX", index)
		run(config{seeds: 6, first: 1, samples: file([]string{"a", "b"}[i])})
	}
	require.Equal(t, whole, run(config{merge: true, seeds: 1, files: []string{file("a"), file("b")}, dir: dir}))
	require.Contains(t, whole, "| fixed | 6 |")
	for _, name := range []string{"recovery-reply.svg", "recovery-join.svg"} {
		text, err := os.ReadFile(file(name))
		require.NoError(t, err)
		for d := xml.NewDecoder(bytes.NewReader(text)); ; {
			if _, err := d.Token(); err == io.EOF {
				break
			} else {
				require.NoError(t, err)
			}
		}
		for _, l := range privaterouting.Lines() {
			require.True(t, strings.Contains(string(text), ">"+l.Name+"<"), "%s is in %s", l.Name, name)
		}
	}
}
