package results

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/tests/oddtest"
)

// The elements of a list are those that are decoded, each as it came unless it was mended.
func TestElementsOfAListAreThoseThatAreDecoded(t *testing.T) {
	for method, items := range map[string]string{
		"tools/list": "tools", "prompts/list": "prompts", "resources/list": "resources", "resources/templates/list": "resourceTemplates",
	} {
		for _, odd := range oddtest.All(method) {
			var members map[string]json.RawMessage
			require.NoError(t, json.Unmarshal([]byte(odd.Result), &members))
			result, _, err := Decode(method, []byte(odd.Result))
			things, ok := Elements(method, items, members[items])
			require.Equal(t, odd.IsFatal() && odd.Path == items, !ok, odd.Name)
			if err != nil { // because of something else
				continue
			}
			var all []json.RawMessage
			encoded, err := json.Marshal(result)
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(encoded, &members))
			json.Unmarshal(members[items], &all)
			require.Len(t, things, len(all), odd.Name)
		}
	}
	things, ok := Elements("tools/list", "tools", json.RawMessage(`[{"name":"<a>","n":1.0},null,{"name":"b","title":5}]`))
	require.True(t, ok)
	require.Equal(t, []json.RawMessage{json.RawMessage(`{"name":"<a>","n":1.0}`), json.RawMessage(`{"name":"b"}`)}, things)
}
