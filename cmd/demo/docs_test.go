package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// docs/batch-runner.md has the fields of requests, ops and events by their names. Those
// of files are in docs/configuration.md.
func TestPageOfTheBatchRunnerHasAllThatExecTakesAndPrints(t *testing.T) {
	text, err := os.ReadFile("../../docs/batch-runner.md")
	require.NoError(t, err)
	page := string(text)

	_, err = parseRequest([]byte(`{"id":1,"no field":1}`))
	_, fields, found := strings.Cut(err.Error(), "there are ")
	require.True(t, found)
	told := append(strings.Split(fields, ", "), operations...)
	for _, event := range eventTypes(t) {
		told = append(told, snake(event))
	}
	told = append(told, "dropped", "setup", "allow", "deny", "store", "roots")
	for _, name := range told {
		require.Regexp(t, "`[^`]*\\b"+regexp.QuoteMeta(name)+"\\b[^`]*`", page, name)
	}
	for _, flag := range []string{"--config", "--parallel", "--events", "--scope", "--timeout", "--json"} {
		require.Contains(t, page, flag)
	}
}
