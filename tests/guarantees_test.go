package tests

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

var testName = regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z]\w+`)

// The tests that the package documentation of supervisor names for its guarantees exist.
func TestEveryTestThatAGuaranteeNamesExists(t *testing.T) {
	doc, err := os.ReadFile("../supervisor/doc.go")
	require.NoError(t, err)
	files, err := filepath.Glob("../*/*_test.go")
	require.NoError(t, err)
	internal, err := filepath.Glob("../internal/*/*_test.go")
	require.NoError(t, err)
	var defined []byte
	for _, file := range append(files, internal...) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		defined = append(defined, text...)
	}
	names := testName.FindAllString(string(doc), -1)
	require.Greater(t, len(names), 20)
	for _, name := range names {
		require.Regexp(t, `(?m)^func `+name+`\(`, string(defined))
	}
	require.Len(t, regexp.MustCompile(`(?m)^//  \d+\. `).FindAllString(string(doc), -1), 12)
}
