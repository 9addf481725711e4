package supervisor

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
)

// flat makes text comparable whatever its indentation.
func flat(text string) string { return strings.Join(strings.Fields(text), " ") }

func TestEveryGoBlockOfTheDocsIsPartOfAnExample(t *testing.T) {
	var examples strings.Builder
	files, err := filepath.Glob("../*/*example_test.go")
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		examples.Write(text)
	}
	pages, err := filepath.Glob("../docs/*.md")
	require.NoError(t, err)
	for _, page := range append(pages, "../README.md") {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(text), -1)
		if !slices.Contains([]string{"performance.md", "faults.md", "api.md"}, filepath.Base(page)) { // which are tables
			require.NotEmpty(t, blocks, page)
		}
		for _, block := range blocks {
			require.Contains(t, flat(examples.String()), flat(block[1]), page)
		}
	}
}

func TestEveryFieldOfTheConfigurationIsInTheReadmeWithItsDefault(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	defaults := reflect.ValueOf(Config{}.withDefaults())
	for i := range defaults.NumField() {
		field := defaults.Type().Field(i)
		row := regexp.MustCompile("(?m)^\\| .*`" + field.Name + "`.*$").FindString(string(readme))
		require.NotEmpty(t, row, field.Name)
		switch value := defaults.Field(i).Interface().(type) {
		case time.Duration:
			require.Contains(t, row, strings.TrimSuffix(value.String(), "m0s"), field.Name)
		case int:
			require.Regexp(t, `\b`+strconv.Itoa(value)+`\b`, row, field.Name)
		}
	}
}

func TestEveryFieldOfAServerIsInTheDocs(t *testing.T) {
	page, err := os.ReadFile("../docs/configuration.md")
	require.NoError(t, err)
	server := reflect.TypeFor[mcpbridge.Server]()
	for i := range server.NumField() {
		require.Regexp(t, "(?m)^\\| .*`"+server.Field(i).Name+"`", string(page))
	}
	require.Contains(t, string(page), strconv.Itoa(mcpbridge.DefaultMaxResult>>20)+" MiB")
}
