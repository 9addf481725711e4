package tests

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
)

// protocols are the versions that make a difference for what servers say and ask.
var protocols = []string{"2025-06-18", "2025-11-25", "2026-07-28"}

// talkative returns a server that says and asks a lot.
func talkative() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "talkative", Version: "1"}, &mcp.ServerOptions{
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
		Capabilities: &mcp.ServerCapabilities{
			Tools: &mcp.ToolCapabilities{ListChanged: true}, Resources: &mcp.ResourceCapabilities{ListChanged: true, Subscribe: true},
			Prompts: &mcp.PromptCapabilities{ListChanged: true}, Logging: &mcp.LoggingCapabilities{},
		},
	})
	text := func(format string, args ...any) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf(format, args...)}}}, nil, nil
	}
	tool := func(name string, f mcp.ToolHandlerFor[map[string]any, any]) {
		mcp.AddTool(s, &mcp.Tool{Name: name, Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}, f)
	}
	tool("work", func(ctx context.Context, req *mcp.CallToolRequest, _ map[string]any) (*mcp.CallToolResult, any, error) {
		token := req.Params.GetProgressToken()
		if token == nil {
			return text("nobody asked")
		}
		for i := range 5 {
			params := &mcp.ProgressNotificationParams{ProgressToken: token, Progress: float64(i + 1), Total: 5, Message: fmt.Sprint("step ", i+1)}
			if err := req.Session.NotifyProgress(ctx, params); err != nil {
				return nil, nil, err
			}
		}
		return text("done")
	})
	tool("say", func(ctx context.Context, req *mcp.CallToolRequest, _ map[string]any) (*mcp.CallToolResult, any, error) {
		for _, level := range []mcp.LoggingLevel{"debug", "warning", "error"} {
			if err := req.Session.Log(ctx, &mcp.LoggingMessageParams{Level: level, Logger: "desk", Data: map[string]any{"word": "sesame"}}); err != nil {
				return nil, nil, err
			}
		}
		return text("said")
	})
	tool("flood", func(ctx context.Context, req *mcp.CallToolRequest, _ map[string]any) (*mcp.CallToolResult, any, error) {
		for i := range 12_000 {
			if err := req.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "error", Data: i}); err != nil {
				return nil, nil, err
			}
		}
		return text("flooded")
	})
	tool("change", func(ctx context.Context, _ *mcp.CallToolRequest, _ map[string]any) (*mcp.CallToolResult, any, error) {
		s.AddResource(&mcp.Resource{URI: "file:///new", Name: "new"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "file:///new", Text: "x"}}}, nil
		})
		s.AddPrompt(&mcp.Prompt{Name: "new"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{}, nil
		})
		tool("new", func(context.Context, *mcp.CallToolRequest, map[string]any) (*mcp.CallToolResult, any, error) {
			return text("new")
		})
		return text("changed")
	})
	tool("touch", func(ctx context.Context, _ *mcp.CallToolRequest, _ map[string]any) (*mcp.CallToolResult, any, error) {
		if err := s.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: "file:///watched"}); err != nil {
			return nil, nil, err
		}
		return text("touched")
	})
	// The three that ask work with all protocols: the SDK's server turns what they
	// want into requests for older clients.
	asks := func(name string, want mcp.InputRequest, answer func(mcp.InputResponse) string) {
		tool(name, func(_ context.Context, req *mcp.CallToolRequest, _ map[string]any) (*mcp.CallToolResult, any, error) {
			if got, ok := req.Params.InputResponses["it"]; ok {
				return text("%s", answer(got))
			}
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"it": want}, RequestState: "state"}, nil, nil
		})
	}
	asks("elicit", &mcp.ElicitParams{Message: "your name?", RequestedSchema: map[string]any{
		"type": "object", "properties": map[string]any{"name": map[string]any{"type": "string"}},
	}}, func(r mcp.InputResponse) string {
		got := r.(*mcp.ElicitResult)
		return fmt.Sprint(got.Action, " ", got.Content["name"])
	})
	asks("sample", &mcp.CreateMessageParams{MaxTokens: 10, Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: "hi"}}}},
		func(r mcp.InputResponse) string {
			switch got := r.(type) {
			case *mcp.CreateMessageResult:
				return got.Content.(*mcp.TextContent).Text
			case *mcp.CreateMessageWithToolsResult:
				return got.Content[0].(*mcp.TextContent).Text
			}
			return fmt.Sprintf("%T", r)
		})
	asks("roots", &mcp.ListRootsParams{}, func(r mcp.InputResponse) string {
		var uris []string
		for _, root := range r.(*mcp.ListRootsResult).Roots {
			uris = append(uris, root.URI)
		}
		return fmt.Sprint(uris)
	})
	return s
}

// everyWay runs a scenario on a talkative server "s", in memory and over HTTP, with
// each protocol.
func everyWay(t *testing.T, cfg func(w *world) supervisor.Config, scenario func(w *world)) {
	t.Helper()
	for _, protocol := range protocols {
		t.Run("in memory "+protocol, func(t *testing.T) {
			w := newWorld(t)
			c := cfg(w)
			c.Servers = []mcpbridge.Server{{Name: "s", InMemory: talkative(), ProtocolVersion: protocol}}
			w.start(c)
			scenario(w)
			w.end()
		})
		t.Run("http "+protocol, func(t *testing.T) {
			desk := talkative()
			stateless := protocol == "2026-07-28"
			handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return desk }, &mcp.StreamableHTTPOptions{Stateless: stateless})
			server := httptest.NewServer(handler)
			defer server.Close()
			defer server.CloseClientConnections()
			w := newWorld(t)
			c := cfg(w)
			c.Servers = []mcpbridge.Server{{Name: "s", URL: server.URL, ProtocolVersion: protocol}}
			w.start(c)
			scenario(w)
			w.end()
		})
	}
}

func plain(*world) supervisor.Config { return supervisor.Config{} }

// spawn spawns an actor that does f with each message that is not about its life.
func spawn(w *world, f func(c actor.Context)) *actor.PID {
	pid := w.system.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
		switch c.Message().(type) {
		case actor.SystemMessage, actor.AutoReceiveMessage:
		default:
			f(c)
		}
	}))
	w.t.Cleanup(func() { w.system.Root.Stop(pid) })
	return pid
}

func TestProgressComesToWhoAskedForItBeforeTheReply(t *testing.T) {
	everyWay(t, plain, func(w *world) {
		for range 50 {
			var got []string
			ctx := supervisor.WithProgress(w.t.Context(), func(p *messages.Progress) {
				got = append(got, fmt.Sprintf("%s %v/%v %s", p.Key, p.Progress, p.Total, p.Message))
			})
			r, err := w.sup.Client().CallTool(ctx, "s", "a", &mcp.CallToolParams{Name: "work"})
			require.NoError(w.t, err)
			require.Equal(w.t, "done", r.Result.Content[0].(*mcp.TextContent).Text)
			require.Equal(w.t, []string{"s/a 1/5 step 1", "s/a 2/5 step 2", "s/a 3/5 step 3", "s/a 4/5 step 4", "s/a 5/5 step 5"}, got)
		}
		require.Equal(w.t, "nobody asked", w.send(call("a", "work")).text())
		require.Zero(w.t, count[*messages.Progress](w), "it is not for all")
	})
}

func TestWhatAServerSaysComesToAll(t *testing.T) {
	everyWay(t, plain, func(w *world) {
		w.send(&messages.Open{Header: messages.To("s", "a")}).reply()
		got := make(chan *messages.ResourceUpdated, 10)
		subscriber := spawn(w, func(c actor.Context) { got <- c.Message().(*messages.ResourceUpdated) })
		h := messages.To("s", "a")
		h.Subscriber = subscriber
		require.IsType(w.t, &messages.Ack{}, w.send(&messages.Subscribe{Header: h, URI: "file:///watched"}).reply())

		require.Equal(w.t, "changed", w.send(call("a", "change")).text())
		key := messages.Key{Server: "s", Scope: "a"}
		for _, stamp := range []messages.Stamp{
			await(w, func(*messages.ToolsChanged) bool { return true }).Stamp,
			await(w, func(*messages.PromptsChanged) bool { return true }).Stamp,
			await(w, func(*messages.ResourcesChanged) bool { return true }).Stamp,
		} {
			require.Equal(w.t, key, stamp.Key)
			require.EqualValues(w.t, 1, stamp.Generation)
			require.WithinDuration(w.t, time.Now(), stamp.Time, time.Minute)
		}
		require.Equal(w.t, "touched", w.send(call("a", "touch")).text())
		require.Equal(w.t, "file:///watched", await(w, func(*messages.ResourceUpdated) bool { return true }).URI)
		require.Equal(w.t, "file:///watched", (<-got).URI)
	})
}

func TestServersLogComesAsEventsInItsOrder(t *testing.T) {
	everyWay(t, plain, func(w *world) {
		level := &messages.SetLogLevel{Header: messages.To("s", "a"), Level: "warning"}
		require.IsType(w.t, &messages.Ack{}, w.send(level).reply())
		require.Equal(w.t, "said", w.send(call("a", "say")).text())
		await(w, func(e *messages.ServerLog) bool { return e.Level == "error" })
		w.mu.Lock()
		defer w.mu.Unlock()
		var levels []string
		for _, event := range w.events {
			if e, ok := event.(*messages.ServerLog); ok {
				require.Equal(w.t, "desk", e.Logger)
				require.Equal(w.t, map[string]any{"word": "sesame"}, e.Data)
				require.NotContains(w.t, fmt.Sprint(e), "sesame")
				levels = append(levels, e.Level)
			}
		}
		require.Equal(w.t, []string{"warning", "error"}, levels)
	})
}

// capable are all capabilities.
var capable = &mcp.ClientCapabilities{
	Elicitation: &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}},
	Sampling:    &mcp.SamplingCapabilities{},
	RootsV2:     &mcp.RootCapabilities{ListChanged: true},
}

// handled runs a scenario whose handler answers with a function.
func handled(t *testing.T, answer func(c actor.Context), scenario func(w *world)) {
	t.Helper()
	everyWay(t, func(w *world) supervisor.Config {
		w.handler = spawn(w, answer)
		return supervisor.Config{Handler: w.handler, Capabilities: capable, HandlerTimeout: 300 * time.Millisecond}
	}, scenario)
}

func TestWhatAServerAsksIsAnsweredByTheHandler(t *testing.T) {
	handled(t, func(c actor.Context) {
		switch req := c.Message().(type) {
		case *messages.Elicit:
			require.Equal(t, "your name?", req.Params.Message)
			require.Equal(t, messages.Key{Server: "s", Scope: "a"}, req.Key)
			c.Respond(&messages.Elicited{Result: &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ada"}}})
		case *messages.Sample:
			c.Respond(&messages.Sampled{Result: &mcp.CreateMessageWithToolsResult{Role: "assistant", Model: "m", Content: []mcp.Content{&mcp.TextContent{Text: "hello"}}}})
		case *messages.ListRoots:
			c.Respond(&messages.Roots{Roots: []*mcp.Root{{URI: "file:///handler"}}})
		}
	}, func(w *world) {
		require.Equal(w.t, "accept Ada", w.send(call("a", "elicit")).text())
		require.Equal(w.t, "hello", w.send(call("a", "sample")).text())
		require.Equal(w.t, "[file:///handler]", w.send(call("a", "roots")).text())

		set := &messages.SetRoots{Header: messages.To("s", "a"), Roots: []*mcp.Root{{URI: "file:///mine"}}}
		require.IsType(w.t, &messages.Ack{}, w.send(set).reply())
		require.Equal(w.t, "[file:///mine]", w.send(call("a", "roots")).text())
		require.Equal(w.t, "[file:///handler]", w.send(call("b", "roots")).text(), "another scope has roots of its own")
	})
}

func TestServerIsRefusedClearlyWhenNobodyAnswers(t *testing.T) {
	refusals := func(w *world, reason string) {
		info := w.send(&messages.Open{Header: messages.To("s", "a")}).reply().(*messages.SessionInfo)
		for _, tool := range []string{"elicit", "sample", "roots"} {
			r := w.send(call("a", tool)).reply()
			f, ok := r.(*messages.Failure)
			require.True(w.t, ok, "%T", r)
			code := messages.CodeServerError // what the server makes of the error
			if info.Server.ProtocolVersion == "2026-07-28" {
				code = messages.CodeRefused
			}
			require.ErrorIs(w.t, f, code)
			require.Contains(w.t, f.Detail, reason)
		}
		require.Equal(w.t, "touched", w.send(call("a", "touch")).text(), "the session goes on")
		require.Zero(w.t, count[*messages.SessionLost](w))
	}
	t.Run("refusal", func(t *testing.T) {
		handled(t, func(c actor.Context) { c.Respond(&messages.Refusal{Reason: "the user is asleep"}) },
			func(w *world) { refusals(w, "the user is asleep") })
	})
	t.Run("wrong kind", func(t *testing.T) {
		handled(t, func(c actor.Context) { c.Respond(42) },
			func(w *world) { refusals(w, "of another kind") })
	})
	t.Run("handler has stopped", func(t *testing.T) {
		handled(t, func(actor.Context) {}, func(w *world) {
			w.system.Root.Stop(w.handler)
			require.Eventually(w.t, func() bool {
				_, there := w.system.ProcessRegistry.GetLocal(w.handler.Id)
				return !there
			}, 10*time.Second, time.Millisecond)
			refusals(w, "nobody is there")
		})
	})
	t.Run("handler does not answer", func(t *testing.T) {
		handled(t, func(actor.Context) {}, func(w *world) { refusals(w, "no answer in time") })
	})
}

// A handler of events that takes nothing holds nothing up but events, and those are
// bounded for each session; the subscriber has them all.
func TestFloodOfNotificationsIsBounded(t *testing.T) {
	w := newWorld(t)
	taken := make(chan struct{}, 20_000)
	subscriber := spawn(w, func(actor.Context) { taken <- struct{}{} })
	release := make(chan struct{})
	w.system.EventStream.SubscribeWithPredicate(func(any) { <-release }, func(event any) bool {
		_, ok := event.(*messages.ServerLog)
		return ok
	})
	w.start(supervisor.Config{
		Subscriber: subscriber,
		Servers:    []mcpbridge.Server{{Name: "s", InMemory: talkative(), ProtocolVersion: "2025-11-25"}},
	})
	level := &messages.SetLogLevel{Header: messages.To("s", "a"), Level: "debug"}
	require.IsType(t, &messages.Ack{}, w.send(level).reply())
	require.Equal(t, "flooded", w.send(call("a", "flood")).text())
	require.Equal(t, "touched", w.send(call("a", "touch")).text())
	require.Eventually(t, func() bool { return w.inspect().Counters.Dropped >= 10_900 }, 20*time.Second, time.Millisecond)
	require.Eventually(t, func() bool { return len(taken) >= 12_000 }, 20*time.Second, time.Millisecond)
	dropped := w.inspect().Counters.Dropped
	require.Equal(t, "changed", w.send(call("b", "change")).text())
	require.Eventually(t, func() bool { return len(taken) >= 12_003 }, 20*time.Second, time.Millisecond)
	require.LessOrEqual(t, w.inspect().Counters.Dropped, dropped+4, "the other session's are not")
	close(release)
	require.Eventually(t, func() bool {
		return w.send(call("a", "change")).text() == "changed" && count[*messages.ToolsChanged](w) > 0
	}, 20*time.Second, time.Millisecond)
	w.end()
}

// B10, for roots: the new session has them from its first moment on.
func TestRootsArePutBackOnTheNextSession(t *testing.T) {
	desk := talkative()
	server, err := faults.Serve(func() http.Handler {
		return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return desk }, nil)
	})
	require.NoError(t, err)
	defer server.Close()
	w := start(t, supervisor.Config{
		Capabilities: &mcp.ClientCapabilities{RootsV2: &mcp.RootCapabilities{ListChanged: true}},
		Servers:      []mcpbridge.Server{{Name: "s", URL: server.URL(), ProtocolVersion: "2025-11-25"}},
	})
	_, err = w.sup.Client().SetRoots(t.Context(), "s", "a", []*mcp.Root{{URI: "file:///mine"}})
	require.NoError(t, err)
	require.Equal(t, 1, server.Count("notifications/roots/list_changed"))
	require.Equal(t, "[file:///mine]", w.send(call("a", "roots")).text())

	server.Expire(faults.Expiries()[0])
	p := w.send(call("a", "roots"))
	require.Equal(t, "[file:///mine]", p.text())
	require.EqualValues(t, 2, p.ok().Generation)
	require.NoError(t, server.Restart())
	require.Equal(t, "[file:///mine]", w.send(call("a", "roots")).text())

	bad := &messages.SetRoots{Header: messages.To("s", "a"), Roots: []*mcp.Root{{}}}
	f := w.send(bad).fails(messages.CodeInvalid)
	require.Contains(t, f.Detail, "roots[0]")
	w.end()
	for forgotten := range desk.Sessions() {
		forgotten.Close()
	}
}

func TestRootsWithoutTheCapabilityAreRefused(t *testing.T) {
	w := start(t, supervisor.Config{Servers: []mcpbridge.Server{{Name: "s", InMemory: talkative()}}})
	f := w.send(&messages.SetRoots{Header: messages.To("s", "a")}).fails(messages.CodeInvalid)
	require.Contains(t, f.Detail, "capabilities")
	w.end()
}

func TestSubscribersOfOneResourceAreToldEach(t *testing.T) {
	everyWay(t, plain, func(w *world) {
		told := make(chan string, 100)
		subscriber := func(name string) *actor.PID {
			return spawn(w, func(c actor.Context) { told <- name + " " + c.Message().(*messages.ResourceUpdated).URI })
		}
		one, two, other := subscriber("one"), subscriber("two"), subscriber("other")
		ask := func(pid *actor.PID, op func(h messages.Header) messages.Command) {
			h := messages.To("s", "a")
			h.Subscriber = pid
			require.IsType(w.t, &messages.Ack{}, w.send(op(h)).reply())
		}
		subscribe := func(uri string) func(h messages.Header) messages.Command {
			return func(h messages.Header) messages.Command { return &messages.Subscribe{Header: h, URI: uri} }
		}
		ask(one, subscribe("file:///watched"))
		ask(two, subscribe("file:///watched"))
		ask(other, subscribe("file:///watch"))
		require.Equal(w.t, "touched", w.send(call("a", "touch")).text())
		require.ElementsMatch(w.t, []string{"one file:///watched", "two file:///watched"}, []string{<-told, <-told})
		ask(one, func(h messages.Header) messages.Command {
			return &messages.Unsubscribe{Header: h, URI: "file:///watched"}
		})
		require.Equal(w.t, "touched", w.send(call("a", "touch")).text())
		require.Equal(w.t, "two file:///watched", <-told)
		require.Empty(w.t, told)
	})
}

// One message that is sent twice is two operations.
func TestProgressOfAMessageThatIsSentTwiceIsToldOnceForEach(t *testing.T) {
	w := newWorld(t)
	var told atomic.Int32
	subscriber := spawn(w, func(actor.Context) { told.Add(1) })
	w.start(supervisor.Config{Servers: []mcpbridge.Server{{Name: "s", InMemory: talkative()}}})
	op := call("a", "work")
	op.Subscriber = subscriber
	one, two := w.send(op), w.send(op)
	require.Equal(t, "done", one.text())
	require.Equal(t, "done", two.text())
	require.Eventually(t, func() bool { return told.Load() >= 10 }, 10*time.Second, time.Millisecond)
	w.stop()
	require.EqualValues(t, 10, told.Load())
}

// What a server says while its session is set up comes when the session is open.
func TestWhatIsSaidDuringTheSetUpComesAfterTheSessionOpened(t *testing.T) {
	w := start(t, supervisor.Config{Servers: []mcpbridge.Server{{
		Name: "s", InMemory: talkative(), ProtocolVersion: "2025-11-25", Setup: []*mcp.CallToolParams{{Name: "change"}},
	}}})
	w.send(&messages.Open{Header: messages.To("s", "a")}).reply()
	require.EqualValues(t, 1, await(w, func(*messages.ToolsChanged) bool { return true }).Generation)
	w.mu.Lock()
	require.IsType(t, &messages.SessionOpened{}, w.events[0])
	w.mu.Unlock()
	w.end()
}

// A session that becomes one that keeps nothing has lost what it kept.
func TestSessionThatBecomesStatelessHasANewGeneration(t *testing.T) {
	desk := talkative()
	stateless := false
	server, err := faults.Serve(func() http.Handler {
		return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return desk }, &mcp.StreamableHTTPOptions{Stateless: stateless})
	})
	require.NoError(t, err)
	defer server.Close()
	w := start(t, supervisor.Config{Servers: []mcpbridge.Server{{Name: "s", URL: server.URL(), ProtocolVersion: "2025-11-25"}}})
	require.EqualValues(t, 1, w.send(call("a", "touch")).ok().Generation)
	stateless = true
	server.Expire(faults.Expiries()[0])
	require.NoError(t, server.Restart())
	require.EqualValues(t, 2, w.send(call("a", "touch")).ok().Generation)
	require.True(t, w.session("a").Stateless)
	require.NoError(t, server.Restart())
	require.EqualValues(t, 2, w.send(call("a", "touch", replay(messages.ReplayAlways))).ok().Generation)
	w.end()
	for forgotten := range desk.Sessions() {
		forgotten.Close()
	}
}
