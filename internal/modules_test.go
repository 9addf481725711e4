package internal

import (
	"bytes"
	"encoding/json"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	root       = "github.com/mcpactor/mcpactor"
	clusterAPI = root + "/internal/clusterapi"
)

// Who requires the module gets nothing of the cluster's engine, and what we build is what a
// program that requires the module gets.
func TestModuleIsLightToEmbed(t *testing.T) {
	out, err := exec.Command("go", "-C", "..", "mod", "edit", "-json").Output()
	require.NoError(t, err)
	var module struct {
		Require []struct {
			Path     string
			Indirect bool
		}
		Replace []any
	}
	require.NoError(t, json.Unmarshal(out, &module))
	require.Empty(t, module.Replace)
	require.NotEmpty(t, module.Require)
	for _, required := range module.Require {
		for _, heavy := range []string{"go.etcd.io/etcd", "google.golang.org/grpc", "github.com/labstack/echo", "go.uber.org/zap"} {
			require.False(t, !required.Indirect && strings.HasPrefix(required.Path, heavy), required.Path)
		}
		require.False(t, strings.HasPrefix(required.Path, root), "%s is above", required.Path)
	}
	workspaces, err := exec.Command("git", "-C", "..", "ls-files", "go.work", "*/go.work").Output()
	if err == nil { // the sources may be no clone
		require.Empty(t, string(workspaces))
	}
}

// No package links Proto.Actor's cluster, gRPC or etcd.
func TestNothingLinksTheEngineOfTheCluster(t *testing.T) {
	for _, pkg := range list(t, "..", "./...") {
		for _, part := range []string{"github.com/asynkron/protoactor-go/cluster", "github.com/asynkron/protoactor-go/remote", "google.golang.org/grpc", "go.etcd.io/etcd/client"} {
			require.False(t, pkg.ImportPath == part || strings.HasPrefix(pkg.ImportPath, part+"/"), pkg.ImportPath)
		}
	}
}

// The module cluster is above this one: nothing here imports it. Of the internal packages
// it imports one, which nobody else does, and in its tests that of the simulations.
func TestOnePackageIsBetweenTheClusterAndTheInternalPackages(t *testing.T) {
	used := 0
	require.NoError(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != ".." || d.Name() == "node_modules" || d.Name() == "testdata") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		module := moduleOf(t, filepath.Dir(path))
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			require.NoError(t, err)
			switch {
			case module == root:
				require.False(t, imported == root+"/cluster" || strings.HasPrefix(imported, root+"/cluster/"), "%s imports the cluster", path)
				require.NotEqual(t, clusterAPI, imported, path)
			case module != root+"/cluster":
				require.NotEqual(t, clusterAPI, imported, path)
			case imported == clusterAPI:
				used++
			case imported == root+"/internal/schedule" && strings.HasSuffix(path, "_test.go"):
			default:
				require.False(t, strings.HasPrefix(imported, root+"/internal/"), "%s imports %s: use package clusterapi", path, imported)
			}
		}
		return nil
	}))
	require.NotZero(t, used)
}

// moduleOf returns the path of the module that a folder belongs to.
func moduleOf(t *testing.T, dir string) string {
	t.Helper()
	for {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil {
			first, _, _ := bytes.Cut(text, []byte("\n"))
			return strings.TrimPrefix(string(first), "module ")
		}
		require.ErrorIs(t, err, fs.ErrNotExist)
		dir = filepath.Join(dir, "..")
	}
}
