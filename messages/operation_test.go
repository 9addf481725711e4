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

// A new operation has to be entered here: it is replayed without the caller's permission
// only when running it twice does no harm.
func TestOperationsSayThemselvesWhetherTheyAreIdempotent(t *testing.T) {
	var names []string
	for op, idempotent := range map[Operation]bool{
		&CallTool{}: false, // the server's annotations of the tool tell

		&ListTools{}: true, &ListResources{}: true, &ListResourceTemplates{}: true, &ReadResource{}: true,
		&ListPrompts{}: true, &GetPrompt{}: true, &Complete{}: true, &Ping{}: true,
		&Subscribe{}: true, &Unsubscribe{}: true, &SetLogLevel{}: true, &SetRoots{}: true, &Open{}: true,
	} {
		require.Equal(t, idempotent, op.Idempotent(), "%T", op)
		names = append(names, reflect.TypeOf(op).Elem().Name())
	}
	require.ElementsMatch(t, embedding(t, "operation.go", "Header"), names, "the operations of operation.go")
}

func TestOperationThatDoesNotSayWhetherItIsIdempotentIsNot(t *testing.T) {
	require.False(t, (&struct{ Header }{}).Idempotent())
}
