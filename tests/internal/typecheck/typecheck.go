// Package typecheck type-checks modules without compiling what they import.
package typecheck

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// listed is a package as go list describes it.
type listed struct {
	ImportPath, Dir string
	GoFiles         []string
	ImportMap       map[string]string
	Module          *struct{ Main bool }
	Error           *struct{ Err string }
}

// Module type-checks all packages of the module in a folder, with their tests, and returns how many there are. All that
// they import is read from source, and of that the bodies of functions are left out. The environment is that of go list: it
// says for which system, and must have CGO_ENABLED=0.
func Module(folder string, env []string) (own int, err error) {
	cmd := exec.Command("go", "list", "-deps", "-test", "-json=ImportPath,Dir,GoFiles,ImportMap,Module,Error", "./...")
	cmd.Dir, cmd.Env, cmd.Stderr = folder, env, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("go list: %w", err)
	}
	c := &checker{known: map[string]*types.Package{"unsafe": types.Unsafe}, files: token.NewFileSet()}
	for packages := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		switch err := packages.Decode(&p); {
		case errors.Is(err, io.EOF):
			return own, nil
		case err != nil:
			return own, err
		case p.Error != nil:
			return own, errors.New(p.Error.Err)
		case strings.HasSuffix(p.ImportPath, ".test") || p.ImportPath == "unsafe":
			continue // the main package of a test, which go list does not write
		}
		if err := c.check(&p); err != nil {
			return own, err
		}
		if p.isOwn() {
			own++
		}
	}
}

func (p *listed) isOwn() bool { return p.Module != nil && p.Module.Main }

// checker has the packages that were checked.
type checker struct {
	known map[string]*types.Package
	files *token.FileSet
}

// check type-checks a package. Those that it imports were checked before.
func (c *checker) check(p *listed) error {
	var sources []*ast.File
	for _, name := range p.GoFiles {
		source, err := parser.ParseFile(c.files, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		sources = append(sources, source)
	}
	var errs []error
	config := types.Config{
		Importer:         importer{c.known, p.ImportMap},
		IgnoreFuncBodies: !p.isOwn(),
		Sizes:            types.SizesFor("gc", runtime.GOARCH),
		Error:            func(err error) { errs = append(errs, err) },
	}
	path, _, _ := strings.Cut(p.ImportPath, " ") // a variant for a test has its name after a space
	c.known[p.ImportPath], _ = config.Check(path, c.files, sources, nil)
	return errors.Join(errs...)
}

// importer finds the packages that a package imports.
type importer struct {
	known   map[string]*types.Package
	renamed map[string]string // those of the standard library's vendor folder, and variants for a test
}

func (i importer) Import(path string) (*types.Package, error) {
	if to := i.renamed[path]; to != "" {
		path = to
	}
	if known := i.known[path]; known != nil {
		return known, nil
	}
	return nil, fmt.Errorf("%s is not listed", path)
}
