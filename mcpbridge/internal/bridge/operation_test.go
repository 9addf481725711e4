package bridge

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// H-D5: the bound of one result also bounds a list with all its pages.
func TestListIsBoundedOverAllItsPages(t *testing.T) {
	const items, each = 50, 1 << 10
	words := strings.Repeat("<", each) // which is one byte each, not an escape
	server := mcp.NewServer(&mcp.Implementation{Name: "x", Version: "1"}, &mcp.ServerOptions{PageSize: 5})
	for i := range items {
		name := fmt.Sprintf("item-%d", i)
		server.AddTool(&mcp.Tool{Name: name, Description: words, InputSchema: map[string]any{"type": "object"}}, nil)
		server.AddPrompt(&mcp.Prompt{Name: name, Description: words}, nil)
		server.AddResource(&mcp.Resource{URI: "x://" + name, Name: name, Description: words}, nil)
		server.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "x://" + name + "/{y}", Name: name, Description: words}, nil)
	}
	for _, op := range []messages.Operation{&messages.ListTools{}, &messages.ListPrompts{}, &messages.ListResources{}, &messages.ListResourceTemplates{}} {
		for limit, fits := range map[int]bool{0: true, -1: true, items * (each + 200): true, items * each: false, 6 * each: false} {
			t.Run(fmt.Sprintf("%T of at most %d", op, limit), func(t *testing.T) {
				b := New([]mcpbridge.Server{{Name: "x", InMemory: server, MaxResult: limit}}, nil)
				defer b.Close()
				c, err := b.Dial(t.Context(), dial.Request{Key: messages.Key{Server: "x"}, Down: func(*mcpbridge.Error) {}})
				require.NoError(t, err)
				_, err = c.Do(t.Context(), op)
				if fits {
					require.NoError(t, err)
				} else {
					e := mcpbridge.AsError(err)
					require.Equal(t, mcpbridge.Protocol, e.Class)
					require.Equal(t, mcpbridge.Alive, e.Session)
					require.Contains(t, e.Detail, fmt.Sprintf("more than %d bytes (maxResult)", limit))
				}
				require.NoError(t, c.Close(context.Background()))
			})
		}
	}
}
