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

// The tests that docs/security.md names for its claims exist.
func TestEveryClaimOfTheSecurityPageHasATest(t *testing.T) {
	page, err := os.ReadFile("../docs/security.md")
	require.NoError(t, err)
	there := map[string]bool{}
	err = filepath.WalkDir("..", func(file string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(file, "_test.go") {
			return err
		}
		source, err := os.ReadFile(file)
		for _, found := range regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`).FindAllSubmatch(source, -1) {
			there[string(found[1])] = true
		}
		return err
	})
	require.NoError(t, err)
	for _, name := range regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z]\w+`).FindAllString(string(page), -1) {
		require.True(t, there[name], "there is no %s", name)
	}
	claims := regexp.MustCompile(`(?m)^\| ([^|]*) \| ([^|]*) \|$`).FindAllStringSubmatch(string(page), -1)
	require.NotEmpty(t, claims)
	for _, claim := range claims {
		if claim[1] != "claim" {
			require.Regexp(t, "`(Test|Fuzz)", claim[2], "%s", claim[1])
		}
	}
}
