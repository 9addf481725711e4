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
	"regexp"
	"strings"
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

// The registry and the sessions communicate by messages: neither uses what the other defines,
// apart from what it takes to spawn a session. The files of each begin with its name.
func TestActorsUseNothingOfEachOther(t *testing.T) {
	allowed := map[string][]string{
		"session":  {"registration"}, // which messages carry, and sessions do not read
		"registry": {"durable", "cleanup", "newSession"},
	}
	actorOf := func(file string) string {
		name, _, _ := strings.Cut(strings.TrimSuffix(file, ".go"), "_")
		if allowed[name] == nil {
			return ""
		}
		return name
	}
	for _, pkg := range list(t, "./actors") {
		if pkg.Standard || pkg.DepOnly {
			continue
		}
		seen := map[string]bool{}
		eachUse(t, pkg, func(from, to string, object types.Object) {
			one, other := actorOf(from), actorOf(to)
			if field, ok := object.(*types.Var); one == "" || other == "" || one == other || ok && field.IsField() {
				return
			}
			require.Contains(t, allowed[one], object.Name(), "%s uses it of %s", from, to)
			seen[object.Name()] = true
		})
		require.Len(t, seen, 4, "everything that is allowed is used: %v", seen)
	}
}

// Whoever does not import supervisor/cluster pays nothing for it.
func TestOnlyTheClusterLinksProtoActorsCluster(t *testing.T) {
	links := func(pattern string) (all []string) {
		for _, pkg := range list(t, pattern) {
			if regexp.MustCompile(`/protoactor-go/(cluster|remote)$|^google\.golang\.org/grpc$`).MatchString(pkg.ImportPath) {
				all = append(all, pkg.ImportPath)
			}
		}
		return all
	}
	require.Len(t, links("../supervisor/cluster"), 3)
	require.Empty(t, links("../cmd/mcpactor"))
	require.Empty(t, links("../supervisor"))
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
	uses := map[string]map[string]string{}
	eachUse(t, pkg, func(from, to string, object types.Object) {
		if uses[from] == nil {
			uses[from] = map[string]string{}
		}
		uses[from][to] = object.Name()
	})
	return uses
}

// eachUse calls f for each use, in a file of a package, of what another one of its files defines.
func eachUse(t *testing.T, pkg listed, f func(from, to string, object types.Object)) {
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

	for id, object := range info.Uses {
		if object.Pkg() == nil || object.Pkg().Path() != pkg.ImportPath {
			continue
		}
		from, to := filepath.Base(fset.Position(id.Pos()).Filename), filepath.Base(fset.Position(object.Pos()).Filename)
		if from != to {
			f(from, to, object)
		}
	}
}

// listed is a package as go list describes it.
type listed struct {
	ImportPath, Dir, Export string
	Imports, Deps           []string
	GoFiles                 []string
	Standard, DepOnly       bool
}

// list returns packages and all that they import.
func list(t *testing.T, patterns ...string) (all []listed) {
	args := append([]string{"list", "-deps", "-export", "-json=ImportPath,Dir,Export,GoFiles,Imports,Deps,Standard,DepOnly"}, patterns...)
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

// Programs that do not import package cluster contain nothing of Proto.Actor's cluster, of gRPC
// and of etcd.
func TestOnlyThePackageForClustersNeedsTheEngine(t *testing.T) {
	engine := []string{"github.com/asynkron/protoactor-go/cluster", "github.com/asynkron/protoactor-go/remote", "google.golang.org/grpc", "go.etcd.io/etcd/client"}
	needs := func(paths []string) bool {
		for _, path := range paths {
			for _, part := range engine {
				if strings.HasPrefix(path, part) {
					return true
				}
			}
		}
		return false
	}
	found := 0
	for _, pkg := range list(t, "../...") {
		if pkg.Standard || pkg.DepOnly || !strings.HasPrefix(pkg.ImportPath, "github.com/mcpactor/mcpactor/") {
			continue
		}
		path := strings.TrimPrefix(pkg.ImportPath, "github.com/mcpactor/mcpactor/")
		switch {
		case strings.HasPrefix(path, "supervisor/cluster"):
			if needs(pkg.Imports) {
				found++
			}
			require.False(t, path == "supervisor/cluster/internal/node" && needs(pkg.Deps), "the node is tested without the engine")
		case path == "resume/etcd", path == "cmd/demo": // a store on etcd; the show, which has a cluster
		default:
			require.False(t, needs(pkg.Deps), "%s needs the engine of package cluster", path)
		}
	}
	require.NotZero(t, found)
}
