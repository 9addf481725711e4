package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/cli"
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
	require.Contains(t, string(recorded[len(recorded)-1]), "no goroutine was left over")
}
