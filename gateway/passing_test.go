package gateway

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/gateway/internal/mcpserver"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/tests/faults"
)

// A client speaks each revision with sessions, and its server the same one.
func TestEachRevisionIsSpokenOnBothSides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(3 * time.Second) // synctest: until Proto.Actor's throttle of dead letters has ended
		s := withSessions(mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, nil))
		mcp.AddTool(s, &mcp.Tool{Name: "version"}, func(_ context.Context, r *mcp.CallToolRequest, _ map[string]any) (*mcp.CallToolResult, any, error) {
			told := r.Session.InitializeParams()
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: told.ProtocolVersion + " " + told.ClientInfo.Name}}}, nil, nil
		})
		w := newWorld(t, nil, mcpbridge.Server{Name: "s", InMemory: s})
		defer w.stop()
		for _, revision := range mcpserver.Revisions {
			r := w.raw()
			answer := r.ask(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"`+revision+`","capabilities":{},"clientInfo":{"name":"asker","version":"1"}}}`, "1")
			require.Contains(t, string(answer.Result), `"protocolVersion":"`+revision+`"`)
			answer = r.ask(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"version","arguments":{}}}`, "2")
			require.Contains(t, string(answer.Result), `"`+revision+` asker"`)
		}
	})
}

// A subscription outlives the restart of its server, after which the client is told to read again.
func TestSubscriptionIsPutBackWithAnUpdate(t *testing.T) {
	overHTTP(t, nil, func(w *world, e *faults.Server, _ *faults.Tools) {
		r := w.raw()
		r.open()
		require.Nil(w, r.ask(`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"file:///one"}}`, "1").Error)
		require.Equal(w, 1, e.Count("resources/subscribe"))
		require.NoError(w, e.Restart())
		require.Nil(w, r.ask(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"count"}}`, "2").Error)
		updated := r.await(func(m *mcpserver.Message) bool { return m.Method == "notifications/resources/updated" })
		require.JSONEq(w, `{"uri":"file:///one"}`, string(updated.Params))
		require.Equal(w, 2, e.Count("resources/subscribe"))
	})
}

// The first message of the first call has the level that the client has set before there was a session.
func TestLogLevelIsSetBeforeTheFirstCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(3 * time.Second) // synctest: until Proto.Actor's throttle of dead letters has ended
		w := newWorld(t, nil, mcpbridge.Server{Name: "s", InMemory: newTalker()})
		defer w.stop()
		r := w.raw()
		r.open()
		require.NotNil(t, r.ask(`{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"loud"}}`, "1").Error)
		require.Nil(t, r.ask(`{"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"debug"}}`, "2").Error)
		r.send(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"talk","arguments":{},"_meta":{"progressToken":1}}}`)
		said := r.await(func(m *mcpserver.Message) bool { return m.Method == "notifications/message" })
		require.JSONEq(t, `{"level":"info","data":"word"}`, string(said.Params))
	})
}

// Roots go to the server when it asks, and again when the client has changed them.
func TestRootsOfTheClientReachTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(3 * time.Second) // synctest: until Proto.Actor's throttle of dead letters has ended
		changed := make(chan struct{}, 10)
		s := withSessions(mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, &mcp.ServerOptions{
			RootsListChangedHandler: func(context.Context, *mcp.RootsListChangedRequest) { changed <- struct{}{} },
		}))
		mcp.AddTool(s, &mcp.Tool{Name: "roots"}, func(ctx context.Context, r *mcp.CallToolRequest, _ map[string]any) (*mcp.CallToolResult, any, error) {
			listed, err := r.Session.ListRoots(ctx, nil)
			if err != nil {
				return nil, nil, err
			}
			text := ""
			for _, root := range listed.Roots {
				text += root.URI + " "
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
		})
		w := newWorld(t, nil, mcpbridge.Server{Name: "s", InMemory: s})
		defer w.stop()
		in, out := w.pipe()
		client := mcp.NewClient(&mcp.Implementation{Name: "tester", Version: "1"}, nil)
		client.AddRoots(&mcp.Root{URI: "file:///one"})
		session, err := client.Connect(t.Context(), &mcp.IOTransport{Reader: in, Writer: out}, withInitialize)
		require.NoError(t, err)
		text, isError := w.call(session, "roots", nil)
		require.False(t, isError, text)
		require.Equal(t, "file:///one ", text)
		client.AddRoots(&mcp.Root{URI: "file:///two"})
		<-changed
		text, _ = w.call(session, "roots", nil)
		require.Equal(t, "file:///one file:///two ", text)
	})
}

// A server that asks as soon as it has started, during the client's initialize, gets its answer when the client may be asked.
func TestClientIsAskedOnlyAfterItIsInitialized(t *testing.T) {
	askedAfter(t, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	askedAfter(t, `{"jsonrpc":"2.0","id":3,"method":"tools/list"}`) // it does not say that it is
}

// askedAfter requires that a client is asked when it has sent a message.
func askedAfter(t *testing.T, message string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		defer time.Sleep(3 * time.Second) // synctest: until Proto.Actor's throttle of dead letters has ended
		roots := make(chan string, 1)
		s := withSessions(mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, &mcp.ServerOptions{
			InitializedHandler: func(ctx context.Context, r *mcp.InitializedRequest) {
				go func() {
					listed, err := r.Session.ListRoots(context.WithoutCancel(ctx), nil)
					if err == nil {
						roots <- listed.Roots[0].URI
					}
				}()
			},
		}))
		mcp.AddTool(s, &mcp.Tool{Name: "t"}, func(context.Context, *mcp.CallToolRequest, map[string]any) (*mcp.CallToolResult, any, error) {
			return nil, nil, nil
		})
		s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
				if method == "tools/list" {
					time.Sleep(time.Second) // initialize waits for it
				}
				return next(ctx, method, r)
			}
		})
		w := newWorld(t, nil, mcpbridge.Server{Name: "s", InMemory: s})
		defer w.stop()
		r, began := w.raw(), time.Now()
		r.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{}},"clientInfo":{"name":"raw","version":"1"}}}`)
		next := func(*mcpserver.Message) bool { return true }
		require.Equal(t, "1", string(r.await(next).ID), "the response comes first")
		require.Equal(t, time.Second, time.Since(began))
		r.send(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
		require.Equal(t, "{}", string(r.ask(`{"jsonrpc":"2.0","id":2,"method":"ping"}`, "2").Result))
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Empty(t, r.messages)
		r.send(message)
		for range 2 { // the server asks, and the gateway: the roots have changed
			asked := r.await(func(m *mcpserver.Message) bool { return m.Method == "roots/list" })
			r.send(`{"jsonrpc":"2.0","id":` + string(asked.ID) + `,"result":{"roots":[{"uri":"file:///one"}]}}`)
		}
		require.Equal(t, "file:///one", <-roots)
	})
}

// Completion goes to the server of the prompt or of the resource, also where names have that of their server.
func TestCompletionReachesTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(3 * time.Second) // synctest: until Proto.Actor's throttle of dead letters has ended
		completing := func(name string) mcpbridge.Server {
			s := withSessions(mcp.NewServer(&mcp.Implementation{Name: name, Version: "1"}, &mcp.ServerOptions{
				CompletionHandler: func(_ context.Context, r *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
					return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{fmt.Sprint(name, " ", r.Params.Ref.Name, r.Params.Ref.URI, " ", r.Params.Argument.Value)}}}, nil
				},
			}))
			s.AddPrompt(&mcp.Prompt{Name: "p"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) { return nil, nil })
			s.AddResourceTemplate(&mcp.ResourceTemplate{Name: "r", URITemplate: name + ":///{x}"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) { return nil, nil })
			return mcpbridge.Server{Name: name, InMemory: s}
		}
		w := newWorld(t, nil, completing("one"), completing("two"))
		defer w.stop()
		r := w.raw()
		r.open()
		answer := r.ask(`{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"two__p"},"argument":{"name":"a","value":"v"}}}`, "1")
		require.Nil(t, answer.Error, "%v", answer.Error)
		require.Contains(t, string(answer.Result), `"two p v"`)
		answer = r.ask(`{"jsonrpc":"2.0","id":2,"method":"completion/complete","params":{"ref":{"type":"ref/resource","uri":"one:///{x}"},"argument":{"name":"x","value":"v"}}}`, "2")
		require.Nil(t, answer.Error, "%v", answer.Error)
		require.Contains(t, string(answer.Result), `"one one:///{x} v"`)
	})
}
