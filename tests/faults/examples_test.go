package faults_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A fault is a function or a method that returns a Fault, a method of Server that expires
// or stops something, or a trait of a process.
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
		case "Trait":
			for _, name := range typ.Consts[0].Names {
				shown(name, slices.DeleteFunc(slices.Clone(typ.Examples), func(e *doc.Example) bool { return e.Suffix != strings.ToLower(name) }))
			}
		case "Hooks", "Process":
			shown(typ.Name, typ.Examples)
		}
	}
	require.Greater(t, checked, 25)
}

func isFault(typ ast.Expr) bool {
	name, ok := typ.(*ast.Ident)
	return ok && name.Name == "Fault"
}
