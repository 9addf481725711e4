package faults_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// A fault is a function or a method that returns a Fault, or a method of Server that
// expires or stops something.
func TestEveryFaultHasAnExampleWithOutput(t *testing.T) {
	fset := token.NewFileSet()
	var files []*ast.File
	sources, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, source := range sources {
		file, err := parser.ParseFile(fset, source, nil, parser.ParseComments)
		require.NoError(t, err)
		files = append(files, file)
	}
	pkg, err := doc.NewFromFiles(fset, files, "faults")
	require.NoError(t, err)
	checked := 0
	shown := func(name string, examples []*doc.Example) {
		t.Helper()
		require.NotEmpty(t, examples, "%s has no example", name)
		for _, example := range examples {
			require.NotEmpty(t, example.Output, "the example of %s has no output", name)
		}
		checked++
	}
	for _, typ := range pkg.Types {
		switch typ.Name {
		case "Fault": // its functions are those that return one
			for _, function := range typ.Funcs {
				shown(function.Name, function.Examples)
			}
		case "Server":
			for _, method := range typ.Methods {
				results := method.Decl.Type.Results
				if results != nil && len(results.List) == 1 && isFault(results.List[0].Type) ||
					slices.Contains([]string{"Expire", "ExpireSome", "Restart", "Stop"}, method.Name) {
					shown("Server."+method.Name, method.Examples)
				}
			}
		case "Hooks":
			shown(typ.Name, typ.Examples)
		}
	}
	require.Greater(t, checked, 15)
}

func isFault(typ ast.Expr) bool {
	name, ok := typ.(*ast.Ident)
	return ok && name.Name == "Fault"
}
