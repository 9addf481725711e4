package bridge

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"reflect"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/identity"
	"github.com/mcpactor/mcpactor/internal/introduction"
	"github.com/mcpactor/mcpactor/internal/results"
	"github.com/mcpactor/mcpactor/internal/schemas"
	"github.com/mcpactor/mcpactor/internal/tasks"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/redact"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/transport"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
	"github.com/mcpactor/mcpactor/messages"
)

// callbacksOf returns the callbacks of the session that ctx belongs to. The SDK calls its handlers with the
// values of the context that the session was connected with.
func callbacksOf(ctx context.Context) *callbacks {
	if c, ok := wire.ExchangeOf(ctx).Owner.(*callbacks); ok {
		return c
	}
	return &callbacks{session: &transport.Session{Cut: ctx}, server: new(mcpbridge.Server)} // of no session
}

// sdkClient is the client of the SDK for many sessions. Its handlers find their session in the context.
type sdkClient struct {
	*mcp.Client
	send         mcp.MethodHandler
	receive      mcp.MethodHandler   // handles a question of a server
	info         *mcp.Implementation // or nil
	capabilities *mcp.ClientCapabilities
	declared     string // see [identity.OfCapabilities]
}

// declaredWith returns what a dial with an introduction declares, see [dial.Info].
func (c *sdkClient) declaredWith(in *messages.Introduction) string {
	return introduction.Declared(c.declared, in)
}

// ourInfo is the name of the client, unless the configuration of the server has another one.
var ourInfo = &mcp.Implementation{Name: "mcpactor", Version: "0.2.0"}

// newClient returns a client of the SDK. info is its name, or nil.
func newClient(info *mcp.Implementation, capabilities *mcp.ClientCapabilities, log slog.Handler) *sdkClient {
	if capabilities == nil {
		capabilities = &mcp.ClientCapabilities{}
	}
	options := &mcp.ClientOptions{
		Capabilities: capabilities,
		Logger:       slog.New(log),
		ToolListChangedHandler: func(ctx context.Context, _ *mcp.ToolListChangedRequest) {
			callbacksOf(ctx).hear(&messages.ToolsChanged{})
		},
		PromptListChangedHandler: func(ctx context.Context, _ *mcp.PromptListChangedRequest) {
			callbacksOf(ctx).hear(&messages.PromptsChanged{})
		},
		ResourceListChangedHandler: func(ctx context.Context, _ *mcp.ResourceListChangedRequest) {
			callbacksOf(ctx).hear(&messages.ResourcesChanged{})
		},
		ResourceUpdatedHandler: func(ctx context.Context, req *mcp.ResourceUpdatedNotificationRequest) {
			raw := callbacksOf(ctx).asSent(req.Params)
			callbacksOf(ctx).hear(&messages.ResourceUpdated{URI: req.Params.URI, Meta: req.Params.Meta, AsSent: raw})
		},
		LoggingMessageHandler: func(ctx context.Context, req *mcp.LoggingMessageRequest) {
			defer callbacksOf(ctx).logs.passed()
			of, raw := callbacksOf(ctx).logOf(req.Params), callbacksOf(ctx).asSent(req.Params)
			callbacksOf(ctx).hear(&messages.ServerLog{
				Level: string(req.Params.Level), Logger: req.Params.Logger, Data: req.Params.Data, Operation: of, Meta: req.Params.Meta, AsSent: raw,
			})
		},
		ElicitationCompleteHandler: func(ctx context.Context, req *mcp.ElicitationCompleteNotificationRequest) {
			raw := callbacksOf(ctx).asSent(req.Params)
			callbacksOf(ctx).hear(&messages.ElicitationCompleted{ElicitationID: req.Params.ElicitationID, Meta: req.Params.Meta, AsSent: raw})
		},
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true}, // see inputIn
	}
	if capabilities.Elicitation != nil {
		options.ElicitationHandler = elicit
	}
	if capabilities.Sampling != nil {
		options.CreateMessageWithToolsHandler = sample
	}
	c := &sdkClient{
		Client:       mcp.NewClient(cmp.Or(info, ourInfo), options),
		info:         info,
		capabilities: capabilities, declared: identity.OfCapabilities(capabilities),
	}
	c.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		c.receive = receiving(next)
		return c.receive
	})
	c.AddSendingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		c.send = sending(next)
		return c.send
	})
	if declaresTasks(capabilities) {
		for _, method := range []string{tasks.MethodGet, tasks.MethodUpdate, tasks.MethodCancel} {
			mcp.AddSendingCustomMethod[*customParams, *customResult](c.Client, method) //nolint:errcheck // none is a method of the SDK
		}
	}
	return c
}

// elicit passes on a question for input of the user. The SDK checks the answer against the form.
func elicit(ctx context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	if err := checkForm(req.Params.RequestedSchema); err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "requestedSchema: cannot be used: " + err.Error()}
	}
	answer, err := askFor[*messages.Elicited](ctx, &messages.Elicit{Params: req.Params})
	if err != nil {
		return nil, err
	}
	if r := answer.Result; r != nil && r.Action == "accept" && r.Content == nil {
		empty := *r
		empty.Content = map[string]any{} // the SDK checks it against the form
		return &empty, nil
	}
	return answer.Result, nil
}

// checkForm returns an error for the schema of a form that the SDK cannot check an answer against.
func checkForm(form any) error {
	if form == nil {
		return nil
	}
	text, err := json.Marshal(form)
	var read jsonschema.Schema
	if err == nil {
		err = json.Unmarshal(text, &read)
	}
	if err != nil {
		return err
	}
	return schemas.Check(&read)
}

// sample passes on a question for a message of a model.
func sample(ctx context.Context, req *mcp.CreateMessageWithToolsRequest) (*mcp.CreateMessageWithToolsResult, error) {
	answer, err := askFor[*messages.Sampled](ctx, &messages.Sample{Params: req.Params})
	if err != nil {
		return nil, err
	}
	return answer.Result, nil
}

// listRoots returns the roots of the session, or passes the question on.
func listRoots(ctx context.Context) (mcp.Result, error) {
	if set := callbacksOf(ctx).roots.Load(); set != nil {
		return &mcp.ListRootsResult{Roots: append([]*mcp.Root{}, set.Roots...)}, nil
	}
	answer, err := askFor[*messages.Roots](ctx, &messages.ListRoots{})
	if err != nil {
		return nil, err
	}
	return &mcp.ListRootsResult{Roots: append([]*mcp.Root{}, answer.Roots...)}, nil
}

// askFor passes on a question, and waits for an answer of its type.
func askFor[A messages.Answer](ctx context.Context, req messages.Request) (answer A, err error) {
	reason := "the answer is of another kind"
	switch got := callbacksOf(ctx).ask(ctx, req).(type) {
	case A:
		return got, nil
	case *messages.Refusal:
		reason = got.Reason
	}
	return answer, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: reason}
}

// passOn passes on a question as it came, and returns the answer as it is. The SDK would check both, and refuse what it
// does not know.
func passOn(ctx context.Context, params mcp.Params, raw messages.AsSent) (mcp.Result, error) {
	switch p := params.(type) {
	case *mcp.ElicitParams:
		answer, err := askFor[*messages.Elicited](ctx, &messages.Elicit{Params: p, AsSent: raw})
		if err != nil {
			return nil, err
		}
		return asItCame(answer.Result, answer.Verbatim), nil
	case *mcp.CreateMessageWithToolsParams:
		answer, err := askFor[*messages.Sampled](ctx, &messages.Sample{Params: p, AsSent: raw})
		if err != nil {
			return nil, err
		}
		return asItCame(answer.Result, answer.Verbatim), nil
	}
	return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "the question is not known"}
}

// asItCame returns an answer as it came, if it was kept, or else as the SDK has it.
func asItCame(answer mcp.Result, raw json.RawMessage) mcp.Result {
	if raw != nil {
		return &rawResult{raw: raw}
	}
	return answer
}

// receiving is middleware for the messages of a server. It finds the operation that a question belongs to. It answers
// roots/list, which the SDK would answer alike for all sessions. It refuses missing parameters, after which the SDK
// panics (go-sdk#186).
func receiving(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (result mcp.Result, err error) {
		refused := &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: method + " cannot be handled as it is"}
		defer func() {
			if r := recover(); r != nil {
				result, err = nil, refused
			}
		}()
		if rpc.IsQuestion(method) {
			if ex := callbacksOf(ctx).origin(req.GetParams()); ex != nil {
				ctx = wire.InExchange(ctx, ex)
			}
		}
		switch method {
		case rpc.MethodListRoots:
			return listRoots(ctx)
		case rpc.MethodElicit, rpc.MethodCompleted, rpc.MethodUpdated:
			if reflect.ValueOf(req.GetParams()).IsNil() {
				return nil, refused
			}
		}
		if rpc.IsQuestion(method) {
			if raw := callbacksOf(ctx).asSent(req.GetParams()); raw.Verbatim != nil {
				return passOn(ctx, req.GetParams(), raw)
			}
		}
		return next(ctx, method, req)
	}
}

// sending is the innermost middleware for requests to a server. It notes that another request of the operation begins,
// and adds the log level, the trace and the progress token. The parameters and the result bypass the SDK, which would
// encode and decode them several times.
func sending(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		ex, c, wanted := wire.ExchangeOf(ctx), callbacksOf(ctx), results.Knows(method)
		ex.Begin(wanted)
		if level := c.logLevel(); level != "" && req.GetParams() != nil && req.GetParams().GetMeta()[mcp.MetaKeyLogLevel] == nil {
			setMeta(req.GetParams(), mcp.MetaKeyLogLevel, level)
		}
		if trace := messages.TraceOf(ctx); trace.Parent != "" && req.GetParams() != nil {
			addTrace(req.GetParams(), trace)
		}
		switch method {
		case rpc.MethodInitialize:
			return initialize(ctx, next, req)
		case rpc.MethodDiscover:
			return discover(ctx, c, next, req)
		}
		c.uses.adaptMeta(req.GetParams())
		if params, is := req.GetParams().(*mcp.ReadResourceParams); is && params.URI == uncachedURI {
			req = withParams{req, ofOperation(params, ex.Operation)}
		}
		if ex.ProgressToken != "" {
			if params, ok := req.GetParams().(mcp.RequestParams); ok {
				params.SetProgressToken(ex.ProgressToken)
			}
		}
		if extra := c.uses.adaptExtra(extraOf(ex.Operation, method)); len(extra) > 0 && req.GetParams() != nil {
			params, err := withFields(req.GetParams(), extra)
			if err != nil {
				return nil, err
			}
			req = withParams{req, params}
		}
		if params := withEmptyCursor(req.GetParams(), method); params != nil {
			req = withParams{req, params}
		}
		if wanted && req.GetParams() != nil && c.uses.carriesParams {
			params, err := rpc.EncodeParams(req.GetParams())
			if err != nil {
				return nil, err
			}
			ex.Carries(params)
			req = withParams{req, nil}
		}
		result, err := next(ctx, method, req)
		raw := ex.Result()
		if raw == nil {
			return result, err
		}
		if c.uses.isModern && isAsIs(ex.Operation, method) && results.IsUnfinished(method, raw) {
			ex.Keep(raw)
			return results.Empty(method), nil
		}
		if asked := inputIn(raw, method, c.uses.isModern); asked != nil {
			return nil, asked
		}
		if task := taskIn(raw, method, c.uses.followsTasks); task != nil {
			return nil, task
		}
		if err := results.Check(method, raw, c.uses.isModern); err != nil {
			return nil, &mcpbridge.Error{Class: mcpbridge.Protocol, Sent: true, Detail: redact.Clean(err.Error()), Err: err}
		}
		result, err = decoded(ex, method, raw, isVerbatim(ex.Operation, method))
		if read, is := result.(*mcp.ReadResourceResult); is && isUncached(ex.Operation, c.uses.isModern) {
			ex.Read = read
			return &mcp.ReadResourceResult{}, err
		}
		return result, err
	}
}

// discover sends server/discover. It is no part of sending, where its function would make each request allocate.
func discover(ctx context.Context, c *callbacks, next mcp.MethodHandler, req mcp.Request) (mcp.Result, error) {
	return c.dialing.Load().discover(ctx, func(ctx context.Context) (mcp.Result, json.RawMessage, error) {
		return introduce(ctx, next, rpc.MethodDiscover, req)
	})
}

// initialize sends initialize with the further parameters that the configuration has, and keeps the result as it came if the
// configuration says so.
func initialize(ctx context.Context, next mcp.MethodHandler, req mcp.Request) (mcp.Result, error) {
	ex, shaking := wire.ExchangeOf(ctx), callbacksOf(ctx).dialing.Load()
	further, keep := shaking.introduction()
	if p, is := req.GetParams().(*mcp.InitializeParams); is {
		p.ProtocolVersion = shaking.initializeVersion(p.ProtocolVersion)
	}
	if len(further) > 0 {
		params, err := rpc.EncodeParams(req.GetParams())
		if p, is := req.GetParams().(*mcp.InitializeParams); is && err == nil && p.Capabilities.RootsV2 == nil {
			params, err = withoutRoots(params) // the SDK would drop them later
		}
		if err == nil {
			params, err = withMembers(params, further)
		}
		if err != nil {
			return nil, err
		}
		req = withParams{req, &customParams{fields: params}}
	}
	result, raw, err := introduce(ctx, next, rpc.MethodInitialize, req)
	shaking.introduced(ex.Odd())
	if found, ok := result.(*mcp.InitializeResult); err != nil || ok && !slices.Contains(mcp.SupportedProtocolVersions(), found.ProtocolVersion) {
		shaking.notInitialized(ctx, err)
	}
	if keep != nil {
		*keep = raw
	}
	return result, err
}

// introduce sends a request of the handshake, and returns what the server says about itself, and as it came. The SDK gets it as
// well, because it needs the session id in the response. For an odd part it would give up the session.
func introduce(ctx context.Context, next mcp.MethodHandler, method string, req mcp.Request) (result mcp.Result, raw json.RawMessage, err error) {
	ex := wire.ExchangeOf(ctx)
	ex.Begin(false)
	ex.Copy()
	before := len(ex.Kept())
	result, err = next(ctx, method, req)
	if kept := ex.Kept(); len(kept) > before {
		raw = kept[before]
		result, err = decoded(ex, method, raw, false)
	}
	return result, raw, err
}

// addTrace adds a trace to _meta (SEP-414), unless the caller has set one.
func addTrace(params mcp.Params, trace messages.Trace) {
	if _, own := params.GetMeta()[metaTraceParent]; own {
		return
	}
	setMeta(params, metaTraceParent, trace.Parent)
	if trace.State != "" {
		setMeta(params, metaTraceState, trace.State)
	}
}

// The keys of a trace in _meta.
const (
	metaTraceParent = "traceparent"
	metaTraceState  = "tracestate"
)

// setMeta sets a key of _meta.
func setMeta(params mcp.Params, key, value string) {
	meta := params.GetMeta()
	if meta == nil {
		meta = map[string]any{}
	}
	meta[key] = value
	params.SetMeta(meta)
}
