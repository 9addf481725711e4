package rank

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestToolsAreFoundByAllThatIsKnownOfThem(t *testing.T) {
	tool := Tool{
		Name: "maps_route", Server: "geo", Title: "Directions", Description: "Finds a way",
		Schema: json.RawMessage(`{"properties": {"vehicle": true, "start": {"description": "the place of departure"}}}`),
	}
	x := New([]Document{{}, tool.Document()})
	for _, word := range []string{"route", "geo", "direction", "way", "vehicle", "start", "departure"} {
		hits := x.Search(word, 1)
		require.Len(t, hits, 1, word)
		require.Equal(t, 1, hits[0].Document)
	}
}

func TestParametersCountLessThanDescriptions(t *testing.T) {
	x := New([]Document{
		Tool{Schema: json.RawMessage(`{"properties": {"branch": {"description": "text"}}}`)}.Document(),
		Tool{Description: "branch text"}.Document(),
	})
	require.Equal(t, 1, x.Search("branch", 1)[0].Document)
}

func TestSchemaThatCannotBeReadIsIgnored(t *testing.T) {
	for _, schema := range []string{"", "null", "[]", `{"properties": 1}`, `{"properties": {"": {"description": 1}}}`} {
		x := New([]Document{Tool{Name: "a", Schema: json.RawMessage(schema)}.Document()})
		require.Len(t, x.Search("a", 1), 1, schema)
	}
}
