package toolset

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/nearest"
	"github.com/mcpactor/mcpactor/internal/rank"
	"github.com/mcpactor/mcpactor/messages"
)

// Set is the tools of a toolset at one moment. It is read-only.
type Set struct {
	// Tools are what the model is shown, see [Config.Stability]. At first they are sorted by name. Names are unique. A Set of
	// [Toolset.Select] has a part of the tools here. The methods Tool and Rank know all tools that servers have now, and only these.
	Tools []*Tool
	// Missing has a failure for each server whose tools could not be listed, in the order of the
	// configuration: its Key names the server, and its code is [messages.CodeDeadline] if the
	// list is still being fetched. Tools still has the tools that such a server had before,
	// unless the supervisor no longer knows the server.
	Missing []*messages.Failure
	// LeftOut has a failure for each thing that is left out of a list, in the order of the configuration: its Key names the
	// server, and its Detail says what and why, and may quote names of the server, which must not be trusted. Its Target is
	// the tool if model APIs refuse the tool's input schema, and with it the whole request, or if [Policy.Accept] does not accept the
	// tool: its code is [messages.CodeRefused] then. Otherwise it is empty, and the
	// Detail is one of the [messages.Receipt.Remarks] on the list: a part that cannot be read, or the rest of an incomplete list.
	LeftOut []*messages.Failure

	catalog *catalog
}

// catalog is all tools that a toolset has listed. It does not change.
type catalog struct {
	tools   []*Tool
	names   map[string]*Tool
	servers []string // also those that could not be listed
	leftOut []*messages.Failure
	index   func() *rank.Index // of tools; made when it is needed
}

// newCatalog returns a catalog, and changes the order of the tools.
func newCatalog(tools []*Tool) *catalog {
	distinct(tools)
	slices.SortFunc(tools, byName)
	c := &catalog{tools: tools, names: make(map[string]*Tool, len(tools))}
	for _, tool := range tools {
		c.names[tool.Name] = tool
	}
	c.index = sync.OnceValue(func() *rank.Index { return rank.New(documents(tools)) })
	return c
}

func byName(a, b *Tool) int { return cmp.Compare(a.Name, b.Name) }

// Tool returns the tool of a safe name, or nil.
func (s *Set) Tool(name string) *Tool {
	switch {
	case s == nil || s.catalog == nil:
		return nil
	case name == FindTool:
		return findTool
	case name == ReadTool:
		return readTool
	}
	return s.catalog.names[name]
}

// prepare returns the message that calls a tool, whatever the policy says, with the fields of h and
// what it lacks from ctx.
func (s *Set) prepare(ctx context.Context, h messages.Header, name string, arguments any) (*messages.CallTool, error) {
	tool := s.Tool(name)
	switch tool {
	case nil:
		return nil, s.unknown(name)
	case findTool, readTool:
		return nil, &messages.Failure{Op: "tools/call", Target: name, Code: messages.CodeInvalid, Detail: "no server has it: use Toolset.Call, or send a Use"}
	}
	raw, err := argumentsOf(arguments)
	h.Key = messages.Key{Server: tool.Server, Scope: tool.Scope}
	if h.Attributes.Len() == 0 {
		h.Attributes = messages.AttributesOf(ctx)
	}
	h.Trace = cmp.Or(h.Trace, traceOf(ctx))
	call := &messages.CallTool{Header: h, Params: &mcp.CallToolParams{Name: tool.Original, Arguments: raw}}
	if err != nil {
		f := messages.NewFailure(call, messages.CodeInvalid, noObject)
		f.Cause = err
		return nil, f
	}
	return call, nil
}

// unknown returns the failure for a name that no listed tool has.
func (s *Set) unknown(name string) error {
	detail := fmt.Sprintf("no tool has the name %.100q", name)
	if s == nil {
		return &messages.Failure{Op: "tools/call", Code: messages.CodeInvalid, Detail: detail}
	}
	for _, left := range s.LeftOut {
		if left.Target != "" && SafeName(left.Key.Server, left.Target) == name {
			code := messages.CodeInvalid
			if left.Code == messages.CodeRefused {
				code = messages.CodeRefused
			}
			return &messages.Failure{
				Key: left.Key, Op: "tools/call", Target: left.Target, Code: code,
				Detail: fmt.Sprintf("%.100q cannot be called: %s", name, left.Detail), Cause: left.Cause,
			}
		}
	}
	var away *messages.Failure
	for _, missing := range s.Missing {
		if server := missing.Key.Server; fits(name, server) && (away == nil || len(server) > len(away.Key.Server)) {
			away = missing
		}
	}
	if away != nil {
		return beforeCall(away)
	}
	if meant := s.nearest(name); meant != "" {
		detail += fmt.Sprintf(": did you mean %q?", meant)
	} else if server := s.nearestServer(name); server != "" {
		detail += fmt.Sprintf(": the names of the tools of server %q begin with %q", server, prefixOf(server))
	}
	return &messages.Failure{Op: "tools/call", Code: messages.CodeInvalid, Detail: detail}
}

// nearest returns the name of the tool that was probably meant, or "". The server may be missing
// in the name, or misspelt.
func (s *Set) nearest(name string) string {
	if s.catalog == nil {
		return ""
	}
	var own []*Tool // of the server in the name
	for _, tool := range s.catalog.tools {
		if fits(name, tool.Server) {
			own = append(own, tool)
		}
	}
	if len(own) > 0 {
		return nearestOf(strings.TrimPrefix(name, prefixOf(own[0].Server)), own, func(t *Tool) string { return t.Original })
	}
	return cmp.Or(
		nearestOf(name, s.catalog.tools, func(t *Tool) string { return t.Original }),
		nearestOf(name, s.catalog.tools, func(t *Tool) string { return t.Name }),
	)
}

// nearestServer returns the server that was probably meant by a name which is similar to that of no tool, and
// begins with that of no server, or "".
func (s *Set) nearestServer(name string) string {
	if s.catalog == nil || len(name) > maxName || slices.ContainsFunc(s.catalog.servers, func(server string) bool { return fits(name, server) }) {
		return ""
	}
	for i, r := range name {
		if r != '_' {
			continue
		}
		if meant := nearest.Of(name[:i], s.catalog.servers); meant != "" {
			return meant
		}
	}
	return ""
}

// nearestOf returns the safe name of the tool whose text is the most similar one, or "".
func nearestOf(wanted string, tools []*Tool, text func(*Tool) string) string {
	texts := make([]string, len(tools))
	for i, tool := range tools {
		texts[i] = text(tool)
	}
	if i := slices.Index(texts, nearest.Of(wanted, texts)); i >= 0 {
		return tools[i].Name
	}
	return ""
}

// beforeCall returns the failure of a listing as that of a call which was not sent.
func beforeCall(err error) error {
	var f *messages.Failure
	if !errors.As(err, &f) || f == nil {
		return err
	}
	unsent := *f
	unsent.MayHaveRun, unsent.Replayed = false, false
	return &unsent
}
