package toolset

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/toolset/internal/rank"
)

// FindTool is the name of the tool with which a model finds other tools: see [Toolset.Select].
// No tool of a server has this name.
const FindTool = "find_tools"

const (
	// defaultFound and maxFound bound the tools that one call of FindTool finds.
	defaultFound, maxFound = 5, 20
	// maxFoundText bounds the result of FindTool, in bytes. Schemas beyond it are left out.
	maxFoundText = 64 << 10
	// maxRemembered bounds the found tools that are remembered.
	maxRemembered = 100
)

// findTool is the definition of FindTool.
var findTool = newOwnTool(FindTool, "Find tools",
	"Finds more tools. Describe what you want to do. The tools that match best are listed with their parameters, and you can call them from then on.",
	fmt.Sprintf(`{"type":"object","properties":{`+
		`"query":{"type":"string","description":"what the tool should do, in a few words"},`+
		`"limit":{"type":"integer","minimum":1,"maximum":%d,"description":"the number of tools, by default %d"}},"required":["query"]}`, maxFound, defaultFound))

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
		document := rank.Document{{Text: tool.Original, Weight: 3}, {Text: tool.Server, Weight: 1}, {Text: tool.Description, Weight: 1}}
		if tool.Title != tool.Original {
			document = append(document, rank.Field{Text: tool.Title, Weight: 2})
		}
		all[i] = document
	}
	return all
}

// Rank returns the tools whose names, titles and descriptions match a query best, at most n of
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
// the first message of the user: then tools are added to the list, and stay in it, which the
// caches of the APIs need.
func (t *Toolset) Select(ctx context.Context, query string, n int) (*Set, error) {
	set, err := t.Tools(ctx)
	if err != nil || len(set.catalog.tools) <= n {
		return set, err
	}
	n = max(0, n)
	listed := map[*Tool]bool{findTool: true}
	for _, tool := range set.Rank(query, n) {
		listed[tool] = true
	}
	t.mu.Lock()
	found, rest := slices.Clone(t.found), t.rest
	t.mu.Unlock()
	for _, name := range found[max(0, len(found)-n):] {
		if tool := set.Tool(name); tool != nil {
			listed[tool] = true
		}
	}
	set.Tools = nil
	for tool := range listed {
		set.Tools = append(set.Tools, tool)
	}
	slices.SortFunc(set.Tools, byName)
	set.Tools = rest.with(set.Tools)
	return set, nil
}

// find answers a call of [FindTool]. The arguments are those of the model: "query", and optionally
// "limit". The result has one line for each tool with its name, description and parameters as JSON,
// and the next [Toolset.Select] lists these tools. find knows the tools that were listed before.
func (t *Toolset) find(arguments any) (*messages.ToolResult, error) {
	wanted := struct {
		Query string `json:"query"`
		Limit int    `json:"limit"`
	}{Limit: defaultFound}
	raw, err := argumentsOf(arguments)
	if err == nil {
		err = json.Unmarshal(raw, &wanted)
	}
	if err != nil || strings.TrimSpace(wanted.Query) == "" {
		return nil, &messages.Failure{
			Op: "tools/call", Target: FindTool, Code: messages.CodeInvalid, Cause: err,
			Detail: `arguments: give {"query": "what the tool should do"}, and optionally "limit", a number`,
		}
	}
	t.current()
	set := t.known(nil)
	tools := set.Rank(wanted.Query, min(max(1, wanted.Limit), maxFound))
	t.remember(tools)
	return textResult(foundText(tools, len(set.catalog.tools))), nil
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

// foundText renders found tools for a model.
func foundText(tools []*Tool, all int) string {
	if len(tools) == 0 {
		return fmt.Sprintf("None of %d tools matches. Describe what you want to do in other words.", all)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Found %d of %d tools. You can call them now.\n", len(tools), all)
	for _, tool := range tools {
		line := encode(functionOf(tool))
		if b.Len()+len(line) > maxFoundText {
			line = encode(map[string]string{"name": tool.Name, "definition": "left out because of its size"})
		}
		b.Write(line)
		b.WriteByte('\n')
	}
	return strings.TrimSuffix(b.String(), "\n")
}
