package mcpbridge

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEveryGoBlockOfThePageOnCredentialsIsPartOfAnExample(t *testing.T) {
	flat := func(text string) string { return strings.Join(strings.Fields(text), " ") }
	page, err := os.ReadFile("../docs/auth.md")
	require.NoError(t, err)
	examples, err := os.ReadFile("example_test.go")
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	require.Len(t, blocks, 4)
	for _, block := range blocks {
		require.Contains(t, flat(string(examples)), flat(block[1]))
	}
}
