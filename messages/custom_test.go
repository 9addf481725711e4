package messages

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCustomMethodIsAnOperationThatIsNotIdempotent(t *testing.T) {
	op := &Custom{Header: To("s", "a"), Name: "acme/search", Params: map[string]any{"q": "hush"}}
	require.NoError(t, op.Validate())
	require.Equal(t, "acme/search", op.Method())
	require.False(t, op.Idempotent())
	require.ErrorContains(t, (&Custom{}).Validate(), "name: ")
	require.Equal(t, op.Params, With(op, To("s", "b")).(*Custom).Params)
	note := &CustomNotification{Method: "acme/changed", Params: json.RawMessage(`"hush"`)}
	result := &CustomResult{Result: json.RawMessage(`"hush"`)}
	require.NotContains(t, fmt.Sprintf("%v %+v %v %v %+v %v", op, op, note, note.LogValue(), result, result.LogValue()), "hush")
}
