package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
)

func TestShowIsRecordedAsAnAsciicastWithItsReport(t *testing.T) {
	file := filepath.Join(t.TempDir(), "demo.cast")
	status, stdout, stderr := run("--duration", "1s", "--agents", "3", "--record", file)
	require.Equal(t, cli.ExitOK, status, stdout+stderr)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	recorded := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	for i, line := range recorded {
		require.True(t, json.Valid(line), "line %d", i+1)
	}
	require.Contains(t, string(recorded[0]), `"version":2`)
	for _, frame := range []string{string(recorded[1]), string(recorded[len(recorded)-1])} {
		require.GreaterOrEqual(t, strings.Count(frame, "●"), 3+1, "the agents and the legend")
		require.Contains(t, frame, "no goroutine was left over")
	}
	require.NotContains(t, string(recorded[1]), "✓")
	require.Equal(t, len(claimsOf(1)), strings.Count(string(recorded[len(recorded)-1]), "✓"))
}
