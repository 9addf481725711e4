package internal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// No two files of a package of the bridge need each other: if a file uses what another one
// defines, directly or through further files, the other one uses nothing of the first.
func TestFilesOfTheBridgeNeedEachOtherOneWay(t *testing.T) {
	for _, pkg := range list(t, "./bridge/...", "../mcpbridge/...") {
		if pkg.Standard || pkg.DepOnly {
			continue
		}
		t.Run(pkg.ImportPath, func(t *testing.T) {
			uses := usesBetweenFiles(t, pkg)
			for from := range uses {
				path := pathTo(from, from, uses, map[string]bool{})
				require.Empty(t, path, "%s: a file needs itself through others: %v", pkg.ImportPath, path)
			}
		})
	}
}

// pathTo returns a way from a file to another by what each uses, or nil.
func pathTo(to, from string, uses map[string]map[string]string, seen map[string]bool) []string {
	for next, name := range uses[from] {
		step := fmt.Sprintf("%s uses %s of %s", from, name, next)
		if next == to {
			return []string{step}
		}
		if !seen[next] {
			seen[next] = true
			if rest := pathTo(to, next, uses, seen); rest != nil {
				return append([]string{step}, rest...)
			}
		}
	}
	return nil
}

// usesBetweenFiles returns, for each file, which other files of its package define something that
// it uses, with one name each. Methods and fields count.
func usesBetweenFiles(t *testing.T, pkg listed) map[string]map[string]string {
	fset, info := token.NewFileSet(), &types.Info{Uses: map[*ast.Ident]types.Object{}}
	var files []*ast.File
	for _, name := range pkg.GoFiles {
		file, err := parser.ParseFile(fset, filepath.Join(pkg.Dir, name), nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		files = append(files, file)
	}
	exports := map[string]string{}
	for _, dep := range list(t, pkg.ImportPath) {
		exports[dep.ImportPath] = dep.Export
	}
	config := types.Config{Importer: importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })}
	_, err := config.Check(pkg.ImportPath, fset, files, info)
	require.NoError(t, err)

	uses := map[string]map[string]string{}
	for id, object := range info.Uses {
		if object.Pkg() == nil || object.Pkg().Path() != pkg.ImportPath {
			continue
		}
		from, to := filepath.Base(fset.Position(id.Pos()).Filename), filepath.Base(fset.Position(object.Pos()).Filename)
		if from == to {
			continue
		}
		if uses[from] == nil {
			uses[from] = map[string]string{}
		}
		uses[from][to] = object.Name()
	}
	return uses
}

// listed is a package as go list describes it.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
	Standard, DepOnly       bool
}

// list returns packages and all that they import.
func list(t *testing.T, patterns ...string) (all []listed) {
	args := append([]string{"list", "-deps", "-export", "-json=ImportPath,Dir,Export,GoFiles,Standard,DepOnly"}, patterns...)
	out, err := exec.Command("go", args...).Output()
	require.NoError(t, err)
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var pkg listed
		if err := d.Decode(&pkg); errors.Is(err, io.EOF) {
			return all
		} else {
			require.NoError(t, err)
		}
		all = append(all, pkg)
	}
}
