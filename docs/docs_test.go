package docs_test

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
)

// maxReadme is how many lines of README people read, and maxLinks how many links before the
// costs they follow.
const maxReadme, maxLinks = 170, 8

// pages returns all pages that users and contributors read.
func pages(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob("*.md")
	require.NoError(t, err)
	top, err := filepath.Glob("../*.md")
	require.NoError(t, err)
	return append(all, top...)
}

// flat makes text comparable whatever its indentation.
func flat(text string) string { return strings.Join(strings.Fields(text), " ") }

func TestReadmeIsShortAndItsFirstScreenHasTheQuickStart(t *testing.T) {
	lines := strings.Split(strings.TrimSuffix(read(t, "../README.md"), "\n"), "\n")
	require.LessOrEqual(t, len(lines), maxReadme)
	require.Contains(t, strings.Join(lines[:15], "\n"), "\nnpx -y mcpactor adopt claude ", "people without Go come first")
	first := strings.Join(lines[:35], "\n")
	for _, part := range []string{"go get github.com/mcpactor/mcpactor", "](docs/demo.svg)", "## Quick start"} {
		require.Contains(t, first, part)
	}
	before, _, found := strings.Cut(read(t, "../README.md"), "\n## What it costs\n")
	require.True(t, found)
	require.LessOrEqual(t, len(linksOf(before)), maxLinks)
}

func TestEveryGoBlockIsPartOfAnExample(t *testing.T) {
	var examples strings.Builder
	files, err := filepath.Glob("../*/*example_test.go")
	require.NoError(t, err)
	deeper, err := filepath.Glob("../*/*/*example_test.go") // the test kit, and packages below the supervisor
	require.NoError(t, err)
	programs, err := filepath.Glob("../cluster/examples/*/main.go")
	require.NoError(t, err)
	require.NotEmpty(t, programs)
	for _, file := range slices.Concat(files, deeper, programs) {
		examples.WriteString(flat(read(t, file)) + "\n")
	}
	for _, page := range pages(t) {
		for _, block := range regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(read(t, page), -1) {
			require.True(t, strings.Contains(examples.String(), flat(block[1])), "%s: no example has\n%s", page, block[1])
		}
	}
}

func TestPagesWithCodeHaveIt(t *testing.T) {
	for _, page := range []string{
		"../README.md", "agents.md", "cluster.md", "commands.md", "configuration.md", "frameworks.md", "operating.md", "security.md", "testing.md", "tools.md",
	} {
		require.Contains(t, read(t, page), "```go\n", page)
	}
}

func TestEveryPageIsInTheIndex(t *testing.T) {
	index := read(t, "README.md")
	all, err := filepath.Glob("*.md")
	require.NoError(t, err)
	for _, page := range all {
		if page != "README.md" {
			require.Contains(t, index, "]("+page+")")
		}
	}
}

func TestFilesOfTheContributorsPageExist(t *testing.T) {
	page := read(t, "changing-the-code.md")
	files := regexp.MustCompile("`([\\w./-]+\\.(?:go|md|json))`").FindAllStringSubmatch(page, -1)
	require.Greater(t, len(files), 30)
	for _, file := range files {
		_, err := os.Stat("../" + file[1])
		require.NoError(t, err)
	}
	for _, row := range regexp.MustCompile("(?m)^\\| .*\\.go`.*$").FindAllString(page, -1) { // the path of a call
		var source strings.Builder
		for _, file := range regexp.MustCompile("`([\\w./-]+\\.go)`").FindAllStringSubmatch(row, -1) {
			source.WriteString(read(t, "../"+file[1]))
		}
		for _, function := range regexp.MustCompile("`(?:\\w+\\.)?(\\w+)`").FindAllStringSubmatch(row, -1) {
			require.Regexp(t, `func .*\b`+function[1]+`\(`, source.String(), row)
		}
	}
	for _, change := range []string{
		"an operation", "an event", "a limit", "a counter", "a transport", "a form of expiry", "a flag of `mcpactor serve`", "a kind of configuration file", "a store",
	} {
		require.Contains(t, page, "**… "+change+"?**")
	}
}

func TestEveryEventIsInTheDocs(t *testing.T) {
	_, page, found := strings.Cut(read(t, "operating.md"), "\n## Events\n")
	require.True(t, found)
	for _, event := range []messages.Event{
		&messages.SessionOpened{}, &messages.SessionExpired{}, &messages.SessionLost{}, &messages.SessionRestarting{},
		&messages.SessionRestarted{}, &messages.SessionGaveUp{}, &messages.SessionEvicted{}, &messages.SessionClosed{},
		&messages.HandleMinted{}, &messages.HandleReleased{}, &messages.HandleLost{}, &messages.HandleLeft{},
		&messages.CallReplayed{}, &messages.TaskChanged{}, &messages.OwnerTerminated{}, &messages.CatalogueChanged{},
		&messages.ToolsChanged{}, &messages.PromptsChanged{}, &messages.ResourcesChanged{}, &messages.ResourceUpdated{},
		&messages.ServerLog{}, &messages.Progress{}, &messages.CustomNotification{}, &messages.ElicitationCompleted{},
	} {
		require.Regexp(t, "(?m)^\\| .*`"+reflect.TypeOf(event).Elem().Name()+"`", page)
	}
	require.Equal(t, 23, strings.Count(read(t, "../messages/event.go"), "\n\tStamp\n"), "an event is missing in this test")
}

func TestEveryCommandAndFailureCodeIsInTheDocs(t *testing.T) {
	page := read(t, "commands.md")
	for _, file := range []string{"../messages/operation.go", "../messages/command.go", "../messages/control.go", "../messages/binding.go", "../messages/handle.go"} {
		for _, command := range regexp.MustCompile(`(?s)\n// Send to:[^\n]*\n// Replies:[^\n]*\ntype (\w+) struct`).FindAllStringSubmatch(read(t, file), -1) {
			row := regexp.MustCompile("(?m)^\\| .*`" + command[1] + "`").FindString(page)
			require.NotEmpty(t, row, "commands.md has no row for %s", command[1])
		}
	}
	codes := regexp.MustCompile(`(?m)^\tCode\w+ +Code = "(\w+)"`).FindAllStringSubmatch(read(t, "../messages/failure.go"), -1)
	require.NotEmpty(t, codes)
	for _, code := range codes {
		require.Regexp(t, "(?m)^\\| `"+code[1]+"` \\| .+ \\| .+ \\|$", page, "what it means, and what to do about it")
	}
}

func TestNamesOnTheOperatingPageExist(t *testing.T) {
	page := read(t, "operating.md")
	metrics := regexp.MustCompile("`((?:mcpactor|mcp\\.client)\\.[a-z_.]+)`").FindAllStringSubmatch(page, -1)
	require.Greater(t, len(metrics), 10)
	for _, metric := range metrics {
		require.Contains(t, read(t, "../supervisor/telemetry/conventions.go"), `"`+metric[1]+`"`)
	}
	fields := regexp.MustCompile("`(?:load|counters)\\.(\\w+)`").FindAllStringSubmatch(page, -1)
	require.Greater(t, len(fields), 5)
	for _, field := range fields {
		require.Regexp(t, "`json:\""+field[1]+"[\",]", read(t, "../messages/reply.go"))
	}
}

func TestEveryStateIsInTheDocs(t *testing.T) {
	page := read(t, "how-it-works.md")
	states := regexp.MustCompile(`(?m)^\tState\w+ +State = "(\w+)"`).FindAllStringSubmatch(read(t, "../messages/reply.go"), -1)
	require.NotEmpty(t, states)
	var told []string
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\|").FindAllStringSubmatch(page, -1) {
		told = append(told, row[1])
	}
	for _, state := range states {
		require.Contains(t, told, state[1])
	}
	require.Len(t, told, len(states))
}
