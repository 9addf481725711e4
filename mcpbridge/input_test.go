//go:build linux

package mcpbridge

import (
	"context"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
)

// Finding A3: a reader that decodes a stream has the whole call when it has its closing
// brace. That the newline was left in the pipe proves nothing.
func TestCallThatWasReadUpToItsClosingBraceMayHaveRun(t *testing.T) {
	for name, test := range map[string]struct {
		missing string
		want    Class
	}{
		"all but the newline":               {"", Lost},
		"all but the brace and the newline": {"}", NotSent},
	} {
		t.Run(name, func(t *testing.T) {
			srv := server("picky")
			srv.Env["MISSING"], srv.ProtocolVersion = test.missing, protocolLegacy
			b := New([]Server{*srv}, nil)
			defer b.Close()
			c, err := b.Dial(t.Context(), DialRequest{Key: messages.Key{Server: srv.Name}, Down: func(*Error) {}})
			require.NoError(t, err)
			_, err = c.Do(t.Context(), toolCall())
			require.Equal(t, test.want, AsError(err).Class)
			require.NoError(t, c.Close(context.Background()))
		})
	}
}

// Finding A3: the same for a write that fails on the way.
func TestWriteThatFailsAfterTheClosingBraceMayHaveRun(t *testing.T) {
	for name, test := range map[string]struct {
		torn      int
		arguments any
		want      Class
	}{
		"the newline was left":      {1, nil, Lost},
		"the brace was left":        {2, nil, NotSent},
		"all was left":              {1 << 20, nil, NotSent},
		"there was nothing to send": {1, func() {}, Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			p := &puppet{torn: test.torn}
			c, e := p.dial(t.Context(), 1<<10)
			require.Nil(t, e)
			_, err := c.Do(t.Context(), &messages.CallTool{Params: &mcp.CallToolParams{Name: "tool", Arguments: test.arguments}})
			require.Equal(t, test.want, AsError(err).Class)
			require.NoError(t, c.Close(context.Background()))
		})
	}
}
