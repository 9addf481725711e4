package tests

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// catalogue lists the parts of the fault catalogue, with the number of rows of each.
var catalogue = []struct {
	part string
	rows int
}{{"A", 12}, {"B", 11}, {"C", 17}, {"D", 5}, {"E", 10}, {"F", 8}, {"G", 3}}

var rowsNamed = regexp.MustCompile(`^([A-G]\d+(?:, [A-G]\d+)*)\b`)

// testsByRow returns the tests of each row: those whose doc comment begins with the row.
func testsByRow(t *testing.T) map[string][]string {
	t.Helper()
	byRow := map[string][]string{}
	files, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	for _, file := range append(files, "../actors/registry/bug_test.go") {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		require.NoError(t, err)
		for _, decl := range parsed.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || !strings.HasPrefix(f.Name.Name, "Test") {
				continue
			}
			name := f.Name.Name
			if parsed.Name.Name != "tests" {
				name = parsed.Name.Name + "." + name
			}
			for _, row := range strings.Split(rowsNamed.FindString(f.Doc.Text()), ", ") {
				byRow[row] = append(byRow[row], name)
			}
		}
	}
	delete(byRow, "")
	return byRow
}

// The package documentation lists every row with its tests.
func TestEveryRowOfTheCatalogueHasATest(t *testing.T) {
	byRow := testsByRow(t)
	var table strings.Builder
	for _, c := range catalogue {
		for i := range c.rows {
			row := fmt.Sprint(c.part, i+1)
			names := byRow[row]
			delete(byRow, row)
			require.NotEmpty(t, names, "row %s has no test", row)
			slices.Sort(names)
			fmt.Fprintf(&table, "//	%-4s%s\n", row, strings.Join(names, "\n//	    "))
		}
	}
	require.Empty(t, slices.Collect(maps.Keys(byRow)), "rows that are not in the catalogue")
	doc, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	require.Contains(t, string(doc), table.String(), "doc.go must have this table:\n%s", table.String())
}

// The package documentation describes every row.
func TestEveryRowOfTheCatalogueIsDescribed(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	told := map[string]bool{}
	for _, line := range regexp.MustCompile(`(?m)^//\t([A-G]\d+(?:, [A-G]\d+)*): .`).FindAllStringSubmatch(string(doc), -1) {
		for row := range strings.SplitSeq(line[1], ", ") {
			require.False(t, told[row], "row %s is described twice", row)
			told[row] = true
		}
	}
	for _, c := range catalogue {
		for i := range c.rows {
			row := fmt.Sprint(c.part, i+1)
			require.True(t, told[row], "row %s", row)
			delete(told, row)
		}
	}
	require.Empty(t, told, "rows that are not in the catalogue")
}

// The tests that the package documentation names exist.
func TestCatalogueNamesTestsThatExist(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	var code strings.Builder
	require.NoError(t, filepath.WalkDir("..", func(path string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		code.Write(text)
		return err
	}))
	names := regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z][A-Za-z0-9]+`).FindAllString(string(doc), -1)
	require.NotEmpty(t, names)
	for _, name := range names {
		require.True(t, strings.Contains(code.String(), "func "+name+"("), name)
	}
}

// The rows that comments of tests name, such as H-B1, are in the package documentation.
func TestCommentsNameRowsThatExist(t *testing.T) {
	page, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	known := map[string]bool{}
	row := regexp.MustCompile(`H-([A-H])(\d*)(?: to H-[A-H](\d+))?`)
	for _, m := range row.FindAllStringSubmatch(string(page), -1) {
		first, _ := strconv.Atoi(m[2])
		last, _ := strconv.Atoi(m[3])
		for n := first; n <= max(first, last); n++ {
			known["H-"+m[1]+strings.TrimPrefix(strconv.Itoa(n), "0")] = true
		}
	}
	require.NoError(t, filepath.WalkDir("..", func(path string, entry os.DirEntry, err error) error {
		if entry != nil && entry.Name() == "node_modules" {
			return filepath.SkipDir
		}
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, name := range regexp.MustCompile(`\bH-[A-H]\d*\b`).FindAllString(string(text), -1) {
			require.True(t, known[name], "%s: %s", path, name)
		}
		return err
	}))
}
