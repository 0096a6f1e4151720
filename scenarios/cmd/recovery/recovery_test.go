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
		{config{seeds: 1, only: "reply", dir: "docs/img"}, `-only "reply" and -dir "docs/img", -page ""`},
	} {
		require.ErrorContains(t, tc.c.check(), tc.says)
	}
	_, err := load(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestThePageGetsTheTables(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	const before, between, after = "# Head\n", "\nText\n", "\nFoot\n"
	const marked = before + "<!-- reply -->\nold\n<!-- end -->\n" + between + "<!-- join -->\n<!-- end -->\n" + after
	require.NoError(t, os.WriteFile(page, []byte(marked), 0o644))
	var out bytes.Buffer
	c := config{seeds: 2, first: 1, page: page}
	for range 2 { // a page that has its tables gets them anew
		out.Reset()
		require.NoError(t, c.run(t, &out, io.Discard))
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		reply, join, found := strings.Cut(out.String(), "\n\n")
		require.True(t, found)
		require.Equal(t, before+"<!-- reply -->\n"+reply+"\n<!-- end -->\n"+between+"<!-- join -->\n"+join+"<!-- end -->\n"+after, string(text))
	}
	require.NoError(t, os.WriteFile(page, []byte("no marks"), 0o644))
	require.ErrorContains(t, c.run(t, &out, io.Discard), "<!-- reply -->")
	require.NoError(t, os.WriteFile(page, []byte("<!-- reply -->\n<!-- end -->\n"), 0o644))
	require.ErrorContains(t, c.run(t, &out, io.Discard), "<!-- join -->")
}

func TestOnlyAPart(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, config{seeds: 2, first: 1, only: "reply, fixed"}.run(t, &out, io.Discard))
	require.Equal(t, 1, strings.Count(out.String(), "| 2 |"), "one row:\n%s", &out)
	require.Contains(t, out.String(), "| fixed | 2 | ")
	require.ErrorContains(t, config{seeds: 2, only: "nobody"}.run(t, &out, io.Discard), `-only "nobody"`)
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
