package conditions_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/scenarios/conditions"
)

// The page shows the catalogue as it is: run go generate if this fails.
func TestThePageIsUpToDate(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "production.md"))
	require.NoError(t, err)
	assert.Equal(t, conditions.Markdown(), string(page))
}

// functions gives the functions of a folder, as folder: name, with their comments.
func functions(t *testing.T, dir, prefix string) map[string]string {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	comments := map[string]string{}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		require.NoError(t, err)
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
				comments[prefix+f.Name.Name] = f.Doc.Text()
			}
		}
	}
	return comments
}

// Every entry names a function that exists, its line calls it, and the comments
// of the function and of the test that shows it name the report. Every line is
// one that the compiler has read.
func TestEntriesAndFunctionsNameEachOther(t *testing.T) {
	here := functions(t, ".", "")
	there := functions(t, filepath.Join("..", "..", "netsim", "programs"), "netsim/programs: ")
	_ = lines
	compiled, err := os.ReadFile("lines_test.go")
	require.NoError(t, err)
	listed := map[string]bool{}
	for _, e := range conditions.All() {
		listed[e.Function] = true
		assert.Contains(t, here[e.Function], e.Report, e.Function)
		assert.Contains(t, e.Line, "conditions."+e.Function+"(")
		assert.Contains(t, string(compiled), "\n\t"+e.Line+"\n")
		assert.Contains(t, here[e.Test]+there[e.Test], e.Report, e.Test)
		assert.NotContains(t, e.Symptom+e.Line+e.Meets, "|", "it is a cell of a table")
		assert.NotEmpty(t, e.Labels, e.Report)
	}
	for name, comment := range here {
		if strings.Contains(comment, "Report") && ast.IsExported(name) && !strings.HasPrefix(name, "Test") {
			assert.True(t, listed[name], "%s is in no entry", name)
		}
	}
}
