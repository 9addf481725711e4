package bridge

import (
	"context"
	"fmt"
	"reflect"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"

	"github.com/mcpactor/mcpactor/internal/bridge/rpc"
)

// maxAsked bounds the requests of one server that are not answered yet.
const maxAsked = 64

// newClient returns the SDK's client of all sessions. What its handlers are told
// belongs to the connection that is in their context.
func newClient(capabilities *mcp.ClientCapabilities) (client *mcp.Client, send mcp.MethodHandler) {
	options := &mcp.ClientOptions{
		Capabilities: capabilities,
		ToolListChangedHandler: func(ctx context.Context, _ *mcp.ToolListChangedRequest) {
			connOf(ctx).unlearn()
			connOf(ctx).hear(&messages.ToolsChanged{})
		},
		PromptListChangedHandler: func(ctx context.Context, _ *mcp.PromptListChangedRequest) {
			connOf(ctx).hear(&messages.PromptsChanged{})
		},
		ResourceListChangedHandler: func(ctx context.Context, _ *mcp.ResourceListChangedRequest) {
			connOf(ctx).hear(&messages.ResourcesChanged{})
		},
		ResourceUpdatedHandler: func(ctx context.Context, req *mcp.ResourceUpdatedNotificationRequest) {
			connOf(ctx).hear(&messages.ResourceUpdated{URI: req.Params.URI})
		},
		LoggingMessageHandler: func(ctx context.Context, req *mcp.LoggingMessageRequest) {
			connOf(ctx).hear(&messages.ServerLog{Level: string(req.Params.Level), Logger: req.Params.Logger, Data: req.Params.Data})
		},
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true}, // see rounds
	}
	if capabilities.Elicitation != nil {
		options.ElicitationHandler = func(ctx context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			answer, err := askFor[*messages.Elicited](ctx, &messages.Elicit{Params: req.Params})
			if err != nil {
				return nil, err
			}
			if r := answer.Result; r != nil && r.Action == "accept" && r.Content == nil {
				empty := *r
				empty.Content = map[string]any{} // which the SDK checks against the form
				return &empty, nil
			}
			return answer.Result, nil
		}
	}
	if capabilities.Sampling != nil {
		options.CreateMessageWithToolsHandler = func(ctx context.Context, req *mcp.CreateMessageWithToolsRequest) (*mcp.CreateMessageWithToolsResult, error) {
			answer, err := askFor[*messages.Sampled](ctx, &messages.Sample{Params: req.Params})
			if err != nil {
				return nil, err
			}
			return answer.Result, nil
		}
	}
	client = mcp.NewClient(&mcp.Implementation{Name: "mcpactor", Version: "0.1.0"}, options)
	var receive mcp.MethodHandler
	client.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		receive = received(next)
		return receive
	})
	client.AddSendingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		send = begin(next)
		return rounds(send, receive)
	})
	return client, send
}

// received is middleware for what comes from a server. It answers roots/list, which
// the SDK would answer alike for all sessions, and refuses what the SDK does not
// survive: parameters that are missing.
func received(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (result mcp.Result, err error) {
		refused := &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: method + " cannot be handled as it is"}
		defer func() {
			if r := recover(); r != nil {
				result, err = nil, refused
			}
		}()
		switch method {
		case rpc.MethodListRoots:
			return connOf(ctx).listRoots(ctx)
		case "elicitation/create", "notifications/elicitation/complete", "notifications/resources/updated":
			if reflect.ValueOf(req.GetParams()).IsNil() {
				return nil, refused
			}
		}
		return next(ctx, method, req)
	}
}

// listRoots returns the roots of the session, or else asks for them.
func (c *conn) listRoots(ctx context.Context) (mcp.Result, error) {
	set := c.roots.Load()
	if set == nil {
		answer, err := askFor[*messages.Roots](ctx, &messages.ListRoots{})
		if err != nil {
			return nil, err
		}
		return &mcp.ListRootsResult{Roots: append([]*mcp.Root{}, answer.Roots...)}, nil
	}
	return &mcp.ListRootsResult{Roots: append([]*mcp.Root{}, set.Roots...)}, nil
}

// setRoots replaces the roots of the session.
func (c *conn) setRoots(ctx context.Context, op *messages.SetRoots) error {
	roots := c.at.bridge.capabilities.RootsV2
	if roots == nil {
		return &mcpbridge.Error{Class: mcpbridge.Invalid, Detail: "the configured capabilities have no roots"}
	}
	c.roots.Store(op)
	if !roots.ListChanged || c.info.Server.ProtocolVersion > protocolLegacy {
		return nil
	}
	_, err := c.at.bridge.send(ctx, rpc.MethodRootsChanged, &mcp.ClientRequest[*mcp.RootsListChangedParams]{Session: c.cs, Params: &mcp.RootsListChangedParams{}})
	return err
}

// hear passes a notification on.
func (c *conn) hear(n messages.Notification) {
	if o := c.owner.Load(); o != nil && o.heard != nil {
		o.heard(n, nil)
	}
}

// askFor passes a request on, and waits for an answer of the type that it wants.
func askFor[A messages.Answer](ctx context.Context, req messages.Request) (answer A, err error) {
	refuse := func(reason string) (A, error) {
		return answer, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: reason}
	}
	c := connOf(ctx)
	o := c.owner.Load()
	if o == nil || o.ask == nil {
		return refuse("nobody is there who could answer")
	}
	if c.asked.Add(1) > maxAsked {
		c.asked.Add(-1)
		return refuse(fmt.Sprintf("%d requests are waiting for an answer already", maxAsked))
	}
	defer c.asked.Add(-1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.cut, cancel)()
	switch got := o.ask(ctx, req).(type) {
	case A:
		return got, nil
	case *messages.Refusal:
		return refuse(got.Reason)
	default:
		return refuse("the answer is of another kind")
	}
}
