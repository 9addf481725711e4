package notes

import (
	"context"
	"encoding/base64"
	"testing"
	"testing/synctest"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/gateway"
)

// call is a loop of one's own, without a framework.
func call(_ *testing.T, ctx context.Context, w *World, tool string) (told string, err error) {
	params := &mcp.CallToolParams{Name: tool}
	params.SetProgressToken("1")
	result, err := w.Session.CallTool(ctx, params)
	out := gateway.Outcome(result, err)
	for _, part := range out.Parts {
		if image, is := part.Content.(*mcp.ImageContent); is {
			told += base64.StdEncoding.EncodeToString(image.Data)
		}
	}
	return out.Text() + told, ctx.Err()
}

func TestSessionOfTheSDK(t *testing.T) {
	Check(t, Agent{Run: call})
}

func TestCallThatWaitsIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(t)
		result, err := w.Session.CallTool(t.Context(), &mcp.CallToolParams{Name: "notes__buy"})
		require.NoError(t, err)
		pending := gateway.PendingOf(result)
		require.NotNil(t, pending)
		require.Empty(t, w.Calls())
		require.Equal(t, "buy: 1 in this session", w.Approve(t, pending.ID, pending.Digest))
		require.Len(t, w.Calls("buy"), 1)
	})
}
