package main

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestApply(t *testing.T) {
	const source = "switch {\ncase a <= b && c:\n\tn += -1\n}\n"
	for _, tc := range []struct {
		m    mutant
		want string
	}{
		{mutant{Type: "CONDITIONALS_BOUNDARY", Line: 2, Column: 8}, "switch {\ncase a < b && c:\n\tn += -1\n}\n"},
		{mutant{Type: "CONDITIONALS_NEGATION", Line: 2, Column: 8}, "switch {\ncase a > b && c:\n\tn += -1\n}\n"},
		{mutant{Type: "INVERT_LOGICAL", Line: 2, Column: 13}, "switch {\ncase a <= b || c:\n\tn += -1\n}\n"},
		{mutant{Type: "INVERT_ASSIGNMENTS", Line: 3, Column: 4}, "switch {\ncase a <= b && c:\n\tn -= -1\n}\n"},
		{mutant{Type: "REMOVE_SELF_ASSIGNMENTS", Line: 3, Column: 4}, "switch {\ncase a <= b && c:\n\tn = -1\n}\n"},
		{mutant{Type: "INVERT_NEGATIVES", Line: 3, Column: 7}, "switch {\ncase a <= b && c:\n\tn += +1\n}\n"},
	} {
		got, err := tc.m.apply([]byte(source))
		require.NoError(t, err)
		assert.Equal(t, tc.want, string(got))
	}
	for _, m := range []mutant{{Type: "INVERT_LOGICAL", Line: 2, Column: 8}, {Type: "unheard-of", Line: 2, Column: 8}, {Type: "INVERT_LOGICAL", Line: 9, Column: 1}, {Line: 1, Column: 99}, {}} {
		_, err := m.apply([]byte(source))
		assert.ErrorContains(t, err, m.String())
	}
}

func TestScore(t *testing.T) {
	var s, total score
	for _, f := range []fate{killed, killed, killed, lived, invalid} {
		s.count(mutant{File: "a.go", Line: 1, Column: 2, Type: "X"}, f)
	}
	assert.InDelta(t, 75, s.percent(), 0.01)
	assert.Equal(t, "3 of 4 killed, 75.0 %", s.String())
	total.add(s)
	total.add(s)
	assert.Equal(t, "6 of 8 killed, 75.0 %", total.String())
	assert.Equal(t, 2, total.invalid)
	assert.EqualValues(t, 100, score{}.percent())
}

func TestFindsThePackages(t *testing.T) {
	t.Chdir("../../..")
	packages := find("selection")
	assert.Contains(t, packages, "selection/rank")
	assert.Contains(t, packages, "selection/failover")
	assert.NotContains(t, packages, "selection/cmd/mutate")
}

func TestOrderOfMutants(t *testing.T) {
	in := []mutant{{File: "b"}, {File: "a", Line: 2}, {File: "a", Line: 1, Column: 3}, {File: "a", Line: 1, Column: 2, Type: "Y"}, {File: "a", Line: 1, Column: 2, Type: "X"}}
	slices.SortFunc(in, mutant.compare)
	assert.Equal(t, "[a:1:2 X a:1:2 Y a:1:3  a:2:0  b:0:0 ]", fmt.Sprint(in))
}
