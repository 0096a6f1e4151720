package scenarios

import (
	"bytes"
	"io"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// rules is a subject of two rules, one scenario each.
type rules struct{ a, b bool }

func set() []Scenario[*rules] {
	return []Scenario[*rules]{
		{ID: "A", Title: "rule a", Play: func(p *Play, r *rules) { time.Sleep(time.Second); require.True(p, r.a) }},
		{ID: "B", Title: "rule b", Play: func(p *Play, r *rules) {
			p.Figure("seed", p.Seed)
			p.Go("g", func() {
				gomega.NewGomega(func(m string, _ ...int) { p.Fatalf("%s", m) }).Expect(r.b).To(gomega.BeTrue())
			})
			time.Sleep(time.Minute)
		}},
	}
}

func mutants() []Mutant[*rules] {
	return []Mutant[*rules]{
		{Name: "no a", Apply: func(r *rules) *rules { return &rules{b: r.b} }, Kills: []string{"A"}},
		{Name: "no b", Apply: func(r *rules) *rules { return &rules{a: r.a} }, Kills: []string{"B"}},
	}
}

func TestRunKeepsFailures(t *testing.T) {
	for _, sc := range set() {
		assert.Empty(t, Run(t, sc, &rules{true, true}).Failures)
		o := Run(t, sc, &rules{}, Seed(7))
		require.Len(t, o.Failures, 1)
		assert.ErrorContains(t, o.Err(), sc.ID+", seed 0x7")
	}
	assert.False(t, t.Failed())
	assert.Contains(t, Run(t, set()[0], nil).Failures[0], "no subject")
	assert.Contains(t, Run(t, Scenario[int]{ID: "X"}, 1).Failures[0], "X has no Play")
	assert.Contains(t, Run(t, Scenario[int]{Play: func(*Play, int) {}}, 1).Failures[0], "no ID")
	over := Run(t, Scenario[int]{ID: "X", Budget: time.Minute, Play: func(*Play, int) { time.Sleep(time.Hour) }}, 1)
	require.NotEmpty(t, over.Failures)
	assert.Contains(t, over.Failures[0], "scenarios_test.go")
	assert.ErrorContains(t, ValidateSet(append(set(), set()[0])), "ID A")
}

func TestMatrix(t *testing.T) {
	var progress, table bytes.Buffer
	r, err := Matrix(t, set(), &rules{true, true}, mutants(), 2, &progress)
	require.NoError(t, err)
	require.NoError(t, r.Check())
	assert.Contains(t, progress.String(), "6 of 6")
	_, err = r.WriteTo(&table)
	require.NoError(t, err)
	assert.Equal(t, "      A B\nsound · ·\nno a  × ·\nno b  · ×\n", table.String())

	wrong := mutants()
	wrong[0].Kills = []string{"B"}
	r, err = Matrix(t, set(), &rules{true, true}, wrong, 1, nil)
	require.NoError(t, err)
	assert.ErrorContains(t, r.Check(), `"no a" survives B`)
	assert.ErrorContains(t, r.Check(), `"no a" is killed by a stranger: A`)
	r, err = Matrix(t, set(), &rules{a: true}, mutants(), 1, nil)
	require.NoError(t, err)
	assert.ErrorContains(t, r.Check(), "the sound subject fails B")

	_, err = Matrix(t, set(), nil, []Mutant[*rules]{{Name: "x", Kills: []string{"C"}}, {}}, 0, nil)
	for _, says := range []string{"without a subject", "0 seeds", `"x" has no Apply`, "C, which is not in the set", `name ""`} {
		assert.ErrorContains(t, err, says)
	}

	none := mutants()
	none[1].Apply = func(*rules) *rules { return nil }
	_, err = Matrix(t, set(), &rules{true, true}, none, 1, nil)
	assert.ErrorContains(t, err, `"no b" makes no subject`, "what does not run is not killed")
}

// A figure that no sample could hold fails its own story, not the file of a whole sweep.
func TestFigureThatIsNone(t *testing.T) {
	for _, figure := range []any{math.NaN(), func() {}} {
		odd := Scenario[int]{ID: "X", Play: func(p *Play, _ int) { p.Figure("odd", figure) }}
		samples, err := Sweep(t, odd, 1, SweepOptions{Count: 1})
		require.NoError(t, err)
		require.Len(t, samples[0].Failures, 1)
		assert.Contains(t, samples[0].Failures[0], `figure "odd"`)
		require.NoError(t, WriteSamples(io.Discard, samples))
	}
}

// The command that a sweep prints plays the seed that failed, and that one alone.
func TestSweepReplaysOneSeed(t *testing.T) {
	t.Setenv(SweepVariable, "0x2a")
	var played []uint64
	samples, err := Sweep(t, Scenario[int]{ID: "C", Play: func(p *Play, _ int) { played = append(played, p.Seed) }}, 1, SweepOptions{Count: 1000})
	require.NoError(t, err)
	require.Equal(t, []uint64{42}, played)
	require.Len(t, samples, 1)
	t.Setenv(SweepVariable, "banana")
	_, err = Sweep(t, Scenario[int]{ID: "C", Play: func(*Play, int) {}}, 1, SweepOptions{Count: 1})
	require.ErrorContains(t, err, `DEADAIR_SWEEP="banana" is not a seed`)
}

func TestSweepInShards(t *testing.T) {
	var shards [][]Sample
	var progress, file bytes.Buffer
	for i := range 3 {
		got, err := Sweep(t, set()[1], &rules{}, SweepOptions{First: 10, Count: 10, Shard: Shard{i, 3}, Progress: &progress})
		require.NoError(t, err)
		shards = append(shards, got)
	}
	assert.Contains(t, progress.String(), "DEADAIR_SWEEP=0xa go test -run '^TestSweepInShards$'")
	all, err := Merge(shards...)
	require.NoError(t, err)
	require.Len(t, all, 10)
	for i, s := range all {
		assert.EqualValues(t, 10+i, s.Seed)
		assert.NotEmpty(t, s.Failures)
		assert.Equal(t, s.Seed, s.Figures["seed"])
	}
	_, err = Merge(shards[0], all)
	assert.ErrorContains(t, err, "0xa twice")
	require.NoError(t, WriteSamples(&file, all))
	back, err := ReadSamples(&file)
	require.NoError(t, err)
	assert.Equal(t, all[3].Failures, back[3].Failures)
	_, err = ReadSamples(bytes.NewBufferString("{}"))
	assert.ErrorContains(t, err, "sample 1 names no scenario")
	_, err = ReadSamples(bytes.NewBufferString("x"))
	assert.ErrorContains(t, err, "sample 1")

	for _, o := range []SweepOptions{{}, {Count: 1, Shard: Shard{3, 3}}, {Count: 1, Shard: Shard{-1, 3}}} {
		_, err := Sweep(t, set()[0], &rules{}, o)
		assert.Error(t, err)
	}
}

func TestShardFromEnv(t *testing.T) {
	for _, v := range []string{"TEST_TOTAL_SHARDS", "TEST_SHARD_INDEX", "TEST_SHARD_STATUS_FILE", "JOB_COMPLETION_INDEX"} {
		t.Setenv(v, "")
	}
	s, err := ShardFromEnv(0)
	require.NoError(t, err)
	assert.Equal(t, Shard{}, s)
	t.Setenv("JOB_COMPLETION_INDEX", "4")
	s, err = ShardFromEnv(5)
	require.NoError(t, err)
	assert.Equal(t, Shard{4, 5}, s)
	for _, total := range []int{0, 4} {
		_, err = ShardFromEnv(total)
		assert.Error(t, err)
	}
	status := filepath.Join(t.TempDir(), "status")
	t.Setenv("TEST_SHARD_STATUS_FILE", status)
	t.Setenv("TEST_TOTAL_SHARDS", "3")
	t.Setenv("TEST_SHARD_INDEX", "2")
	s, err = ShardFromEnv(0)
	require.NoError(t, err)
	assert.Equal(t, Shard{2, 3}, s)
	_, err = os.Stat(status)
	require.NoError(t, err)
	t.Setenv("TEST_SHARD_INDEX", "two")
	_, err = ShardFromEnv(0)
	assert.ErrorContains(t, err, `TEST_SHARD_INDEX="two"`)
}

func TestDistribution(t *testing.T) {
	values := []int{5, 1, 3, 2, 4}
	assert.Equal(t, []int{1, 3, 5, 5, 1}, []int{Quantile(values, 0), Quantile(values, 0.5), Quantile(values, 1), Quantile(values, 2), Quantile(values, -1)})
	assert.Zero(t, Quantile([]int{}, 0.5))
	assert.InDelta(t, 0.4, Share(values, func(v int) bool { return v < 3 }), 1e-12)
	assert.Zero(t, Share([]int{}, func(int) bool { return true }))
	// Critical values of the χ² distribution at 5 % (NIST/SEMATECH e-Handbook, 1.3.6.7.4).
	for df, x := range map[int]float64{1: 3.841, 2: 5.991, 3: 7.815, 10: 18.307, 100: 124.342} {
		assert.InDelta(t, 0.05, upperGamma(float64(df)/2, x/2), 5e-5, "%d", df)
	}
	assert.InDelta(t, 0.9, upperGamma(5, 4.865/2), 5e-4)
	x, p, err := ChiSquare([]int{50, 50}, []float64{0.5, 0.5})
	require.NoError(t, err)
	assert.Zero(t, x)
	assert.InDelta(t, 1, p, 1e-12)
	x, p, err = ChiSquare([]int{60, 40}, []float64{0.5, 0.5})
	require.NoError(t, err)
	assert.InDelta(t, 4, x, 1e-9)
	assert.InDelta(t, 0.0455, p, 1e-4)
	for _, bad := range []struct {
		n []int
		p []float64
	}{{[]int{1}, []float64{1}}, {[]int{9, 9}, []float64{1}}, {[]int{9, 9}, []float64{0.5, 0.6}}, {[]int{1, 1}, []float64{0.5, 0.5}}, {[]int{-1, 50}, []float64{0.5, 0.5}}} {
		_, _, err := ChiSquare(bad.n, bad.p)
		assert.Error(t, err)
	}
}

func TestRepeat(t *testing.T) {
	require.NoError(t, Repeat(t, set()[1], &rules{true, true}, 3))
	assert.Error(t, Repeat(t, set()[1], &rules{true, true}, 1))
	n := 0
	parts := Scenario[int]{ID: "P", Play: func(p *Play, _ int) { n++; p.Logf("run %d", n); time.Sleep(time.Second) }}
	assert.ErrorContains(t, Repeat(t, parts, 1, 2), "run 2 of 2 parts from run 1")
}
