package telemetrytest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/supervisor/telemetry"
	"github.com/mcpactor/mcpactor/tests/faults"
	"github.com/mcpactor/mcpactor/toolset"
)

// parents records the traceparent of each request of a kind, in _meta and in the header.
func (h *harness) parents(kind string) func() [][2]string {
	var mu sync.Mutex
	var all [][2]string
	h.script.Inject(kind, func(w http.ResponseWriter, r *faults.Request, next http.Handler) {
		mu.Lock()
		all = append(all, [2]string{metaOf(r)["traceparent"], r.Header.Get("Traceparent")})
		mu.Unlock()
		next.ServeHTTP(w, r.Request)
	})
	return func() [][2]string {
		mu.Lock()
		defer mu.Unlock()
		return all
	}
}

// metaOf returns the texts in the _meta of a request.
func metaOf(r *faults.Request) map[string]string {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var msg struct {
		Params struct {
			Meta map[string]any `json:"_meta"`
		} `json:"params"`
	}
	json.Unmarshal(body, &msg)
	texts := map[string]string{}
	for key, value := range msg.Params.Meta {
		if text, ok := value.(string); ok {
			texts[key] = text
		}
	}
	return texts
}

// idOf returns the id of a request, as it was sent.
func idOf(t *testing.T, r *faults.Request) string {
	body, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	r.Body = io.NopCloser(bytes.NewReader(body))
	var msg struct {
		ID json.Number `json:"id"`
	}
	require.NoError(t, json.Unmarshal(body, &msg))
	return msg.ID.String()
}

// parentOf returns the traceparent of a span.
func parentOf(span sdktrace.ReadOnlySpan) string {
	sc := span.SpanContext()
	return "00-" + sc.TraceID().String() + "-" + sc.SpanID().String() + "-" + sc.TraceFlags().String()
}

// carries returns what a request has that carries a span.
func carries(span sdktrace.ReadOnlySpan) [2]string { return [2]string{parentOf(span), parentOf(span)} }

func TestCallThroughExpiryHasASpanForEachStep(t *testing.T) {
	cfg := supervisor.Config{Servers: []supervisor.Server{{Name: "s", Setup: []*mcp.CallToolParams{{Name: "login"}}}}}
	scenario(t, cfg, nil, func(t *testing.T, h *harness) {
		h.script.Tool("login").Returns("in")
		h.script.Tool("add").Returns("1").Fails(faults.SessionExpired).Returns("2")
		var ids []string
		h.script.Inject("tools/call", func(w http.ResponseWriter, r *faults.Request, next http.Handler) {
			ids = append(ids, idOf(t, r))
			next.ServeHTTP(w, r.Request)
		})
		requests, handshakes := h.parents("tools/call"), h.parents("server/discover")

		// The first call waits for the first dial.
		_, err := h.call(t.Context(), "a", "add")
		require.NoError(t, err)
		call, dial, setup := h.one("tools/call add"), h.one("dial"), h.one("setup")
		require.False(t, call.Parent().IsValid())
		require.Equal(t, trace.SpanKindClient, call.SpanKind())
		require.Equal(t, codes.Unset, call.Status().Code)
		require.Equal(t, map[string]any{
			"mcp.method.name": "tools/call", "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "add", "mcpactor.server": "s",
			"mcp.protocol.version": h.protocol(), "mcpactor.queue.duration": 0.0,
			"mcpactor.attempt": int64(1), "mcpactor.generation": int64(1), "mcpactor.replayed": false,
			"jsonrpc.request.id": ids[1], "network.transport": "tcp", "server.address": "script.invalid", "server.port": int64(443),
		}, attributes(call.Attributes()))
		require.Equal(t, ids[0], attributes(h.one("setup").Attributes())["jsonrpc.request.id"])
		require.NotEmpty(t, call.InstrumentationScope().Version)
		require.Empty(t, call.Links(), "the dial is its child")
		for _, child := range []sdktrace.ReadOnlySpan{dial, setup} {
			require.Equal(t, call.SpanContext(), child.Parent(), child.Name())
			require.Equal(t, trace.SpanKindClient, child.SpanKind())
		}
		require.Equal(t, map[string]any{
			"mcpactor.server": "s", "mcpactor.outcome": "opened", "network.transport": "tcp", "server.address": "script.invalid", "server.port": int64(443),
		}, attributes(dial.Attributes()))
		require.Equal(t, "login", attributes(setup.Attributes())["gen_ai.tool.name"])
		require.Equal(t, [][2]string{carries(setup), carries(call)}, requests())
		require.Contains(t, handshakes(), carries(dial))

		// The second one meets an expired session.
		_, err = h.call(t.Context(), "a", "add")
		require.NoError(t, err)
		calls, dials, replay := h.named("tools/call add"), h.named("dial"), h.one("replay")
		require.Len(t, calls, 2)
		require.Len(t, dials, 2)
		call, dial = calls[1], dials[1]
		require.Equal(t, call.SpanContext(), dial.Parent())
		require.Equal(t, call.SpanContext(), replay.Parent())
		require.Empty(t, replay.Links(), "the dial is a child of the call")
		require.EqualValues(t, 2, attributes(replay.Attributes())["mcpactor.attempt"])
		require.Equal(t, true, attributes(call.Attributes())["mcpactor.replayed"])
		require.EqualValues(t, 2, attributes(call.Attributes())["mcpactor.generation"])
		require.Equal(t, [][2]string{carries(call), carries(h.named("setup")[1]), carries(replay)}, requests()[2:])
	})
}

// protocol returns the version of MCP that the script speaks.
func (h *harness) protocol() string {
	reply, err := h.Client().Do(context.Background(), &messages.Inspect{})
	require.NoError(h.t, err)
	return reply.(*messages.Snapshot).Sessions[0].Protocol
}

func TestCallsThatWaitForOneRebuildHaveALinkToIt(t *testing.T) {
	const callers = 8
	scenario(t, supervisor.Config{}, nil, func(t *testing.T, h *harness) {
		h.script.Tool("add").Returns("1")
		// All wait for the first dial.
		h.script.Inject("initialize", faults.Delay(time.Second))
		var wait sync.WaitGroup
		for range callers {
			wait.Go(func() {
				_, err := h.call(t.Context(), "a", "add")
				require.NoError(t, err)
			})
		}
		wait.Wait()
		dial := h.one("dial")
		require.Equal(t, callers-1, h.linked("tools/call add", dial), "all but the first one")
		_, err := h.call(t.Context(), "a", "add")
		require.NoError(t, err)
		require.Equal(t, callers-1, h.linked("tools/call add", dial), "nor a call on an open session")

		// The session expires. All wait for the next one, those that have run and others.
		h.script.Expire(faults.Expiries()[0])
		for range callers {
			wait.Go(func() {
				_, err := h.call(t.Context(), "a", "add")
				require.NoError(t, err)
			})
		}
		wait.Wait()
		dials := h.named("dial")
		require.Len(t, dials, 2)
		replays := h.named("replay")
		require.NotEmpty(t, replays)
		require.Equal(t, callers-1, h.linked("replay", dials[1])+h.linked("tools/call add", dials[1]), "all but the one whose child it is")
	})
}

// linked returns how many spans of a name have a link to another one, which is the only one.
func (h *harness) linked(name string, to sdktrace.ReadOnlySpan) (n int) {
	for _, span := range h.named(name) {
		if len(span.Links()) == 1 && span.Links()[0].SpanContext.Equal(to.SpanContext()) {
			n++
		}
	}
	return n
}

func TestParentIsTheTraceOfTheMessageOrTheSpanOfTheClient(t *testing.T) {
	scenario(t, supervisor.Config{}, nil, func(t *testing.T, h *harness) {
		h.script.Tool("add").Returns("1")
		traced := messages.Trace{Parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", State: "vendor=one"}
		op := &messages.CallTool{Header: messages.To("s", "a"), Params: &mcp.CallToolParams{Name: "add"}}
		op.Trace = traced
		_, err := h.Client().Do(t.Context(), op)
		require.NoError(t, err)
		call := h.one("tools/call add")
		require.Equal(t, "0af7651916cd43dd8448eb211c80319c", call.SpanContext().TraceID().String())
		require.Equal(t, "b7ad6b7169203331", call.Parent().SpanID().String())
		require.Equal(t, "vendor=one", call.SpanContext().TraceState().String())
		require.True(t, call.Parent().IsRemote())
		require.Equal(t, traced, op.Trace, "operations are read-only")

		ctx, outer := h.tracer.Tracer("test").Start(t.Context(), "agent")
		_, err = h.call(ctx, "a", "add")
		require.NoError(t, err)
		outer.End()
		require.Equal(t, outer.SpanContext(), h.named("tools/call add")[1].Parent())

		_, err = h.Client().Do(ctx, op)
		require.NoError(t, err)
		require.Equal(t, "b7ad6b7169203331", h.named("tools/call add")[2].Parent().SpanID().String(), "the message comes first")
	})
}

func TestUnsampledTraceStaysUnsampledOnTheServer(t *testing.T) {
	scenario(t, supervisor.Config{}, nil, func(t *testing.T, h *harness) {
		h.script.Tool("add").Returns("1")
		requests := h.parents("tools/call")
		ctx := messages.WithTrace(t.Context(), messages.Trace{Parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"})
		_, err := h.call(ctx, "a", "add")
		require.NoError(t, err)
		require.Empty(t, h.spans.Started())
		require.Regexp(t, "^00-0af7651916cd43dd8448eb211c80319c-[0-9a-f]{16}-00$", requests()[0][0])
	})
}

func TestFailureIsInTheSpan(t *testing.T) {
	refuse := func(next actors.Runner) actors.Runner {
		return func(ctx context.Context, op messages.Operation) (messages.Result, error) {
			switch messages.TargetOf(op) {
			case "refused":
				return nil, context.Canceled
			case "panics":
				panic("a bug")
			}
			return next(ctx, op)
		}
	}
	scenario(t, supervisor.Config{Interceptors: []actors.Interceptor{refuse}}, nil, func(t *testing.T, h *harness) {
		h.script.Tool("broken").Does(func(context.Context, *faults.Run) (any, error) { return nil, context.DeadlineExceeded })
		h.script.Tool("invalid").Fails(faults.InvalidParams)
		h.script.Tool("unsafe").Fails(faults.LostAfterRun)
		for tool, want := range map[string]struct{ errorType, status string }{
			"broken": {"tool_error", ""}, "invalid": {"invalid", "-32602"}, "unsafe": {"lost", ""}, "refused": {"refused", ""}, "panics": {"internal", ""},
		} {
			_, err := h.call(t.Context(), "a", tool)
			if want.errorType == "tool_error" {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, messages.Code(want.errorType), tool)
			}
			call := h.one("tools/call " + tool)
			require.Equal(t, codes.Error, call.Status().Code, tool)
			seen := attributes(call.Attributes())
			require.Equal(t, want.errorType, seen["error.type"], tool)
			if want.status == "" {
				require.NotContains(t, seen, "rpc.response.status_code", tool)
			} else {
				require.Equal(t, want.status, seen["rpc.response.status_code"], tool)
			}
		}

		// The call that was lost waits for the list of the tools, which says whether it may be repeated.
		listed := h.one("setup")
		require.Equal(t, "tools/list", attributes(listed.Attributes())["mcp.method.name"])
		require.Equal(t, h.one("tools/call unsafe").SpanContext(), listed.Parent())

		// A dial that fails is in its own span. The call waits until its deadline.
		h.script.Stop()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := h.call(ctx, "b", "broken")
		require.ErrorIs(t, err, messages.CodeUnavailable)
		call := h.named("tools/call broken")[1]
		require.Equal(t, "unavailable", attributes(call.Attributes())["error.type"])
		require.NotContains(t, attributes(call.Attributes()), "mcpactor.attempt", "it was never run")
		failed := 0
		for _, dial := range h.named("dial") {
			if dial.Status().Code == codes.Error {
				failed++
				require.Equal(t, call.SpanContext(), dial.Parent())
				require.Equal(t, "failed", attributes(dial.Attributes())["mcpactor.outcome"])
				require.Equal(t, "unavailable", attributes(dial.Attributes())["error.type"])
			}
		}
		require.Positive(t, failed)
		require.NoError(t, h.script.Start())
	})
}

func TestSpansOfOtherOperationsHaveTheirTarget(t *testing.T) {
	scenario(t, supervisor.Config{}, nil, func(t *testing.T, h *harness) {
		h.script.MCP().AddResource(&mcp.Resource{URI: "file:///one?token=secret", Name: "one"}, func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: req.Params.URI, Text: "1"}}}, nil
		})
		h.script.MCP().AddPrompt(&mcp.Prompt{Name: "greet"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{}, nil
		})
		c := h.Client()
		_, err := c.ReadResource(t.Context(), "s", "a", "file:///one?token=secret")
		require.NoError(t, err)
		require.Equal(t, "file:///one", attributes(h.one("resources/read").Attributes())["mcp.resource.uri"])
		_, err = c.GetPrompt(t.Context(), "s", "a", &mcp.GetPromptParams{Name: "greet"})
		require.NoError(t, err)
		require.Equal(t, "greet", attributes(h.one("prompts/get greet").Attributes())["gen_ai.prompt.name"])
		_, err = c.Open(t.Context(), "s", "a")
		require.NoError(t, err)
		require.Equal(t, "initialize", attributes(h.one("initialize").Attributes())["mcp.method.name"])
	})
}

func TestNothingSecretIsInASpan(t *testing.T) {
	cfg := supervisor.Config{Servers: []supervisor.Server{{Name: "s", Headers: map[string]string{"Authorization": "Bearer secret-token"}}}}
	scenario(t, cfg, nil, func(t *testing.T, h *harness) {
		h.script.Tool("add").Returns("secret-result").Fails(faults.ServerError).Fails(faults.SessionExpired)
		for range 3 {
			h.Client().CallTool(t.Context(), "s", "secret-scope", &mcp.CallToolParams{Name: "add", Arguments: map[string]any{"a": "secret-argument"}})
		}
		synctest.Wait()
		require.NotEmpty(t, h.spans.Ended())
		for _, span := range h.spans.Ended() {
			text := span.Name() + span.Status().Description
			for key, value := range attributes(span.Attributes()) {
				text += " " + key
				if s, ok := value.(string); ok {
					text += "=" + s
				}
			}
			require.NotContains(t, text, "secret")
			require.NotContains(t, text, "mcp.session.id")
		}
	})
}

func TestNestedCallIsAChildOfTheCallThatCausesIt(t *testing.T) {
	var sup *supervisor.Supervisor
	nested := func(next actors.Runner) actors.Runner {
		return func(ctx context.Context, op messages.Operation) (messages.Result, error) {
			if messages.TargetOf(op) == "outer" {
				if _, err := sup.Client().CallTool(ctx, "s", "a", &mcp.CallToolParams{Name: "inner"}); err != nil {
					return nil, err
				}
			}
			return next(ctx, op)
		}
	}
	scenario(t, supervisor.Config{Interceptors: []actors.Interceptor{nested}}, nil, func(t *testing.T, h *harness) {
		sup = h.Supervisor
		h.script.Tool("outer").Returns("1")
		h.script.Tool("inner").Returns("1")
		requests := h.parents("tools/call")
		ctx := messages.WithTrace(t.Context(), messages.Trace{Parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"})
		_, err := h.call(ctx, "a", "outer")
		require.NoError(t, err)
		inner, outer := h.one("tools/call inner"), h.one("tools/call outer")
		require.Equal(t, outer.SpanContext().SpanID(), inner.Parent().SpanID())
		require.Equal(t, [][2]string{carries(inner), carries(outer)}, requests())
		require.Len(t, h.named("replay"), 0)
	})
}

func TestDialerOfAnotherWrapperIsKept(t *testing.T) {
	dials := 0
	cfg := dial.Wrap(supervisor.Config{}, func(d dial.Dialer) dial.Dialer {
		return dialFunc(func(ctx context.Context, req dial.Request) (dial.Conn, error) {
			dials++
			require.Equal(t, messages.TraceOf(ctx), req.Trace)
			return d.Dial(ctx, req)
		})
	})
	scenario(t, cfg, nil, func(t *testing.T, h *harness) {
		h.script.Tool("add").Returns("1")
		_, err := h.call(t.Context(), "a", "add")
		require.NoError(t, err)
		require.Equal(t, 1, dials)
	})
	_, _, err := telemetry.Start(nil, supervisor.Config{}, telemetry.Config{TracerProvider: sdktrace.NewTracerProvider()})
	require.ErrorContains(t, err, "servers: is empty")
}

func TestDialThatPanicsIsReported(t *testing.T) {
	cfg := dial.Replace(supervisor.Config{FailFast: true}, dialFunc(func(context.Context, dial.Request) (dial.Conn, error) { panic("a bug") }))
	scenario(t, cfg, nil, func(t *testing.T, h *harness) {
		_, err := h.call(t.Context(), "a", "add")
		require.ErrorIs(t, err, messages.CodeUnavailable)
		require.Equal(t, "internal", attributes(h.one("dial").Attributes())["error.type"])
		h.collect().find(t, "mcpactor.dial.duration", map[string]any{"mcpactor.server": "s", "mcpactor.outcome": "failed", "error.type": "internal"})
	})
}

type dialFunc func(context.Context, dial.Request) (dial.Conn, error)

func (f dialFunc) Dial(ctx context.Context, req dial.Request) (dial.Conn, error) {
	return f(ctx, req)
}

// The slow first dial is in the trace of whoever has caused it: also if a toolset lists tools first,
// and if an actor sends the message of Approve, which has no context.
func TestSpanOfTheCallerIsTheParentOnAllPathsOfAToolset(t *testing.T) {
	for name, run := range map[string]func(context.Context, *harness, *toolset.Toolset) error{
		"call": func(ctx context.Context, _ *harness, tools *toolset.Toolset) error {
			_, err := tools.Call(ctx, "s__add", nil)
			return err
		},
		"approve": func(ctx context.Context, h *harness, tools *toolset.Toolset) error {
			call, err := tools.Approve(ctx, "s__add", nil)
			if err != nil {
				return err
			}
			_, err = h.Client().Do(context.Background(), call)
			return err
		},
		"tools": func(ctx context.Context, h *harness, tools *toolset.Toolset) error {
			if _, err := tools.Tools(ctx); err != nil {
				return err
			}
			_, err := h.Client().CallTool(ctx, "s", "", &mcp.CallToolParams{Name: "add"})
			return err
		},
		"use": func(ctx context.Context, h *harness, tools *toolset.Toolset) error {
			use := &toolset.Use{Name: "s__add", Header: messages.Header{Trace: telemetry.TraceOf(ctx)}}
			told := make(chan *toolset.Told, 1)
			agent := h.System().Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
				switch msg := c.Message().(type) {
				case *actor.Started:
					c.Request(tools.PID(), use)
				case *toolset.Told:
					told <- msg
				}
			}))
			defer h.System().Root.Stop(agent)
			if failure := (<-told).Failure; failure != nil {
				return failure
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			scenario(t, supervisor.Config{Servers: []supervisor.Server{{Name: "s"}}}, nil, func(t *testing.T, h *harness) {
				h.script.Tool("add").Returns("1")
				tools, err := toolset.New(h.System(), h.Supervisor, toolset.Config{Servers: []toolset.Filter{{Name: "s"}}})
				require.NoError(t, err)
				defer tools.Close()
				ctx, span := h.tracer.Tracer("mine").Start(t.Context(), "turn")
				require.NoError(t, run(ctx, h, tools))
				span.End()
				list, dial, call := h.one("tools/list"), h.one("dial"), h.one("tools/call add")
				require.Equal(t, span.SpanContext().SpanID(), list.Parent().SpanID())
				require.Equal(t, list.SpanContext(), dial.Parent(), "the list waits for it")
				require.Equal(t, span.SpanContext().SpanID(), call.Parent().SpanID())
				require.Equal(t, span.SpanContext().TraceID(), dial.SpanContext().TraceID())
			})
		})
	}
}
