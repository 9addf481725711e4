//go:build linux

package bridge

import (
	"context"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// H-A3: a server that decodes a stream of JSON has the whole call when it has read the
// closing brace. It may have run the call even if it has not read the newline.
func TestCallThatWasReadUpToItsClosingBraceMayHaveRun(t *testing.T) {
	for name, test := range map[string]struct {
		missing string
		want    mcpbridge.Class
	}{
		"all but the newline":               {"", mcpbridge.Lost},
		"all but the brace and the newline": {"}", mcpbridge.NotSent},
	} {
		t.Run(name, func(t *testing.T) {
			srv := server("picky")
			srv.Env["MISSING"], srv.ProtocolVersion = test.missing, protocolLegacy
			b := New([]mcpbridge.Server{*srv}, nil)
			defer b.Close()
			c, err := b.Dial(t.Context(), dial.Request{Key: messages.Key{Server: srv.Name}, Down: func(*mcpbridge.Error) {}})
			require.NoError(t, err)
			_, err = c.Do(t.Context(), toolCall())
			require.Equal(t, test.want, mcpbridge.AsError(err).Class)
			require.NoError(t, c.Close(context.Background()))
		})
	}
}

// H-A3: the same for a write that fails in the middle.
func TestWriteThatFailsAfterTheClosingBraceMayHaveRun(t *testing.T) {
	for name, test := range map[string]struct {
		torn      int
		arguments any
		want      mcpbridge.Class
	}{
		"the newline was left":      {1, nil, mcpbridge.Lost},
		"the brace was left":        {2, nil, mcpbridge.NotSent},
		"all was left":              {1 << 20, nil, mcpbridge.NotSent},
		"there was nothing to send": {1, func() {}, mcpbridge.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			p := &puppet{torn: test.torn}
			c, e := p.dial(t.Context(), 1<<10)
			require.Nil(t, e)
			_, err := c.Do(t.Context(), &messages.CallTool{Params: &mcp.CallToolParams{Name: "tool", Arguments: test.arguments}})
			require.Equal(t, test.want, mcpbridge.AsError(err).Class)
			require.NoError(t, c.Close(context.Background()))
		})
	}
}
