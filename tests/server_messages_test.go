package tests

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
)

// protocols are the protocol versions in which notifications and requests of servers
// differ.
var protocols = []string{"2025-06-18", "2025-11-25", "2026-07-28"}

// newChattyServer returns a server whose tools send notifications and requests of all kinds
// to the client.
func newChattyServer() *mcp.Server {
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
	tool("whoami", func(_ context.Context, req *mcp.CallToolRequest, _ map[string]any) (*mcp.CallToolResult, any, error) {
		return text("%s", req.Session.InitializeParams().ClientInfo.Name)
	})
	tool("say", func(ctx context.Context, req *mcp.CallToolRequest, _ map[string]any) (*mcp.CallToolResult, any, error) {
		for _, level := range []mcp.LoggingLevel{"debug", "warning", "error"} {
			if err := req.Session.Log(ctx, &mcp.LoggingMessageParams{Level: level, Logger: "desk", Data: map[string]any{"word": "sesame"}}); err != nil {
				return nil, nil, err
			}
		}
		return text("said")
	})
	tool("flood", func(ctx context.Context, req *mcp.CallToolRequest, args map[string]any) (*mcp.CallToolResult, any, error) {
		for i := range int(args["size"].(float64)) {
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
	// The next three tools work with all protocol versions: for older clients, the server
	// of the SDK sends what they want as requests.
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

// overEachProtocol runs a scenario on a chatty server "s" with each protocol version, in
// memory and over HTTP.
func overEachProtocol(t *testing.T, cfg func(h *harness) supervisor.Config, scenario func(h *harness)) {
	t.Helper()
	run := func(t *testing.T, server mcpbridge.Server) {
		t.Cleanup(func() { time.Sleep(3 * time.Second) }) // synctest: until Proto.Actor's throttle of dead letters has ended
		h := newHarness(t)
		c := cfg(h)
		c.Servers = []mcpbridge.Server{server}
		h.start(c)
		scenario(h)
		h.stopAndVerify()
	}
	for _, protocol := range protocols {
		t.Run("in memory "+protocol, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				run(t, mcpbridge.Server{Name: "s", InMemory: newChattyServer(), ProtocolVersion: protocol})
			})
		})
		t.Run("http "+protocol, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				desk := newChattyServer()
				stateless := protocol == "2026-07-28"
				server := faults.Local(func() http.Handler {
					return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return desk }, &mcp.StreamableHTTPOptions{Stateless: stateless})
				})
				defer server.Close()
				run(t, mcpbridge.Server{Name: "s", URL: server.URL(), HTTPClient: &http.Client{Transport: server}, ProtocolVersion: protocol})
			})
		})
	}
}

func defaultConfig(*harness) supervisor.Config { return supervisor.Config{} }

// spawn spawns an actor that calls f for each message other than lifecycle messages.
func spawn(h *harness, f func(c actor.Context)) *actor.PID {
	pid := h.system.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
		switch c.Message().(type) {
		case actor.SystemMessage, actor.AutoReceiveMessage:
		default:
			f(c)
		}
	}))
	h.t.Cleanup(func() { h.system.Root.Stop(pid) })
	return pid
}

func TestProgressComesToWhoAskedForItBeforeTheReply(t *testing.T) {
	overEachProtocol(t, defaultConfig, func(h *harness) {
		for range 50 {
			var got []string
			ctx := supervisor.WithProgress(h.t.Context(), func(p *messages.Progress) {
				got = append(got, fmt.Sprintf("%s %v/%v %s", p.Key, p.Progress, p.Total, p.Message))
			})
			r, err := h.sup.Client().CallTool(ctx, "s", "a", &mcp.CallToolParams{Name: "work"})
			require.NoError(h.t, err)
			require.Equal(h.t, "done", r.Result.Content[0].(*mcp.TextContent).Text)
			require.Equal(h.t, []string{"s/a 1/5 step 1", "s/a 2/5 step 2", "s/a 3/5 step 3", "s/a 4/5 step 4", "s/a 5/5 step 5"}, got)
		}
		require.Equal(h.t, "nobody asked", h.send(call("a", "work")).text())
		require.Zero(h.t, countEvents[*messages.Progress](h), "it is not for all")
	})
}

func TestWhatAServerSaysComesToAll(t *testing.T) {
	overEachProtocol(t, defaultConfig, func(h *harness) {
		h.send(&messages.Open{Header: messages.To("s", "a")}).reply()
		got := make(chan *messages.ResourceUpdated, 10)
		subscriber := spawn(h, func(c actor.Context) { got <- c.Message().(*messages.ResourceUpdated) })
		header := messages.To("s", "a")
		header.Subscriber = subscriber
		require.IsType(h.t, &messages.Ack{}, h.send(&messages.Subscribe{Header: header, URI: "file:///watched"}).reply())

		require.Equal(h.t, "changed", h.send(call("a", "change")).text())
		key := messages.Key{Server: "s", Scope: "a"}
		for _, stamp := range []messages.Stamp{
			awaitEvent(h, func(*messages.ToolsChanged) bool { return true }).Stamp,
			awaitEvent(h, func(*messages.PromptsChanged) bool { return true }).Stamp,
			awaitEvent(h, func(*messages.ResourcesChanged) bool { return true }).Stamp,
		} {
			require.Equal(h.t, key, stamp.Key)
			require.EqualValues(h.t, 1, stamp.Generation)
			require.WithinDuration(h.t, time.Now(), stamp.Time, time.Minute)
		}
		require.Equal(h.t, "touched", h.send(call("a", "touch")).text())
		require.Equal(h.t, "file:///watched", awaitEvent(h, func(*messages.ResourceUpdated) bool { return true }).URI)
		require.Equal(h.t, "file:///watched", (<-got).URI)
	})
}

func TestServersLogComesAsEventsInItsOrder(t *testing.T) {
	overEachProtocol(t, defaultConfig, func(h *harness) {
		level := &messages.SetLogLevel{Header: messages.To("s", "a"), Level: "warning"}
		require.IsType(h.t, &messages.Ack{}, h.send(level).reply())
		require.Equal(h.t, "said", h.send(call("a", "say")).text())
		awaitEvent(h, func(e *messages.ServerLog) bool { return e.Level == "error" })
		h.mu.Lock()
		defer h.mu.Unlock()
		var levels []string
		for _, event := range h.events {
			if e, ok := event.(*messages.ServerLog); ok {
				require.Equal(h.t, "desk", e.Logger)
				require.Equal(h.t, map[string]any{"word": "sesame"}, e.Data)
				require.NotContains(h.t, fmt.Sprint(e), "sesame")
				levels = append(levels, e.Level)
			}
		}
		require.Equal(h.t, []string{"warning", "error"}, levels)
	})
}

// allCapabilities are all capabilities.
var allCapabilities = &mcp.ClientCapabilities{
	Elicitation: &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}},
	Sampling:    &mcp.SamplingCapabilities{},
	RootsV2:     &mcp.RootCapabilities{ListChanged: true},
}

// withHandler is overEachProtocol with a handler that answers the requests of the server.
func withHandler(t *testing.T, answer func(c actor.Context), scenario func(h *harness)) {
	t.Helper()
	overEachProtocol(t, func(h *harness) supervisor.Config {
		h.handler = spawn(h, answer)
		return supervisor.Config{Handler: h.handler, Capabilities: allCapabilities, HandlerTimeout: 300 * time.Millisecond}
	}, scenario)
}

func TestWhatAServerAsksIsAnsweredByTheHandler(t *testing.T) {
	withHandler(t, func(c actor.Context) {
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
	}, func(h *harness) {
		require.Equal(h.t, "accept Ada", h.send(call("a", "elicit")).text())
		require.Equal(h.t, "hello", h.send(call("a", "sample")).text())
		require.Equal(h.t, "[file:///handler]", h.send(call("a", "roots")).text())

		set := &messages.SetRoots{Header: messages.To("s", "a"), Roots: []*mcp.Root{{URI: "file:///mine"}}}
		require.IsType(h.t, &messages.Ack{}, h.send(set).reply())
		require.Equal(h.t, "[file:///mine]", h.send(call("a", "roots")).text())
		require.Equal(h.t, "[file:///handler]", h.send(call("b", "roots")).text(), "another scope has roots of its own")
	})
}

func TestServerIsRefusedClearlyWhenNobodyAnswers(t *testing.T) {
	refusals := func(h *harness, reason string) {
		info := h.send(&messages.Open{Header: messages.To("s", "a")}).reply().(*messages.SessionInfo)
		for _, tool := range []string{"elicit", "sample", "roots"} {
			r := h.send(call("a", tool)).reply()
			f, ok := r.(*messages.Failure)
			require.True(h.t, ok, "%T", r)
			code := messages.CodeServerError // the code for the error that the server returns
			if info.Server.ProtocolVersion == "2026-07-28" {
				code = messages.CodeRefused
			}
			require.ErrorIs(h.t, f, code)
			require.Contains(h.t, f.Detail, reason)
		}
		require.Equal(h.t, "touched", h.send(call("a", "touch")).text(), "the session goes on")
		require.Zero(h.t, countEvents[*messages.SessionLost](h))
	}
	t.Run("refusal", func(t *testing.T) {
		withHandler(t, func(c actor.Context) { c.Respond(&messages.Refusal{Reason: "the user is asleep"}) },
			func(h *harness) { refusals(h, "the user is asleep") })
	})
	t.Run("wrong kind", func(t *testing.T) {
		withHandler(t, func(c actor.Context) { c.Respond(42) },
			func(h *harness) { refusals(h, "of another kind") })
	})
	t.Run("handler has stopped", func(t *testing.T) {
		withHandler(t, func(actor.Context) {}, func(h *harness) {
			h.system.Root.Stop(h.handler)
			require.Eventually(h.t, func() bool {
				_, there := h.system.ProcessRegistry.GetLocal(h.handler.Id)
				return !there
			}, 10*time.Second, time.Millisecond)
			refusals(h, "nobody is there")
		})
	})
	t.Run("handler does not answer", func(t *testing.T) {
		withHandler(t, func(actor.Context) {}, func(h *harness) { refusals(h, "no answer in time") })
	})
}

// A server asks for roots when it has started, beside the first call. The answer is wanted also when that call is over.
func TestRootsAreAnsweredAfterTheCallBesideWhichTheyWereAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(3 * time.Second) // synctest: until Proto.Actor's throttle of dead letters has ended
		roots := make(chan string, 1)
		server := mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, nil)
		mcp.AddTool(server, &mcp.Tool{Name: "work"}, func(ctx context.Context, r *mcp.CallToolRequest, _ map[string]any) (*mcp.CallToolResult, any, error) {
			go func() {
				listed, err := r.Session.ListRoots(context.WithoutCancel(ctx), nil)
				if err != nil {
					roots <- err.Error()
					return
				}
				roots <- listed.Roots[0].URI
			}()
			time.Sleep(100 * time.Millisecond)
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}, nil, nil
		})
		h := newHarness(t)
		handler := spawn(h, func(c actor.Context) {
			if _, asked := c.Message().(*messages.ListRoots); asked {
				sender := c.Sender()
				time.AfterFunc(time.Second, func() {
					h.system.Root.Send(sender, &messages.Roots{Roots: []*mcp.Root{{URI: "file:///one"}}})
				})
			}
		})
		h.start(supervisor.Config{
			Handler: handler, Capabilities: allCapabilities,
			Servers: []mcpbridge.Server{{Name: "s", InMemory: server, ProtocolVersion: "2025-11-25"}},
		})
		began := time.Now()
		require.Equal(t, "done", h.send(call("a", "work")).text())
		require.Equal(t, 100*time.Millisecond, time.Since(began))
		require.Equal(t, "file:///one", <-roots)
		h.stopAndVerify()
	})
}

// An event handler that blocks delays only events, and their number is bounded for each
// session. The subscriber still gets all of them.
func TestFloodOfNotificationsIsBounded(t *testing.T) {
	h := newHarness(t)
	taken := make(chan struct{}, 20_000)
	subscriber := spawn(h, func(actor.Context) { taken <- struct{}{} })
	release := make(chan struct{})
	h.system.EventStream.SubscribeWithPredicate(func(any) { <-release }, func(event any) bool {
		_, ok := event.(*messages.ServerLog)
		return ok
	})
	h.start(supervisor.Config{
		Subscriber: subscriber,
		Servers:    []mcpbridge.Server{{Name: "s", InMemory: newChattyServer(), ProtocolVersion: "2025-11-25"}},
	})
	level := &messages.SetLogLevel{Header: messages.To("s", "a"), Level: "debug"}
	require.IsType(t, &messages.Ack{}, h.send(level).reply())
	require.Equal(t, "flooded", h.send(call("a", "flood", with("size", 12_000))).text())
	require.Equal(t, "touched", h.send(call("a", "touch")).text())
	require.Eventually(t, func() bool { return h.inspect().Counters.Dropped >= 10_900 }, 20*time.Second, time.Millisecond)
	require.Eventually(t, func() bool { return len(taken) >= 12_000 }, 20*time.Second, time.Millisecond)
	dropped := h.inspect().Counters.Dropped
	require.Equal(t, "changed", h.send(call("b", "change")).text())
	require.Eventually(t, func() bool { return len(taken) >= 12_003 }, 20*time.Second, time.Millisecond)
	require.LessOrEqual(t, h.inspect().Counters.Dropped, dropped+4, "the other session's are not")
	close(release)
	require.Eventually(t, func() bool {
		return h.send(call("a", "change")).text() == "changed" && countEvents[*messages.ToolsChanged](h) > 0
	}, 20*time.Second, time.Millisecond)
	h.stopAndVerify()
}

// A server whose notifications the registry has no time for makes it hold a bounded number of them.
func TestNotificationsOnTheirWayAreBounded(t *testing.T) {
	h := newHarness(t)
	var taken atomic.Int64
	subscriber := spawn(h, func(c actor.Context) {
		if read, last := c.Message().(chan struct{}); last {
			close(read)
			return
		}
		taken.Add(1)
	})
	held := make(chan struct{})
	h.start(supervisor.Config{
		Subscriber: subscriber,
		Servers:    []mcpbridge.Server{{Name: "s", InMemory: newChattyServer(), ProtocolVersion: "2025-11-25"}},
		Tenant: func(key messages.Key) string {
			if key.Scope == "held" {
				<-held // and with it the registry
			}
			return ""
		},
	})
	level := &messages.SetLogLevel{Header: messages.To("s", "a"), Level: "debug"}
	require.IsType(t, &messages.Ack{}, h.send(level).reply())
	flood, holds := h.send(call("a", "flood", with("size", 40_000))), h.send(call("held", "touch"))
	require.Equal(t, "flooded", flood.text())
	close(held)
	require.Equal(t, "touched", holds.text())
	h.stopAndVerify()
	read := make(chan struct{})
	h.system.Root.Send(subscriber, read)
	<-read
	require.GreaterOrEqual(t, taken.Load(), int64(1<<14))
	require.Less(t, taken.Load(), int64(30_000))
}

// B10: the new session has its roots before its first call.
func TestRootsAreSentAgainOnTheNextSession(t *testing.T) {
	desk := newChattyServer()
	server, err := faults.Serve(func() http.Handler {
		return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return desk }, nil)
	})
	require.NoError(t, err)
	defer server.Close()
	h := start(t, supervisor.Config{
		Capabilities: &mcp.ClientCapabilities{RootsV2: &mcp.RootCapabilities{ListChanged: true}},
		Servers:      []mcpbridge.Server{{Name: "s", URL: server.URL(), ProtocolVersion: "2025-11-25"}},
	})
	_, err = h.sup.Client().SetRoots(t.Context(), "s", "a", []*mcp.Root{{URI: "file:///mine"}})
	require.NoError(t, err)
	require.Equal(t, 1, server.Count("notifications/roots/list_changed"))
	require.Equal(t, "[file:///mine]", h.send(call("a", "roots")).text())

	server.Expire(faults.Expiries()[0])
	p := h.send(call("a", "roots"))
	require.Equal(t, "[file:///mine]", p.text())
	require.EqualValues(t, 2, p.ok().Generation)
	require.NoError(t, server.Restart())
	require.Equal(t, "[file:///mine]", h.send(call("a", "roots")).text())

	bad := &messages.SetRoots{Header: messages.To("s", "a"), Roots: []*mcp.Root{{}}}
	f := h.send(bad).fails(messages.CodeInvalid)
	require.Contains(t, f.Detail, "roots[0]")
	h.stopAndVerify()
	for forgotten := range desk.Sessions() {
		forgotten.Close()
	}
}

func TestRootsWithoutTheCapabilityAreRefused(t *testing.T) {
	h := start(t, supervisor.Config{Servers: []mcpbridge.Server{{Name: "s", InMemory: newChattyServer()}}})
	f := h.send(&messages.SetRoots{Header: messages.To("s", "a")}).fails(messages.CodeInvalid)
	require.Contains(t, f.Detail, "capabilities")
	h.stopAndVerify()
}

func TestSubscribersOfOneResourceAreToldEach(t *testing.T) {
	overEachProtocol(t, defaultConfig, func(h *harness) {
		told := make(chan string, 100)
		subscriber := func(name string) *actor.PID {
			return spawn(h, func(c actor.Context) { told <- name + " " + c.Message().(*messages.ResourceUpdated).URI })
		}
		one, two, other := subscriber("one"), subscriber("two"), subscriber("other")
		ask := func(pid *actor.PID, op func(header messages.Header) messages.Command) {
			header := messages.To("s", "a")
			header.Subscriber = pid
			require.IsType(h.t, &messages.Ack{}, h.send(op(header)).reply())
		}
		subscribe := func(uri string) func(header messages.Header) messages.Command {
			return func(header messages.Header) messages.Command { return &messages.Subscribe{Header: header, URI: uri} }
		}
		ask(one, subscribe("file:///watched"))
		ask(two, subscribe("file:///watched"))
		ask(other, subscribe("file:///watch"))
		synctest.Wait() // with 2026-07-28 a server may read the subscription after the Ack
		require.Equal(h.t, "touched", h.send(call("a", "touch")).text())
		require.ElementsMatch(h.t, []string{"one file:///watched", "two file:///watched"}, []string{<-told, <-told})
		ask(one, func(header messages.Header) messages.Command {
			return &messages.Unsubscribe{Header: header, URI: "file:///watched"}
		})
		synctest.Wait()
		require.Equal(h.t, "touched", h.send(call("a", "touch")).text())
		require.Equal(h.t, "two file:///watched", <-told)
		require.Empty(h.t, told)
	})
}

// A command that is sent twice is two operations.
func TestProgressOfAMessageThatIsSentTwiceIsToldOnceForEach(t *testing.T) {
	h := newHarness(t)
	var told atomic.Int32
	subscriber := spawn(h, func(actor.Context) { told.Add(1) })
	h.start(supervisor.Config{Servers: []mcpbridge.Server{{Name: "s", InMemory: newChattyServer()}}})
	op := call("a", "work")
	op.Subscriber = subscriber
	one, two := h.send(op), h.send(op)
	require.Equal(t, "done", one.text())
	require.Equal(t, "done", two.text())
	require.Eventually(t, func() bool { return told.Load() >= 10 }, 10*time.Second, time.Millisecond)
	h.stop()
	require.EqualValues(t, 10, told.Load())
}

// Notifications that a server sends during the set-up are published when the session is
// open.
func TestWhatIsSaidDuringTheSetUpComesAfterTheSessionOpened(t *testing.T) {
	h := start(t, supervisor.Config{Servers: []mcpbridge.Server{{
		Name: "s", InMemory: newChattyServer(), ProtocolVersion: "2025-11-25", Setup: []*mcp.CallToolParams{{Name: "change"}},
	}}})
	h.send(&messages.Open{Header: messages.To("s", "a")}).reply()
	require.EqualValues(t, 1, awaitEvent(h, func(*messages.ToolsChanged) bool { return true }).Generation)
	h.mu.Lock()
	require.IsType(t, &messages.SessionOpened{}, h.events[0])
	h.mu.Unlock()
	h.stopAndVerify()
}

// When a server stops using session ids, the state of the session is lost, and the
// generation grows.
func TestSessionThatBecomesStatelessHasANewGeneration(t *testing.T) {
	desk := newChattyServer()
	stateless := false
	server, err := faults.Serve(func() http.Handler {
		return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return desk }, &mcp.StreamableHTTPOptions{Stateless: stateless})
	})
	require.NoError(t, err)
	defer server.Close()
	h := start(t, supervisor.Config{Servers: []mcpbridge.Server{{Name: "s", URL: server.URL(), ProtocolVersion: "2025-11-25"}}})
	require.EqualValues(t, 1, h.send(call("a", "touch")).ok().Generation)
	stateless = true
	server.Expire(faults.Expiries()[0])
	require.NoError(t, server.Restart())
	require.EqualValues(t, 2, h.send(call("a", "touch")).ok().Generation)
	require.True(t, h.session("a").Stateless)
	require.NoError(t, server.Restart())
	require.EqualValues(t, 2, h.send(call("a", "touch", replay(messages.ReplayAlways))).ok().Generation)
	h.stopAndVerify()
	for forgotten := range desk.Sessions() {
		forgotten.Close()
	}
}
