package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// programs returns the names of the programs that upstream.md is about.
func programs(t *testing.T) (names []string) {
	t.Helper()
	dirs, err := filepath.Glob("upstream/*/main.go")
	require.NoError(t, err)
	for _, dir := range dirs {
		names = append(names, filepath.Base(filepath.Dir(dir)))
	}
	return names
}

func TestUpstreamPageHasAnEntryForEveryProgram(t *testing.T) {
	page := read(t, "upstream.md")
	var named []string
	for _, found := range regexp.MustCompile(`(?m)^\$ go run \./docs/upstream/([\w-]+)$`).FindAllStringSubmatch(page, -1) {
		named = append(named, found[1])
	}
	slices.Sort(named)
	require.Equal(t, programs(t), named)
	for _, file := range regexp.MustCompile("`([\\w./-]+/[\\w.-]+\\.(?:go|yml))`").FindAllStringSubmatch(page, -1) {
		_, err := os.Stat("../" + file[1])
		require.NoError(t, err, "what this module does meanwhile")
	}
	module := read(t, "../go.mod")
	for _, version := range regexp.MustCompile("(?m)^Version: `([^`]+)`").FindAllStringSubmatch(page, -1) {
		require.Contains(t, module, version[1], "go.mod has another version: run the programs again")
	}
}

// An entry that is mended upstream is dropped, together with its program and what this module does about it.
func TestUpstreamFindingsAreStillSo(t *testing.T) {
	page := read(t, "upstream.md")
	binaries := t.TempDir()
	built, err := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", binaries+string(filepath.Separator), "./upstream/...").CombinedOutput()
	require.NoError(t, err, "%s", built)
	for _, name := range programs(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			binary, err := exec.LookPath(filepath.Join(binaries, name)) // on Windows with .exe
			require.NoError(t, err)
			output, err := exec.CommandContext(t.Context(), binary).CombinedOutput()
			require.NoError(t, err, "%s", output)
			lines := strings.Split(strings.TrimSpace(string(output)), "\n")
			verdict := lines[len(lines)-1]
			require.True(t, strings.HasPrefix(verdict, "still so: "), "drop the entry: %s", output)
			require.Contains(t, page, "\n"+verdict+"\n")
		})
	}
}
