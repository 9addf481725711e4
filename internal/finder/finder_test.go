package finder

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The text is bounded: a model is told the name of a tool whose definition is too large.
func TestDefinitionThatIsTooLargeIsLeftOut(t *testing.T) {
	large := json.RawMessage(`{"name":"large","description":"` + strings.Repeat("x", maxText) + `"}`)
	text := Text([]Found{{"large", large}, {"small", json.RawMessage(`{"name":"small"}`)}}, 9)
	require.Equal(t, "Found 2 of 9 tools. You can call them now.\n"+
		`{"definition":"left out because of its size","name":"large"}`+"\n"+`{"name":"small"}`, text)
	require.Contains(t, Text(nil, 9), "None of 9 tools matches.")
}
