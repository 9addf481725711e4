package supervisor

import (
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// flat makes text comparable whatever its indentation.
func flat(text string) string { return strings.Join(strings.Fields(text), " ") }

func TestEveryGoBlockOfTheReadmeIsPartOfAnExample(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	examples, err := os.ReadFile("example_test.go")
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(readme), -1)
	require.Len(t, blocks, 3)
	for _, block := range blocks {
		require.Contains(t, flat(string(examples)), flat(block[1]))
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
