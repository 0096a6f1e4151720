package conditions

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
)

// An Entry of the catalogue is a public report and the line that makes its
// condition.
type Entry struct {
	Report   string   // as GitHub links it: "golang/go#30702"
	Symptom  string   // what a program in production sees
	Function string   // of this package
	Line     string   // what to write in a test
	Meets    string   // what a real Go client makes of it, in figures
	Test     string   // which shows that, in this package unless a folder is named
	Labels   []string // what the condition is about: "flow", "dns", "mobile", …
}

// A Group of entries has its section in docs/production.md.
type Group struct {
	Title   string
	Entries []Entry
}

// All lists the catalogue in the order of docs/production.md.
func All() []Entry {
	var all []Entry
	for _, g := range Groups() {
		all = append(all, g.Entries...)
	}
	return all
}

// What the page shows are tests of this package, so that it compiles and passes.
var (
	//go:embed page_test.go
	pageTest string
	//go:embed names_test.go
	namesTest string
)

// Markdown is docs/production.md.
func Markdown() string {
	var b strings.Builder
	b.WriteString(`# What you see in production → what to write here

1. Find what you see in the tables below, or by a word:
`)
	words, rows := labels()
	for _, w := range words {
		fmt.Fprintf(&b, "   **%s** %s", w, rows[w])
		if w != words[len(words)-1] {
			b.WriteString(" ·")
		}
		b.WriteByte('\n')
	}
	b.WriteString(`2. Copy [the test at the end of this page](#a-whole-test) into a file of your own. It passes as it stands: HTTP/2 over a
   connection that has gone silent. Put your server and your client in it.
3. Replace the line of the condition by the one from the table. [What the names in the lines are](#the-names-in-the-lines).
4. Say what must come of it. The column "what Go makes of it" is what the tests named beside it show of the standard library or
   the module's own client, with Go 1.26.

A fault of the network that never bites fails the test, so a wrong flow name or port is found at once; of a relay ask relay.Missed(). Times are virtual: a quarter of an
hour takes milliseconds. What a function does exactly, and what its numbers mean: ` + "`go doc github.com/seed-5a7f77c4/deadair/scenarios/conditions`" + `.

This page is made from the catalogue by go generate in scenarios/conditions.
`)
	row := 0
	for _, g := range Groups() {
		fmt.Fprintf(&b, "\n## %s\n\n| | what you see | write | what Go makes of it | report, test |\n|---|---|---|---|---|\n", g.Title)
		for _, e := range g.Entries {
			row++
			owner, number, _ := strings.Cut(e.Report, "#")
			fmt.Fprintf(&b, "| %d | %s | `%s` | %s | [%s](https://github.com/%s/issues/%s) %s |\n",
				row, e.Symptom, e.Line, e.Meets, e.Report, owner, number, e.Test)
		}
	}
	b.WriteString("\n## The names in the lines\n\n```go\n" + setting() + "```\n")
	b.WriteString("\n## A whole test\n\n```go\n" + strings.Replace(pageTest, "package conditions_test", "package yours_test", 1) + "```\n")
	return b.String()
}

// labels gives the words of the index in order, and the rows of each.
func labels() (words []string, rows map[string]string) {
	rows = map[string]string{}
	for i, e := range All() {
		for _, w := range e.Labels {
			if rows[w] == "" {
				words = append(words, w)
				rows[w] = fmt.Sprint(i + 1)
			} else {
				rows[w] += fmt.Sprintf(", %d", i+1)
			}
		}
	}
	slices.Sort(words)
	return words, rows
}

// setting gives what the names in the lines are: the body of the test that sets
// them up, without what it asserts in the end.
func setting() string {
	_, body, _ := strings.Cut(namesTest, "n *netsim.Network) {\n")
	body, _, _ = strings.Cut(body, "\n\t\trequire.Equal(")
	return strings.ReplaceAll("\n"+body, "\n\t\t", "\n")[1:]
}
