package toolset_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/toolset"
)

// One malformed schema must not cost the request with all tools: it is repaired, or its tool is left out and named.
func TestToolThatNoModelCouldGetIsLeftOutAndNamed(t *testing.T) {
	imagine(t, toolset.Config{}, func(ctx context.Context, w *world) {
		for name, schema := range map[string]string{
			"nested":  `{"type":"object","properties":{"coin":{"type":"STRING"},"required":["coin"]}}`,
			"odd":     `{"type":"object","properties":{"coin":{"type":"strng"}}}`,
			"nowhere": `{"type":"object","properties":{"coin":{"$ref":"#/$defs/Coin"}}}`,
		} {
			w.one.mcp.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(schema)}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return nil, errors.New("is not called")
			})
		}
		require.Equal(t, "one__a one__b one__nested two__c", w.tools(ctx))
		set, err := w.Tools(ctx)
		require.NoError(t, err)
		require.JSONEq(t, `{"type":"object","properties":{"coin":{"type":"string"}},"required":["coin"]}`, string(set.Tool("one__nested").Parameters()))
		var named []string
		for _, left := range set.LeftOut {
			named = append(named, left.Error())
		}
		require.Equal(t, []string{
			`tools/list "nowhere" on one/s: protocol: the tool is left out: inputSchema.$ref: "#/$defs/Coin" leads to nothing`,
			`tools/list "odd" on one/s: protocol: the tool is left out: inputSchema.properties.coin.type: "strng" is no type of JSON Schema`,
		}, named)
		_, err = w.Call(ctx, "one__odd", nil)
		require.ErrorIs(t, err, messages.CodeInvalid)
		require.Equal(t, `The call is not valid: "one__odd" cannot be called: the tool is left out: inputSchema.properties.coin.type: `+
			`"strng" is no type of JSON Schema. The tool did not run. Correct the call before you try again.`, toolset.Explain(err))
		failure, _ := errors.AsType[*messages.Failure](err)
		require.NotContains(t, set.LeftOut, failure, "it is a failure of the call")
		require.Equal(t, "odd", failure.Target)
		require.Nil(t, set.Tool("one__odd"))
	})
}

func TestPendingCallOfAToolThatIsLeftOutIsGone(t *testing.T) {
	imagine(t, toolset.Config{Policy: deferring()}, func(ctx context.Context, w *world) {
		p := w.pendingOf(ctx, "one__a", nil)
		w.one.define(&mcp.Tool{Name: "a", InputSchema: json.RawMessage(`{"type":"object","properties":{"coin":{"type":"strng"}}}`)})
		w.changed("one")
		for range 2 {
			_, err := w.Answer(ctx, p.ID, p.Digest, allow)
			require.ErrorIs(t, err, messages.CodeInvalid)
			require.ErrorContains(t, err, `"one__a" cannot be called`)
			require.Contains(t, toolset.Explain(err), "The tool did not run.")
		}
		waiting, err := w.Pending(ctx)
		require.NoError(t, err)
		require.Empty(t, waiting)
	})
}
