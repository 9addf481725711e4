package operations

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

// The operations are the types of package messages that embed a Header.
func TestEveryOperationHasARow(t *testing.T) {
	var names, declared []string
	for op := range All() {
		names = append(names, reflect.TypeOf(op).Elem().Name())
	}
	files, err := filepath.Glob("../../messages/*.go")
	require.NoError(t, err)
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, is := n.(*ast.TypeSpec); is && embedsHeader(spec.Type) {
				declared = append(declared, spec.Name.Name)
			}
			return true
		})
	}
	require.ElementsMatch(t, declared, names)
}

func embedsHeader(of ast.Expr) bool {
	s, is := of.(*ast.StructType)
	if !is {
		return false
	}
	for _, field := range s.Fields.List {
		if id, is := field.Type.(*ast.Ident); is && len(field.Names) == 0 && id.Name == "Header" {
			return true
		}
	}
	return false
}
