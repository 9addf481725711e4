package toolset

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/definition"
	"github.com/mcpactor/mcpactor/internal/finder"
	"github.com/mcpactor/mcpactor/internal/rank"
	"github.com/mcpactor/mcpactor/internal/shown"
	"github.com/mcpactor/mcpactor/messages"
)

// FindTool is the name of the tool with which a model finds other tools: see [Toolset.Select].
// No tool of a server has this name.
const FindTool = finder.Name

// maxRemembered bounds the found tools that are remembered.
const maxRemembered = 100

// findTool is the definition of FindTool.
var findTool = newOwnTool(FindTool, finder.Title, finder.Description, finder.Schema)

// newOwnTool returns a tool that the toolset itself answers.
func newOwnTool(name, title, description, schema string) *Tool {
	from := &mcp.Tool{Name: name, Title: title, Description: description, InputSchema: json.RawMessage(schema), Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}
	tool := newTool(Filter{}, from, json.RawMessage(schema))
	tool.Name, tool.Metadata = name, map[string]any{"tool_type": name, "display_name": tool.Title}
	return tool
}

// documents returns what is known of tools, for ranking.
func documents(tools []*Tool) []rank.Document {
	all := make([]rank.Document, len(tools))
	for i, tool := range tools {
		all[i] = rank.Tool{
			Name: tool.Original, Server: tool.Server, Title: tool.Title, Description: tool.Description, Schema: tool.parameters,
		}.Document()
	}
	return all
}

// Rank returns the tools whose names, titles, descriptions and parameters match a query best, at most n of
// them, the best first. It returns fewer if fewer match. The query is a text of any language,
// such as the task of the user.
func (s *Set) Rank(query string, n int) []*Tool {
	if s == nil || s.catalog == nil {
		return nil
	}
	hits := s.catalog.index().Search(query, n)
	tools := make([]*Tool, len(hits))
	for i, hit := range hits {
		tools[i] = s.catalog.tools[hit.Document]
	}
	return tools
}

// Select returns the current tools as [Toolset.Tools] does, for a model that cannot read the
// definitions of all of them. If there are more than n, the Set lists in [Set.Tools]:
//
//   - the n tools that match the query best, as by [Set.Rank]
//   - the n tools that the model has found last
//   - [FindTool], with which the model finds more, and [ReadTool] if something was left out.
//
// All other tools can be called as well. Give the same query in all requests of a task, such as
// the first message of the user: then tools are added at the end of the list, and stay in it, which the
// caches of the APIs need, see [Config.Stability]. Another query begins another list.
func (t *Toolset) Select(ctx context.Context, query string, n int) (*Set, error) {
	set, err := t.listed(ctx)
	if err != nil {
		return nil, err
	}
	n = max(0, n)
	best := set.Rank(query, n)
	t.mu.Lock()
	defer t.mu.Unlock()
	now, adds := t.rest.with(set.catalog.tools), func(*Tool) bool { return true }
	if len(set.catalog.tools) > n {
		now = inserted(now, findTool)
		adds = func(tool *Tool) bool {
			return tool.Server == "" || slices.Contains(best, tool) || slices.Contains(t.found[max(0, len(t.found)-n):], tool.Name)
		}
	}
	if t.conversation.query != query {
		t.conversation.query, t.conversation.selected = query, shown.List[*Tool]{}
	}
	t.conversation.selected = t.next(t.conversation.selected, now, adds)
	set.Tools = valuesOf(t.conversation.selected)
	return set, nil
}

// find answers a call of [FindTool]. The arguments are those of the model: "query", and optionally
// "limit". The result has one line for each tool with its name, description and parameters as JSON,
// and the next [Toolset.Select] lists these tools. find knows the tools that were listed before.
func (t *Toolset) find(arguments any) (*messages.ToolResult, error) {
	raw, err := argumentsOf(arguments)
	var wanted finder.Query
	if err == nil {
		wanted, err = finder.Read(raw)
	}
	if err != nil {
		return nil, &messages.Failure{Op: "tools/call", Target: FindTool, Code: messages.CodeInvalid, Cause: err, Detail: finder.ErrArguments.Error()}
	}
	t.current()
	set := t.known(nil)
	tools := set.Rank(wanted.Text, wanted.Limit)
	t.remember(tools)
	found := make([]finder.Found, len(tools))
	for i, tool := range tools {
		found[i] = finder.Found{Name: tool.Name, Definition: definition.Encode(functionOf(tool))}
	}
	return textResult(finder.Text(found, len(set.catalog.tools))), nil
}

// textResult is the result of a tool of ours.
func textResult(text string) *messages.ToolResult {
	return &messages.ToolResult{Result: &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}}
}

// remember makes tools the newest that were found.
func (t *Toolset) remember(tools []*Tool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, tool := range slices.Backward(tools) { // the best is the newest
		t.found = append(slices.DeleteFunc(t.found, func(name string) bool { return name == tool.Name }), tool.Name)
	}
	t.found = slices.Delete(t.found, 0, max(0, len(t.found)-maxRemembered))
}
