package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestShowIsRecordedAsAnAsciicastWithItsReport(t *testing.T) {
	var out bytes.Buffer
	file := filepath.Join(t.TempDir(), "demo.cast")
	require.Equal(t, exitOK, run([]string{"--duration", "1s", "--agents", "3", "--record", file}, streams{nil, &out, &out}), out.String())
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	recorded := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	for i, line := range recorded {
		require.True(t, json.Valid(line), "line %d", i+1)
	}
	require.Contains(t, string(recorded[0]), `"version":2`)
	require.Contains(t, string(recorded[len(recorded)-1]), "no goroutine was left over")
}
