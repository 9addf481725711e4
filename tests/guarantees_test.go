package tests

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var testName = regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z]\w+`)

// The tests that the package documentation of supervisor names for its guarantees exist.
func TestEveryTestThatAGuaranteeNamesExists(t *testing.T) {
	doc, err := os.ReadFile("../supervisor/doc.go")
	require.NoError(t, err)
	var defined []byte
	require.NoError(t, filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		defined = append(defined, text...)
		return err
	}))
	code := "\n" + string(defined)
	names := testName.FindAllString(string(doc), -1)
	require.Greater(t, len(names), 20)
	for _, name := range names {
		require.True(t, strings.Contains(code, "\nfunc "+name+"("), name)
	}
	require.Len(t, regexp.MustCompile(`(?m)^//  \d+\. `).FindAllString(string(doc), -1), 12)
}
