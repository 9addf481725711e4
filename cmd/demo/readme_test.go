package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The README has the fields of requests, ops and events by their names. Those of files are
// in docs/configuration.md.
func TestReadmeTellsOfAllThatExecTakesAndPrints(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(readme), "## The batch runner\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")

	_, err = parseRequest([]byte(`{"id":1,"no field":1}`))
	_, fields, found := strings.Cut(err.Error(), "there are ")
	require.True(t, found)
	told := append(strings.Split(fields, ", "), operations...)
	for _, event := range eventTypes(t) {
		told = append(told, snake(event))
	}
	told = append(told, "dropped", "setup", "allow", "deny", "store", "roots")
	for _, name := range told {
		require.Regexp(t, "`[^`]*\\b"+regexp.QuoteMeta(name)+"\\b[^`]*`", section, name)
	}
	for _, flag := range []string{"--config", "--parallel", "--events", "--scope", "--timeout", "--json"} {
		require.Contains(t, section, flag)
	}
}
