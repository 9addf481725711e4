package wire

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
)

func TestDefaultOfMaxResultIsInTheDocs(t *testing.T) {
	page, err := os.ReadFile("../../../docs/configuration.md")
	require.NoError(t, err)
	require.Contains(t, string(page), fmt.Sprintf("`MaxResult` (%d MiB)", MaxResult(&mcpbridge.Server{})>>20))
}
