package gateway

import (
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/gateway/internal/mcpserver"
	"github.com/mcpactor/mcpactor/gateway/internal/view"
	"github.com/mcpactor/mcpactor/internal/finder"
)

// ownTools returns what answers calls of the tools of the gateway itself, or nil if it offers none.
func (c *client) ownTools() map[string]handler {
	if c.g.cfg.Find == 0 {
		return nil
	}
	own := map[string]handler{finder.Name: c.findTools}
	if c.g.cfg.FindCalls {
		own[view.CallName] = c.callFound
	}
	return own
}

// findTools answers a call of the tool that finds others.
func (c *client) findTools(r *mcpserver.Request, params mcpserver.Object) (any, error) {
	r.Pass()
	servers := c.servers()
	_, errs := listsOf(r.Context, servers, "tools/list", shortWait)
	text, err := c.view.Find(params["arguments"])
	if err != nil {
		return failed(err.Error()), nil
	}
	for i, err := range errs {
		if err != nil {
			text += fmt.Sprintf("\nThe tools of server %q could not be listed: %s", servers[i].name, oneLine(err))
		}
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil
}

// callFound answers a call of the tool that calls others. It calls none that may change something: the permissions of a client are for the
// names of tools, and it sees another name.
func (c *client) callFound(r *mcpserver.Request, params mcpserver.Object) (any, error) {
	given := mcpserver.ObjectOf(params["arguments"])
	name := given.Text("name")
	tool := c.view.Lookup(name)
	if tool == nil {
		r.Pass()
		listsOf(r.Context, c.servers(), "tools/list", shortWait)
		tool = c.view.Lookup(name)
	}
	arguments := given["arguments"]
	switch {
	case arguments != nil && string(arguments) != "null" && arguments[0] != '{':
		return failed("arguments: give an object"), nil
	case tool == nil:
		return failed(fmt.Sprintf("There is no tool %q. Find one with %s.", name, finder.Name)), nil
	}
	s := c.server(tool.Server)
	if s == nil { // it was just removed
		return failed(fmt.Sprintf("The server %q was removed.", tool.Server)), nil
	}
	params.With("name", name)
	delete(params, "arguments")
	if arguments != nil && string(arguments) != "null" {
		params["arguments"] = arguments
	}
	return c.callOn(r, s, tool.Name, params, func() string {
		switch text := s.refuses(r, tool.Name, params); {
		case text != "":
			return text
		case !s.tool(tool.Name).ReadsOnly:
			return fmt.Sprintf("The tool %q may change something, so that it is not called in this way. Call it by its own name.", name)
		}
		return ""
	})
}
