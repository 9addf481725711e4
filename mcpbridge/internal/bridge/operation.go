package bridge

import (
	"context"
	"fmt"
	"maps"
	"reflect"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
	"github.com/mcpactor/mcpactor/messages"
)

// caller runs operations with the SDK.
type caller struct {
	cs       *mcp.ClientSession
	maxBytes int // of all pages of a list together
}

// run runs one operation. Operations that the bridge itself takes part in are not known here.
func (c caller) run(ctx context.Context, op messages.Operation) (messages.Result, error) {
	cs := c.cs
	switch op := op.(type) {
	case *messages.CallTool:
		result, err := cs.CallTool(ctx, callParams(op.Params))
		if ex := wire.ExchangeOf(ctx); ex.HasMismatchedHeaders() {
			// Some arguments are headers as well (x-mcp-header). The SDK knows them
			// when it has listed the tools on this session.
			if _, listed := c.list(ctx, &messages.ListTools{}); listed == nil {
				ex.Restart()
				result, err = cs.CallTool(ctx, callParams(op.Params))
			}
		}
		return &messages.ToolResult{Result: result}, err
	case *messages.ReadResource:
		result, err := cs.ReadResource(ctx, copyOf(op.Params))
		return &messages.ResourceContents{Result: result}, err
	case *messages.GetPrompt:
		result, err := cs.GetPrompt(ctx, copyOf(op.Params))
		return &messages.Prompt{Result: result}, err
	case *messages.Complete:
		result, err := cs.Complete(ctx, copyOf(op.Params))
		return &messages.Completion{Result: result}, err
	case *messages.Subscribe:
		return &messages.Ack{}, cs.Subscribe(ctx, &mcp.SubscribeParams{URI: op.URI})
	case *messages.Unsubscribe:
		return &messages.Ack{}, cs.Unsubscribe(ctx, &mcp.UnsubscribeParams{URI: op.URI})
	case *messages.SetLogLevel:
		return &messages.Ack{}, cs.SetLoggingLevel(ctx, &mcp.SetLoggingLevelParams{Level: mcp.LoggingLevel(op.Level)})
	case *messages.Ping:
		var params *mcp.PingParams
		if messages.TraceOf(ctx).Parent != "" { // which needs them
			params = &mcp.PingParams{}
		}
		return &messages.Ack{}, cs.Ping(ctx, params)
	}
	return c.list(ctx, op)
}

// list runs an operation whose answer comes in pages.
func (c caller) list(ctx context.Context, op messages.Operation) (messages.Result, error) {
	cs, ex := c.cs, wire.ExchangeOf(ctx)
	switch op.(type) {
	case *messages.ListTools:
		all := &mcp.ListToolsResult{Tools: []*mcp.Tool{}}
		incomplete, err := pages(ex, c.maxBytes, func(cursor string) (*mcp.ListToolsResult, error) {
			return cs.ListTools(ctx, &mcp.ListToolsParams{Cursor: cursor})
		}, func(page *mcp.ListToolsResult) {
			all.Meta, all.Tools = page.Meta, append(all.Tools, page.Tools...)
			all.Cacheable = narrower(all.Cacheable, page.Cacheable)
		}, func(page *mcp.ListToolsResult) string { return page.NextCursor })
		return &messages.ToolList{Receipt: messages.Receipt{Incomplete: incomplete}, Result: all}, err
	case *messages.ListResources:
		all := &mcp.ListResourcesResult{Resources: []*mcp.Resource{}}
		incomplete, err := pages(ex, c.maxBytes, func(cursor string) (*mcp.ListResourcesResult, error) {
			return cs.ListResources(ctx, &mcp.ListResourcesParams{Cursor: cursor})
		}, func(page *mcp.ListResourcesResult) {
			all.Meta, all.Resources = page.Meta, append(all.Resources, page.Resources...)
			all.Cacheable = narrower(all.Cacheable, page.Cacheable)
		}, func(page *mcp.ListResourcesResult) string { return page.NextCursor })
		return &messages.ResourceList{Receipt: messages.Receipt{Incomplete: incomplete}, Result: all}, err
	case *messages.ListResourceTemplates:
		all := &mcp.ListResourceTemplatesResult{ResourceTemplates: []*mcp.ResourceTemplate{}}
		incomplete, err := pages(ex, c.maxBytes, func(cursor string) (*mcp.ListResourceTemplatesResult, error) {
			return cs.ListResourceTemplates(ctx, &mcp.ListResourceTemplatesParams{Cursor: cursor})
		}, func(page *mcp.ListResourceTemplatesResult) {
			all.Meta, all.ResourceTemplates = page.Meta, append(all.ResourceTemplates, page.ResourceTemplates...)
			all.Cacheable = narrower(all.Cacheable, page.Cacheable)
		}, func(page *mcp.ListResourceTemplatesResult) string { return page.NextCursor })
		return &messages.ResourceTemplateList{Receipt: messages.Receipt{Incomplete: incomplete}, Result: all}, err
	case *messages.ListPrompts:
		all := &mcp.ListPromptsResult{Prompts: []*mcp.Prompt{}}
		incomplete, err := pages(ex, c.maxBytes, func(cursor string) (*mcp.ListPromptsResult, error) {
			return cs.ListPrompts(ctx, &mcp.ListPromptsParams{Cursor: cursor})
		}, func(page *mcp.ListPromptsResult) {
			all.Meta, all.Prompts = page.Meta, append(all.Prompts, page.Prompts...)
			all.Cacheable = narrower(all.Cacheable, page.Cacheable)
		}, func(page *mcp.ListPromptsResult) string { return page.NextCursor })
		return &messages.PromptList{Receipt: messages.Receipt{Incomplete: incomplete}, Result: all}, err
	}
	return nil, &mcpbridge.Error{Class: mcpbridge.Invalid, Detail: fmt.Sprintf("operation %T is not known here", op)}
}

// narrower returns for how long, and for whom, both of two parts of a list may be kept. A part without a ttlMs says nothing
// about the time.
func narrower(one, two mcp.Cacheable) mcp.Cacheable {
	if one.TTLMs <= 0 || two.TTLMs > 0 && two.TTLMs < one.TTLMs {
		one.TTLMs = two.TTLMs
	}
	if one.CacheScope != "private" {
		one.CacheScope = two.CacheScope
	}
	return one
}

// callParams returns a copy of the parameters of a call.
func callParams(params *mcp.CallToolParams) *mcp.CallToolParams {
	params = copyOf(params)
	if v := reflect.ValueOf(params.Arguments); v.Kind() == reflect.Map && v.IsNil() {
		params.Arguments = nil // a nil map would be null on the wire, which is no object
	}
	return params
}

// copyOf returns a copy of parameters: the SDK writes into them, and an operation may
// be run twice.
func copyOf[T any, P interface {
	*T
	mcp.Params
}](params P) P {
	copied := *params
	p := P(&copied)
	p.SetMeta(maps.Clone(p.GetMeta()))
	return p
}
