// Package docs_test checks the documents of the project.
package docs_test

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write docs/api.txt anew")

// TestExportedNamesDoNotChangeUnseen compares what the public packages of all modules
// export with api.txt, which has a line for each name, field and method.
func TestExportedNamesDoNotChangeUnseen(t *testing.T) {
	var lines, undocumented []string
	require.NoError(t, filepath.WalkDir("..", func(dir string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		path := strings.TrimPrefix(filepath.ToSlash(dir), "../")
		switch name := d.Name(); {
		case dir == "..":
			return nil
		case strings.HasPrefix(name, "."), name == "internal", name == "testdata", path == "docs", path == "cmd",
			strings.HasPrefix(path, "tests/") && path != "tests/faults":
			return fs.SkipDir
		}
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		require.NoError(t, err)
		for _, file := range files {
			if !strings.HasSuffix(file, "_test.go") {
				parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.SkipObjectResolution)
				require.NoError(t, err)
				a := api{pkg: path}
				a.add(parsed)
				lines, undocumented = append(lines, a.lines...), append(undocumented, a.undocumented...)
			}
		}
		return nil
	}))
	slices.Sort(lines)
	text := strings.Join(slices.Compact(lines), "\n") + "\n" // files for several systems have the same names
	if *update {
		require.NoError(t, os.WriteFile("api.txt", []byte(text), 0o644))
	}
	require.Equal(t, read(t, "api.txt"), text, "exported names have changed: run go test ./docs -update")
	require.Empty(t, undocumented, "exported without a comment")
}

// api is what the files of a package export.
type api struct {
	pkg                 string
	lines, undocumented []string
}

func (a *api) add(file *ast.File) {
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			a.function(decl)
		case *ast.GenDecl:
			for i, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					a.typ(spec, decl.Doc != nil || spec.Doc != nil)
				case *ast.ValueSpec:
					if i > 0 && spec.Type == nil && spec.Values == nil { // as the line before
						spec.Type = decl.Specs[i-1].(*ast.ValueSpec).Type
					}
					a.values(decl.Tok, spec, decl.Doc != nil || spec.Doc != nil || spec.Comment != nil)
				}
			}
		}
	}
}

func (a *api) line(name string, documented bool, parts ...string) {
	if !ast.IsExported(name) {
		return
	}
	line := a.pkg + ", " + strings.TrimSpace(strings.Join(parts, " "))
	a.lines = append(a.lines, line)
	if !documented {
		a.undocumented = append(a.undocumented, line)
	}
}

func (a *api) function(f *ast.FuncDecl) {
	signature := f.Name.Name + strings.TrimPrefix(types.ExprString(f.Type), "func")
	if f.Recv == nil {
		a.line(f.Name.Name, f.Doc != nil, "func", signature)
		return
	}
	receiver := types.ExprString(f.Recv.List[0].Type)
	if ast.IsExported(strings.TrimPrefix(receiver, "*")) {
		a.line(f.Name.Name, f.Doc != nil, "method", "("+receiver+")", signature)
	}
}

func (a *api) values(kind token.Token, spec *ast.ValueSpec, documented bool) {
	typ := ""
	if spec.Type != nil {
		typ = types.ExprString(spec.Type)
	}
	for i, name := range spec.Names {
		value := ""
		if kind == token.CONST && i < len(spec.Values) {
			value = "= " + types.ExprString(spec.Values[i])
		}
		a.line(name.Name, documented, strings.Fields(kind.String()+" "+name.Name+" "+typ+" "+value)...)
	}
}

// typ adds a type with its fields or methods. A field of a Config is an option, and has a
// comment.
func (a *api) typ(spec *ast.TypeSpec, documented bool) {
	name := spec.Name.Name
	if !ast.IsExported(name) {
		return
	}
	var members *ast.FieldList
	kind := ""
	switch typ := spec.Type.(type) {
	case *ast.StructType:
		kind, members = "struct", typ.Fields
	case *ast.InterfaceType:
		kind, members = "interface", typ.Methods
	default:
		kind = types.ExprString(typ)
		if spec.Assign.IsValid() {
			kind = "= " + kind
		}
	}
	a.line(name, documented, "type", name, kind)
	if members == nil {
		return
	}
	for _, member := range members.List {
		typ, tag := types.ExprString(member.Type), ""
		if member.Tag != nil {
			tag = member.Tag.Value
		}
		if len(member.Names) == 0 {
			a.line(name, true, "type", name, kind+",", typ, tag)
		}
		for _, field := range member.Names {
			if strings.HasPrefix(typ, "func(") && kind == "interface" {
				typ = strings.TrimPrefix(typ, "func")
			} else {
				typ = " " + typ
			}
			a.line(field.Name, name != "Config" || member.Doc != nil || member.Comment != nil, "type", name, kind+",", field.Name+typ, tag)
		}
	}
}
