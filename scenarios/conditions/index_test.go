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

// Every entry names a function that exists, its line calls it, and the
// function's comment names the report.
func TestEntriesAndFunctionsNameEachOther(t *testing.T) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	comments := map[string]string{}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		require.NoError(t, err)
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
				comments[f.Name.Name] = f.Doc.Text()
			}
		}
	}
	listed := map[string]bool{}
	for _, e := range conditions.All() {
		listed[e.Function] = true
		assert.Contains(t, comments[e.Function], e.Report, e.Function)
		assert.Contains(t, e.Line, "conditions."+e.Function+"(")
		assert.NotEmpty(t, e.Labels, e.Report)
	}
	for name, comment := range comments {
		if strings.Contains(comment, "Report") && ast.IsExported(name) {
			assert.True(t, listed[name], "%s is in no entry", name)
		}
	}
}
