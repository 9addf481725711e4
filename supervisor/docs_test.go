package supervisor

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
)

func TestEveryFieldOfTheConfigurationIsInTheDocsWithItsDefault(t *testing.T) {
	text, err := os.ReadFile("../docs/configuration.md")
	require.NoError(t, err)
	_, page, found := strings.Cut(string(text), "\n## The supervisor\n")
	require.True(t, found)
	page, _, _ = strings.Cut(page, "\n## ")
	defaults := reflect.ValueOf(Config{}.WithDefaults())
	for i := range defaults.NumField() {
		field := defaults.Type().Field(i)
		if !field.IsExported() {
			continue
		}
		row := regexp.MustCompile("(?m)^\\| .*`" + field.Name + "`.*$").FindString(page)
		require.NotEmpty(t, row, field.Name)
		switch value := defaults.Field(i).Interface().(type) {
		case time.Duration:
			require.Regexp(t, "`"+field.Name+"` "+strings.Replace(strings.Replace(value.String(), "m0s", "m", 1), "h0m", "h", 1)+`\b`, row)
		case int:
			if field.Name == "MaxStarts" {
				require.Contains(t, row, fmt.Sprintf("`MaxStarts` %d for each processor", value/runtime.GOMAXPROCS(0)))
				continue
			}
			require.Regexp(t, "`"+field.Name+"` "+strconv.Itoa(value)+`\b`, row)
		}
	}
}

func TestEveryFieldOfAServerIsInTheDocs(t *testing.T) {
	page, err := os.ReadFile("../docs/configuration.md")
	require.NoError(t, err)
	for _, field := range reflect.VisibleFields(reflect.TypeFor[mcpbridge.Server]()) {
		if !field.Anonymous {
			require.Regexp(t, "(?m)^\\| .*`"+field.Name+"`", string(page))
		}
	}
}
