package main

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// mutant is one change of one operator. Line and Column count from 1, in bytes.
type mutant struct {
	File   string `json:"-"`
	Type   string `json:"type"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
}

// compare orders mutants by their place.
func (m mutant) compare(n mutant) int {
	return cmp.Or(cmp.Compare(m.File, n.File), cmp.Compare(m.Line, n.Line), cmp.Compare(m.Column, n.Column), cmp.Compare(m.Type, n.Type))
}

func (m mutant) String() string { return fmt.Sprintf("%s:%d:%d %s", m.File, m.Line, m.Column, m.Type) }

// changes is what each type of mutant makes of which operator. Of two operators that begin alike the longer comes first.
var changes = map[string][][2]string{
	"ARITHMETIC_BASE":         {{"+", "-"}, {"-", "+"}, {"*", "/"}, {"/", "*"}, {"%", "*"}},
	"CONDITIONALS_BOUNDARY":   {{"<=", "<"}, {">=", ">"}, {"<", "<="}, {">", ">="}},
	"CONDITIONALS_NEGATION":   {{"==", "!="}, {"!=", "=="}, {"<=", ">"}, {">=", "<"}, {"<", ">="}, {">", "<="}},
	"INCREMENT_DECREMENT":     {{"++", "--"}, {"--", "++"}},
	"INVERT_ASSIGNMENTS":      {{"+=", "-="}, {"-=", "+="}, {"*=", "/="}, {"/=", "*="}},
	"INVERT_LOGICAL":          {{"&&", "||"}, {"||", "&&"}},
	"INVERT_LOOPCTRL":         {{"break", "continue"}, {"continue", "break"}},
	"INVERT_NEGATIVES":        {{"-", "+"}},
	"REMOVE_SELF_ASSIGNMENTS": {{"+=", "="}, {"-=", "="}, {"*=", "="}, {"/=", "="}, {"%=", "="}, {"&^=", "="}, {"&=", "="}, {"|=", "="}, {"^=", "="}, {"<<=", "="}, {">>=", "="}},
}

// apply gives the source with the mutant in it. The error says what stands at its place instead of the operator.
func (m mutant) apply(source []byte) ([]byte, error) {
	lines := bytes.SplitAfter(source, []byte("\n"))
	if m.Line < 1 || m.Line > len(lines) || m.Column < 1 || m.Column > len(lines[m.Line-1]) {
		return nil, fmt.Errorf("mutant %v: no such place", m)
	}
	at := m.Column - 1
	for _, l := range lines[:m.Line-1] {
		at += len(l)
	}
	rest := string(source[at:])
	i := slices.IndexFunc(changes[m.Type], func(c [2]string) bool { return strings.HasPrefix(rest, c[0]) })
	if i < 0 {
		return nil, fmt.Errorf("mutant %v: stands at %.10q", m, rest)
	}
	c := changes[m.Type][i]
	return slices.Concat(source[:at], []byte(c[1]), source[at+len(c[0]):]), nil
}
