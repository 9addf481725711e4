package toolset_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// A client has all that a server offers from the catalogue: scopes that only list have one session together.
func TestClientHasTheListsOfAKeyFromTheCatalogue(t *testing.T) {
	offer := func(srv *mcpbridge.Server) {
		s := mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, &mcp.ServerOptions{Instructions: "Be kind."})
		mcp.AddTool(s, &mcp.Tool{Name: "t"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return nil, nil, nil
		})
		s.AddPrompt(&mcp.Prompt{Name: "p"}, nil)
		s.AddResource(&mcp.Resource{URI: "file:///r", Name: "r"}, nil)
		s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "file:///{t}", Name: "e"}, nil)
		srv.InMemory = s
	}
	gather(t, 1, supervisor.Config{}, offer, func(ctx context.Context, c *crowd) {
		client := c.sup.Client()
		for i := range 20 {
			scope := fmt.Sprint(i)
			tools, err := client.ListTools(ctx, "s0", scope)
			require.NoError(c, err)
			prompts, err := client.ListPrompts(ctx, "s0", scope)
			require.NoError(c, err)
			resources, err := client.ListResources(ctx, "s0", scope)
			require.NoError(c, err)
			templates, err := client.ListResourceTemplates(ctx, "s0", scope)
			require.NoError(c, err)
			require.Equal(c, "t p r e", tools.Result.Tools[0].Name+" "+prompts.Result.Prompts[0].Name+" "+resources.Result.Resources[0].Name+" "+templates.Result.ResourceTemplates[0].Name)
			for _, from := range []*messages.Listing{tools.Listing, prompts.Listing, resources.Listing, templates.Listing} {
				require.Equal(c, "Be kind.", from.Server.Instructions)
				require.Equal(c, i > 0, from.Shared)
			}
		}
		sessions, _ := c.counts()
		require.Equal(c, 1, sessions)
	})
}
