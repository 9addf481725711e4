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
		params, uncached := copyOf(op.Params), isUncached(op, c.isModern)
		if uncached {
			params.URI = uncachedURI
		}
		result, err := cs.ReadResource(ctx, params)
		if ex := wire.ExchangeOf(ctx); uncached && ex.Read != nil {
			result = ex.Read
		}
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
func (c caller) list(ctx context.Context, op messages.Operation) (result messages.Result, err error) {
	var incomplete string
	switch op.(type) {
	case *messages.ListTools:
		all := &mcp.ListToolsResult{Tools: []*mcp.Tool{}}
		result = &messages.ToolList{Result: all}
		incomplete, err = pages(ctx, c, all, func(ctx context.Context, cursor string) (*mcp.ListToolsResult, error) {
			return c.cs.ListTools(ctx, &mcp.ListToolsParams{Cursor: cursor})
		}, func(r *mcp.ListToolsResult) page[*mcp.Tool] {
			return page[*mcp.Tool]{&r.Meta, &r.Cacheable, &r.Tools, &r.NextCursor}
		})
	case *messages.ListResources:
		all := &mcp.ListResourcesResult{Resources: []*mcp.Resource{}}
		result = &messages.ResourceList{Result: all}
		incomplete, err = pages(ctx, c, all, func(ctx context.Context, cursor string) (*mcp.ListResourcesResult, error) {
			return c.cs.ListResources(ctx, &mcp.ListResourcesParams{Cursor: cursor})
		}, func(r *mcp.ListResourcesResult) page[*mcp.Resource] {
			return page[*mcp.Resource]{&r.Meta, &r.Cacheable, &r.Resources, &r.NextCursor}
		})
	case *messages.ListResourceTemplates:
		all := &mcp.ListResourceTemplatesResult{ResourceTemplates: []*mcp.ResourceTemplate{}}
		result = &messages.ResourceTemplateList{Result: all}
		incomplete, err = pages(ctx, c, all, func(ctx context.Context, cursor string) (*mcp.ListResourceTemplatesResult, error) {
			return c.cs.ListResourceTemplates(ctx, &mcp.ListResourceTemplatesParams{Cursor: cursor})
		}, func(r *mcp.ListResourceTemplatesResult) page[*mcp.ResourceTemplate] {
			return page[*mcp.ResourceTemplate]{&r.Meta, &r.Cacheable, &r.ResourceTemplates, &r.NextCursor}
		})
	case *messages.ListPrompts:
		all := &mcp.ListPromptsResult{Prompts: []*mcp.Prompt{}}
		result = &messages.PromptList{Result: all}
		incomplete, err = pages(ctx, c, all, func(ctx context.Context, cursor string) (*mcp.ListPromptsResult, error) {
			return c.cs.ListPrompts(ctx, &mcp.ListPromptsParams{Cursor: cursor})
		}, func(r *mcp.ListPromptsResult) page[*mcp.Prompt] {
			return page[*mcp.Prompt]{&r.Meta, &r.Cacheable, &r.Prompts, &r.NextCursor}
		})
	default:
		return nil, &mcpbridge.Error{Class: mcpbridge.Invalid, Detail: fmt.Sprintf("operation %T is not known here", op)}
	}
	result.GetReceipt().Incomplete = incomplete
	return result, err
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
