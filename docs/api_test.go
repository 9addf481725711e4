// Package docs_test checks the documents of the project.
package docs_test

import (
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// api is the list of the exported identifiers. -update brings it up to date: it keeps
// the reasons, adds a line for each new identifier, and removes the lines of the others.
const api = "api.md"

var update = flag.Bool("update", false, "bring docs/api.md up to date; the reasons of new identifiers are yours to write")

func TestEveryExportedIdentifierHasAReason(t *testing.T) {
	text, err := os.ReadFile(api)
	require.NoError(t, err)
	intro, _, _ := strings.Cut(string(text), "\n## ")
	reasons := listed(t, string(text))
	exported := exportedOf(t, "..")
	if *update {
		text = []byte(render(intro, exported, reasons))
		require.NoError(t, os.WriteFile(api, text, 0o644))
		reasons = listed(t, string(text))
	}
	var gone, missing, unexplained []string
	for id, reason := range reasons {
		if !exported[id] {
			gone = append(gone, id.String())
		} else if reason == "" {
			unexplained = append(unexplained, id.String())
		}
	}
	for id := range exported {
		if _, ok := reasons[id]; !ok {
			missing = append(missing, id.String())
		}
	}
	require.Empty(t, gone, "listed and not exported: run go test ./docs -update")
	require.Empty(t, missing, "exported and not listed: run go test ./docs -update")
	require.Empty(t, unexplained, "listed without a reason: write it behind the colon")
	if render(intro, exported, reasons) != string(text) {
		require.Fail(t, "the list is not sorted: run go test ./docs -update")
	}
}

// identifier is an exported identifier: its package, by the path inside the module, and
// its name, such as "Key" or "Key.Validate".
type identifier struct{ pkg, name string }

func (id identifier) String() string { return id.pkg + ": " + id.name }

var (
	section = regexp.MustCompile("^## ([a-z/]+)$")
	entry   = regexp.MustCompile("^- `([^`]+)`:(.*)$")
)

// listed returns the reasons in the list.
func listed(t *testing.T, text string) map[identifier]string {
	t.Helper()
	reasons, pkg := map[identifier]string{}, ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if found := section.FindStringSubmatch(line); found != nil {
			pkg = found[1]
		} else if found := entry.FindStringSubmatch(line); found != nil {
			id := identifier{pkg, found[1]}
			_, twice := reasons[id]
			require.False(t, twice, "%v is listed twice", id)
			reasons[id] = strings.TrimSpace(found[2])
		}
	}
	return reasons
}

// render returns the list: a section for each package, with its identifiers in order.
func render(intro string, exported map[identifier]bool, reasons map[identifier]string) string {
	var b strings.Builder
	b.WriteString(strings.TrimSpace(intro) + "\n")
	pkg := ""
	for _, id := range slices.SortedFunc(maps.Keys(exported), func(a, b identifier) int {
		return cmp.Or(cmp.Compare(a.pkg, b.pkg), cmp.Compare(a.name, b.name))
	}) {
		if id.pkg != pkg {
			pkg = id.pkg
			fmt.Fprintf(&b, "\n## %s\n\n", pkg)
		}
		b.WriteString(strings.TrimSpace(fmt.Sprintf("- `%s`: %s", id.name, reasons[id])) + "\n")
	}
	return b.String()
}

// exportedOf returns the exported identifiers of all public packages but examples under a folder,
// for all systems. The packages of tests/cluster are for its tests only.
func exportedOf(t *testing.T, root string) map[identifier]bool {
	t.Helper()
	exported := map[identifier]bool{}
	require.NoError(t, filepath.WalkDir(root, func(dir string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if name := d.Name(); dir != root && (strings.HasPrefix(name, ".") || name == "internal" || name == "examples" || name == "testdata" || name == "node_modules" || dir == filepath.Join(root, "tests", "cluster")) {
			return fs.SkipDir
		}
		path, err := filepath.Rel(root, dir)
		require.NoError(t, err)
		for _, name := range namesIn(t, dir) {
			exported[identifier{filepath.ToSlash(path), name}] = true
		}
		return nil
	}))
	return exported
}

// namesIn returns the exported names of the package in a folder, those of methods
// included. A program exports none.
func namesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	fset := token.NewFileSet()
	var files []*ast.File
	sources, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	for _, source := range sources {
		if !strings.HasSuffix(source, "_test.go") {
			file, err := parser.ParseFile(fset, source, nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			files = append(files, file)
		}
	}
	if len(files) == 0 || files[0].Name.Name == "main" {
		return nil
	}
	pkg, err := doc.NewFromFiles(fset, files, dir)
	require.NoError(t, err)
	values := func(groups ...[]*doc.Value) {
		for _, value := range slices.Concat(groups...) {
			names = append(names, value.Names...)
		}
	}
	functions := func(prefix string, all []*doc.Func) {
		for _, function := range all {
			names = append(names, prefix+function.Name)
		}
	}
	values(pkg.Consts, pkg.Vars)
	functions("", pkg.Funcs)
	for _, typ := range pkg.Types {
		names = append(names, typ.Name)
		values(typ.Consts, typ.Vars)
		functions("", typ.Funcs)
		functions(typ.Name+".", typ.Methods)
		for _, method := range methodsOf(typ) {
			names = append(names, typ.Name+"."+method)
		}
	}
	return slices.DeleteFunc(names, func(name string) bool {
		return !ast.IsExported(name[strings.LastIndexByte(name, '.')+1:])
	})
}

// methodsOf returns the methods that an interface declares itself.
func methodsOf(typ *doc.Type) (names []string) {
	for _, spec := range typ.Decl.Specs {
		face, ok := spec.(*ast.TypeSpec).Type.(*ast.InterfaceType)
		if !ok {
			continue
		}
		for _, method := range face.Methods.List {
			for _, name := range method.Names {
				names = append(names, name.Name)
			}
		}
	}
	return names
}
