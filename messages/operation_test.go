package messages

import (
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

// embedding returns the names of the types of a file that embed a type.
func embedding(t *testing.T, file, embedded string) (names []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	require.NoError(t, err)
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		structure, ok := spec.Type.(*ast.StructType)
		if !ok {
			return false
		}
		for _, field := range structure.Fields.List {
			if name, ok := field.Type.(*ast.Ident); ok && field.Names == nil && name.Name == embedded {
				names = append(names, spec.Name.Name)
			}
		}
		return false
	})
	return names
}

func TestEveryOperationHasARow(t *testing.T) {
	var names []string
	for op := range Operations() {
		names = append(names, reflect.TypeOf(op).Elem().Name())
	}
	declared := append(embedding(t, "operation.go", "Header"), embedding(t, "custom.go", "Header")...)
	require.ElementsMatch(t, declared, names)
}

func TestOperationThatDoesNotSayWhetherItIsIdempotentIsNot(t *testing.T) {
	require.False(t, (&struct{ Header }{}).Idempotent())
}
