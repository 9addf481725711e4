package docs_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// How much depends on Proto.Actor shows in protoactor.txt: the names of its packages that the library uses, tests left out.
// go test ./docs -update writes it.
func TestNamesOfProtoActorAreListed(t *testing.T) {
	const file = "protoactor.txt"
	names := map[string]bool{}
	for _, room := range []string{"actors", "cluster", "config", "internal", "mcpbridge", "messages", "resume", "supervisor", "toolset"} {
		require.NoError(t, filepath.WalkDir("../"+room, func(name string, _ fs.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") && !strings.Contains(name, "/examples/") {
				addNamesOfProtoActor(t, name, names)
			}
			return err
		}))
	}
	text := strings.Join(slices.Sorted(maps.Keys(names)), "\n") + "\n"
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), text, "go test ./docs -update")
	require.Contains(t, read(t, "../README.md"), fmt.Sprintf("[%d of its names](docs/protoactor.txt)", len(names)))
}

// addNamesOfProtoActor adds what a file uses.
func addNamesOfProtoActor(t *testing.T, name string, names map[string]bool) {
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
	require.NoError(t, err)
	imported := map[string]string{}
	for _, spec := range file.Imports {
		from, err := strconv.Unquote(spec.Path.Value)
		require.NoError(t, err)
		if from, is := strings.CutPrefix(from, "github.com/asynkron/protoactor-go/"); is {
			require.Nil(t, spec.Name, name)
			imported[path.Base(from)] = from
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if selector, is := n.(*ast.SelectorExpr); is {
			if of, is := selector.X.(*ast.Ident); is && imported[of.Name] != "" {
				names[imported[of.Name]+"."+selector.Sel.Name] = true
			}
		}
		return true
	})
}
