package toolsize

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSizeIsThatOfTheCompactJSONThatAModelGets(t *testing.T) {
	const want = `{"name":"add","description":"a < b & \"ü\"","inputSchema":{"properties":{"a":{}},"type":"object"}}`
	for name, schema := range map[string]any{
		"decoded": map[string]any{"type": "object", "properties": map[string]any{"a": map[string]any{}}},
		"as sent": json.RawMessage("{\n  \"type\": \"object\",\n  \"properties\": {\"a\": {}}\n}"),
	} {
		require.Equal(t, len(want), Of("add", `a < b & "ü"`, schema), name)
	}
	require.Equal(t, len(`{"name":"add"}`), Of("add", "", nil))
	require.Zero(t, Of("add", "", json.RawMessage(`{`)), "that is no JSON")
}

func TestATokenIsFourBytes(t *testing.T) {
	require.Equal(t, 25, Tokens(103))
}
