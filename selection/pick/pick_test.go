package pick_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-5a7f77c4/deadair/selection/pick"
)

// server reads "name operator hosts role": role is p (enabled with the proxy role), e (enabled only) or d (disabled, with the role).
func server(s string) pick.Server {
	f := strings.Fields(s)
	op := f[1]
	if op == "-" {
		op = ""
	}
	return pick.Server{Name: f[0], Operator: op, Hosts: strings.Split(f[2], ","), Enabled: f[3] != "d", Proxy: f[3] != "e"}
}

func names(servers []pick.Server) string {
	var out []string
	for _, s := range servers {
		out = append(out, s.Name)
	}
	return strings.Join(out, " ")
}

func TestCandidates(t *testing.T) {
	tests := []struct {
		name, destination string
		servers           []string
		want              string
	}{
		{"nobody", "r x r p", nil, ""},
		{"all alike", "r x r p", []string{"a y a p", "b z b p"}, "a b"},
		{"only those with the role", "r x r p", []string{"a y a e", "b z b p", "c z c d"}, "b"},
		{"none with the role: all", "r x r p", []string{"a y a e", "b z b d"}, "a b"},
		{"another operator", "r x r p", []string{"a x a p", "b z b p"}, "b"},
		{"no operator is an operator", "r - r p", []string{"a - a p", "b z b p"}, "b"},
		{"only the destination's operator: all", "r x r p", []string{"a x a p", "b x b p"}, "a b"},
		{"another host", "r x r,s p", []string{"a y s p", "b y b p"}, "b"},
		{"host after operator", "r x r p", []string{"a y r p", "b x b p"}, "a"},
		{"only shared hosts: the set of the operator step", "r x r p", []string{"a y r p", "b x b p", "c z r,c p"}, "a c"},
		{"role before operator", "r x r p", []string{"a x a p", "b y b e"}, "a"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var servers []pick.Server
			for _, s := range test.servers {
				servers = append(servers, server(s))
			}
			assert.Equal(t, test.want, names(pick.Candidates(servers, server(test.destination), pick.Default...)))
		})
	}
}

// The buffer keeps what it has, and the servers stay as they are.
func TestAppendCandidates(t *testing.T) {
	servers := []pick.Server{server("a x a p"), server("b y b p"), server("c z c p")}
	before := append([]pick.Server(nil), servers...)
	buffer := append(make([]pick.Server, 0, 8), server("kept y k p"))
	got := pick.AppendCandidates(buffer, servers, server("r x r p"), pick.Default...)
	assert.Equal(t, "kept b c", names(got))
	assert.Equal(t, before, servers)
	got = pick.AppendCandidates(got[:0], servers[:1], server("r x r p"), pick.Default...)
	assert.Equal(t, "a", names(got))
	destination := server("r x r p")
	assert.Zero(t, testing.AllocsPerRun(10, func() { got = pick.AppendCandidates(got[:0], servers, destination, pick.Default...) }),
		"a buffer that is large enough is all that it needs")
}

func TestNotLeavesOutWhileAnotherIsThere(t *testing.T) {
	a, b, r := server("a y a p"), server("b y b p"), server("r x r p")
	assert.Equal(t, "b", names(pick.Candidates([]pick.Server{a, b}, r, append(pick.Default, pick.Not("a"))...)))
	assert.Equal(t, "a", names(pick.Candidates([]pick.Server{a}, r, append(pick.Default, pick.Not("a"))...)))
}

func TestOne(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	_, ok := pick.One(rng, nil)
	require.False(t, ok)

	before := *rand.NewPCG(7, 7)
	source := before
	only, ok := pick.One(rand.New(&source), []pick.Server{{Name: "a"}})
	require.True(t, ok)
	assert.Equal(t, "a", only.Name)
	assert.Equal(t, before, source, "a single candidate costs a draw")

	counts := map[string]int{}
	candidates := []pick.Server{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}}
	for range 40000 {
		s, _ := pick.One(rng, candidates)
		counts[s.Name]++
	}
	chi := 0.0
	for _, c := range candidates {
		d := float64(counts[c.Name]) - 10000
		chi += d * d / 10000
	}
	assert.Less(t, chi, 16.27, "not uniform at the 0.1 %% level (3 degrees of freedom): %v", counts)
}

func TestCascadeKeepsOrderAndNeverEmpties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		gen := rapid.Custom(func(t *rapid.T) pick.Server {
			return pick.Server{
				Name:     rapid.StringMatching(`[a-z]{3}`).Draw(t, "name"),
				Hosts:    rapid.SliceOfN(rapid.SampledFrom([]string{"h1", "h2", "h3", "h4"}), 0, 2).Draw(t, "hosts"),
				Operator: rapid.SampledFrom([]string{"", "x", "y"}).Draw(t, "operator"),
				Enabled:  rapid.Bool().Draw(t, "enabled"),
				Proxy:    rapid.Bool().Draw(t, "proxy"),
			}
		})
		servers := rapid.SliceOfN(gen, 1, 8).Draw(t, "servers")
		destination := gen.Draw(t, "destination")
		got := pick.Candidates(servers, destination, pick.Default...)
		if len(got) == 0 {
			t.Fatal("no candidate left")
		}
		i := 0
		for _, s := range servers {
			if i < len(got) && fmt.Sprint(got[i]) == fmt.Sprint(s) {
				i++
			}
		}
		if i != len(got) {
			t.Fatalf("%v is no subsequence of %v", got, servers)
		}
	})
}
