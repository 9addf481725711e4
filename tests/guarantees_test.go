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

var (
	testName = regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z]\w+`)
	// guarantee matches a numbered paragraph of a comment.
	guarantee = regexp.MustCompile(`(?m)^//  \d+\. .*\n(?://     .*\n)*`)
)

// The tests that the documentation of the packages supervisor and cluster names for its guarantees exist, and each names one.
func TestEveryTestThatAGuaranteeNamesExists(t *testing.T) {
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
	for file, guarantees := range map[string]int{"../supervisor/doc.go": 12, "../cluster/doc.go": 6 + 10} {
		doc, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, name := range testName.FindAllString(string(doc), -1) {
			require.True(t, strings.Contains(code, "\nfunc "+name+"("), name)
		}
		paragraphs := guarantee.FindAllString(string(doc), -1)
		require.Len(t, paragraphs, guarantees, file)
		for _, paragraph := range paragraphs {
			require.Regexp(t, testName, paragraph)
		}
	}
}
