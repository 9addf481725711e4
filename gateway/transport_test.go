package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
	"github.com/mcpactor/mcpactor/toolset"
)

// dial connects a client of the SDK over a transport in this process.
func (w *world) dial(transport mcp.Transport, options *mcp.ClientOptions) *mcp.ClientSession {
	w.Helper()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "tester", Version: "1"}, options).Connect(w.Context(), transport, nil)
	require.NoError(w, err)
	return session
}

// toolsOf returns a toolset of all servers in a scope.
func (w *world) toolsOf(scope string, policy *toolset.Policy) *toolset.Toolset {
	w.Helper()
	tools, err := toolset.New(nil, w.sup, toolset.Config{Scope: scope, Servers: []toolset.Filter{{Name: "*"}}, Policy: policy, MaxText: 1024})
	require.NoError(w, err)
	w.ends = append(w.ends, tools.Close)
	return tools
}

// here are the two transports to the server "s", and the prefix of the names of tools.
var here = map[string]func(w *world, scope Scope) (transport mcp.Transport, prefix string){
	"server": func(w *world, scope Scope) (mcp.Transport, string) { return w.Server("s", scope), "" },
	"tools": func(w *world, scope Scope) (mcp.Transport, string) {
		return w.Tools(w.toolsOf(scope.Name, nil), scope), "s__"
	},
}

// eachWay runs a scenario over both transports, in front of a server "s" over HTTP.
func eachWay(t *testing.T, scenario func(w *world, e *faults.Server, tools *faults.Tools, connect func(Scope, *mcp.ClientOptions) *mcp.ClientSession, prefix string)) {
	for name, way := range here {
		t.Run(name, func(t *testing.T) {
			overHTTP(t, nil, func(w *world, e *faults.Server, tools *faults.Tools) {
				connect := func(scope Scope, options *mcp.ClientOptions) *mcp.ClientSession {
					transport, _ := way(w, scope)
					return w.dial(transport, options)
				}
				prefix := map[string]string{"tools": "s__"}[name]
				scenario(w, e, tools, connect, prefix)
			})
		})
	}
}

func TestSessionOfAClientHereNeverExpires(t *testing.T) {
	eachWay(t, func(w *world, e *faults.Server, _ *faults.Tools, connect func(Scope, *mcp.ClientOptions) *mcp.ClientSession, prefix string) {
		session := connect(Scope{Name: "c1", Ends: true}, nil)
		count := func() string {
			text, isError := w.call(session, prefix+"count", nil)
			require.False(w, isError, text)
			return text[:1]
		}
		require.Equal(w, "1", count())
		require.Equal(w, "2", count())
		require.NoError(w, e.Restart())
		require.Equal(w, "1", count())
		e.Expire(faults.Expiries()[4])
		require.Equal(w, "1", count())
		e.Stop()
		time.AfterFunc(10*time.Second, func() { e.Start() })
		require.Equal(w, "2", count(), "the server was away, and has kept the session")
		for _, end := range w.ends {
			end() // the toolset, whose next list would open a session again
		}
		require.NoError(w, session.Close())
		require.Zero(w, e.Sessions(), "the scope ends with the client")
	})
}

// A failure is the one of the library, and its text is for a model.
func TestFailureHereIsAFailureOfTheLibrary(t *testing.T) {
	eachWay(t, func(w *world, e *faults.Server, tools *faults.Tools, connect func(Scope, *mcp.ClientOptions) *mcp.ClientSession, prefix string) {
		session := connect(Scope{Name: "c1"}, nil)
		defer session.Close()
		w.call(session, prefix+"count", nil)
		e.Inject("tools/call", faults.Times(1, faults.CutAnswer(0)))
		_, err := session.CallTool(w.Context(), &mcp.CallToolParams{Name: prefix + "count", Arguments: map[string]any{"call": "once"}})
		var failure *messages.Failure
		require.ErrorAs(w, err, &failure)
		require.ErrorIs(w, err, messages.CodeLost)
		require.True(w, failure.MayHaveRun)
		require.Equal(w, messages.Key{Server: "s", Scope: "c1"}, failure.Key)
		require.ErrorContains(w, err, "The tool may have run.")
		out := Outcome(nil, err)
		require.True(w, out.IsError)
		require.Contains(w, err.Error(), out.Parts[0].Text)
		require.Equal(w, 1, tools.Executions()["once"])
		result, err := session.CallTool(w.Context(), &mcp.CallToolParams{Name: prefix + "fail"})
		require.NoError(w, err, "an error of the tool is a result")
		require.True(w, result.IsError)
		require.Equal(w, "session not found", Outcome(result, nil).Parts[0].Text)
		_, err = session.CallTool(w.Context(), &mcp.CallToolParams{Name: prefix + "nothing"})
		require.ErrorAs(w, err, &failure)
		var said *jsonrpc.Error
		require.Equal(w, prefix == "", errors.As(err, &said), "the server itself has refused it, or else the toolset")
	})
}

func TestCancelledCallHereIsCancelledOnTheServer(t *testing.T) {
	eachWay(t, func(w *world, e *faults.Server, _ *faults.Tools, connect func(Scope, *mcp.ClientOptions) *mcp.ClientSession, prefix string) {
		session := connect(Scope{Name: "c1"}, nil)
		defer session.Close()
		w.call(session, prefix+"count", nil)
		ctx, cancel := context.WithCancel(w.Context())
		time.AfterFunc(time.Second, cancel)
		_, err := session.CallTool(ctx, &mcp.CallToolParams{Name: prefix + "wait"})
		require.ErrorIs(w, err, context.Canceled)
		synctest.Wait()
		require.Equal(w, 1, e.Count("notifications/cancelled"))
	})
}

// What servers ask and say reaches the client.
func TestQuestionsAndNotificationsReachTheClientHere(t *testing.T) {
	for name, way := range here {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				defer time.Sleep(3 * time.Second) // synctest: until Proto.Actor's throttle of dead letters has ended
				talker := newTalker()
				w := newWorld(t, nil, mcpbridge.Server{Name: "s", InMemory: talker})
				defer w.stop()
				said := make(chan string, 10)
				transport, prefix := way(w, Scope{Name: "c1", Ends: true})
				session := w.dial(transport, &mcp.ClientOptions{
					ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
						return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": r.Params.Message + " Ada"}}, nil
					},
					CreateMessageHandler: func(context.Context, *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
						return &mcp.CreateMessageResult{Model: "m", Role: "assistant", Content: &mcp.TextContent{Text: "sampled"}}, nil
					},
					ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
						if r.Params.Progress == 0.5 && r.Params.ProgressToken == "p" {
							said <- "progress"
						}
					},
					LoggingMessageHandler:  func(_ context.Context, r *mcp.LoggingMessageRequest) { said <- r.Params.Data.(string) },
					ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) { said <- r.Params.URI },
					ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { said <- "tools" },
				})
				defer session.Close()
				text, isError := w.call(session, prefix+"elicit", nil)
				require.False(t, isError, text)
				require.Equal(t, "hello Ada", text)
				text, isError = w.call(session, prefix+"sample", nil)
				require.False(t, isError, text)
				require.Equal(t, "sampled", text)
				require.NoError(t, session.SetLoggingLevel(t.Context(), &mcp.SetLoggingLevelParams{Level: "debug"}))
				talker.AddResource(&mcp.Resource{URI: "file:///x", Name: "x"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
					return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "file:///x", Text: "x"}}}, nil
				})
				require.NoError(t, session.Subscribe(t.Context(), &mcp.SubscribeParams{URI: "file:///x"}))
				params := &mcp.CallToolParams{Name: prefix + "talk"}
				params.SetProgressToken("p")
				_, err := session.CallTool(t.Context(), params)
				require.NoError(t, err)
				got := map[string]bool{<-said: true, <-said: true, <-said: true}
				require.Equal(t, map[string]bool{"progress": true, "word": true, "file:///x": true}, got)

				_, err = session.ListTools(t.Context(), nil)
				require.NoError(t, err)
				mcp.AddTool(talker, &mcp.Tool{Name: "another"}, func(context.Context, *mcp.CallToolRequest, map[string]any) (*mcp.CallToolResult, any, error) {
					return nil, nil, nil
				})
				require.Equal(t, "tools", <-said)
				list, err := session.ListTools(t.Context(), nil)
				require.NoError(t, err)
				require.True(t, hasTool(list, prefix+"another"))
			})
		})
	}
}

func hasTool(list *mcp.ListToolsResult, name string) bool {
	for _, t := range list.Tools {
		if t.Name == name {
			return true
		}
	}
	return false
}

// A toolset bounds results, asks before calls, and has prompts and resources of its servers beside its tools.
func TestClientHereGetsWhatTheToolsetGives(t *testing.T) {
	overHTTP(t, nil, func(w *world, _ *faults.Server, _ *faults.Tools) {
		tools := w.toolsOf("c1", &toolset.Policy{Decide: func(p toolset.Proposal) toolset.Decision {
			if p.Tool.Original == "count" {
				return toolset.Decision{Verdict: toolset.Defer}
			}
			return toolset.Decision{Verdict: toolset.Allow}
		}})
		session := w.dial(w.Tools(tools, Scope{Ends: true}), nil)
		defer session.Close()
		list, err := session.ListTools(w.Context(), nil)
		require.NoError(w, err)
		require.Equal(w, toolset.ReadTool, list.Tools[0].Name, "what follows it may grow")
		require.True(w, hasTool(list, "s__echo"))

		text, _ := w.call(session, "s__big", map[string]any{"size": 5000})
		require.Less(w, len(text), 1500)
		_, rest, _ := strings.Cut(text, `"id":"`)
		id, _, _ := strings.Cut(rest, `"`)
		text, isError := w.call(session, toolset.ReadTool, map[string]any{"id": id, "offset": 600})
		require.False(w, isError, text)
		require.Contains(w, text, strings.Repeat("x", 100))

		result, err := session.CallTool(w.Context(), &mcp.CallToolParams{Name: "s__count", Arguments: map[string]any{"call": "n"}})
		require.NoError(w, err)
		require.True(w, result.IsError)
		pending := PendingOf(result)
		require.NotNil(w, pending)
		require.Equal(w, "count", pending.Tool)
		require.JSONEq(w, `{"call": "n"}`, string(pending.Arguments))
		answered, err := tools.Answer(w.Context(), pending.ID, pending.Digest, toolset.Decision{Verdict: toolset.Allow})
		require.NoError(w, err)
		require.Equal(w, "2", answered.Result.Content[0].(*mcp.TextContent).Text)
		require.Nil(w, PendingOf(answered.Result))
		require.Nil(w, PendingOf(nil))

		prompts, err := session.ListPrompts(w.Context(), nil)
		require.NoError(w, err)
		require.Equal(w, "s__greet", prompts.Prompts[0].Name)
		prompt, err := session.GetPrompt(w.Context(), &mcp.GetPromptParams{Name: "s__greet", Arguments: map[string]string{"who": "you"}})
		require.NoError(w, err)
		require.Equal(w, "hello you", prompt.Description)
		read, err := session.ReadResource(w.Context(), &mcp.ReadResourceParams{URI: "file:///any/x"})
		require.NoError(w, err)
		require.Equal(w, "first", read.Contents[0].Text)
		require.True(w, session.InitializeResult().Capabilities.Tools.ListChanged)
	})
}

// Clients of one scope share its sessions. The scope ends with the last of them, if one of them says so.
func TestClientsHereShareAScope(t *testing.T) {
	eachWay(t, func(w *world, e *faults.Server, _ *faults.Tools, connect func(Scope, *mcp.ClientOptions) *mcp.ClientSession, prefix string) {
		count := func(session *mcp.ClientSession) string {
			text, isError := w.call(session, prefix+"count", nil)
			require.False(w, isError, text)
			return text
		}
		one := connect(Scope{Name: "c1"}, nil)
		require.Equal(w, "1", count(one))
		require.NoError(w, one.Close())
		require.Equal(w, 1, e.Sessions(), "the session stays open")
		two := connect(Scope{Name: "c1"}, nil)
		require.Equal(w, "2", count(two))
		three := connect(Scope{Name: "c1", Ends: true}, nil)
		require.Equal(w, "3", count(three))
		require.NoError(w, three.Close())
		require.Equal(w, "4", count(two), "another client uses the scope")
		require.NoError(w, two.Close())
		require.Zero(w, e.Sessions())
		require.NoError(w, two.Close())
		_, err := two.CallTool(w.Context(), &mcp.CallToolParams{Name: prefix + "count"})
		require.ErrorIs(w, err, mcp.ErrConnectionClosed)
	})
}

func TestClientsOfOneScopeSayTheSameOfThemselves(t *testing.T) {
	overHTTP(t, nil, func(w *world, _ *faults.Server, _ *faults.Tools) {
		session := w.dial(w.Server("s", Scope{Name: "c1"}), nil)
		defer session.Close()
		_, err := mcp.NewClient(&mcp.Implementation{Name: "other", Version: "1"}, nil).Connect(w.Context(), w.Server("s", Scope{Name: "c1"}), nil)
		require.ErrorContains(w, err, `scope "c1" has a client that says something else of itself`)
		other := w.dial(w.Server("s", Scope{Name: "c2"}), &mcp.ClientOptions{ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) { return nil, nil }})
		require.NoError(w, other.Close())
	})
}

// A session that is open keeps what it was told. So a client that it would not ask is refused, and others are not.
func TestClientHereIsRefusedWhereItCouldNotBeAsked(t *testing.T) {
	eachWay(t, func(w *world, e *faults.Server, _ *faults.Tools, connect func(Scope, *mcp.ClientOptions) *mcp.ClientSession, prefix string) {
		_, err := w.sup.Client().Ping(w.Context(), "s", "c1")
		require.NoError(w, err)
		asked := &mcp.ClientOptions{ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) { return nil, nil }}
		transport, _ := here[map[string]string{"": "server", "s__": "tools"}[prefix]](w, Scope{Name: "c1", Ends: true})
		_, err = mcp.NewClient(&mcp.Implementation{Name: "tester", Version: "1"}, asked).Connect(w.Context(), transport, nil)
		require.ErrorContains(w, err, `the session of server "s" in scope "c1" was opened for somebody else`)
		require.Equal(w, 1, e.Sessions(), "it ends nothing of others")
		require.NoError(w, connect(Scope{Name: "c1"}, nil).Close())
		one := connect(Scope{Name: "c2"}, asked)
		w.call(one, prefix+"count", nil)
		require.NoError(w, one.Close())
		two := connect(Scope{Name: "c2", Ends: true}, asked)
		text, _ := w.call(two, prefix+"count", nil)
		require.Equal(w, "2", text, "the session was opened for the same client")
		require.NoError(w, two.Close())
	})
}

// The scope of a client ends with the actor that it belongs to, and the client with it.
func TestScopeHereEndsWithItsOwner(t *testing.T) {
	overHTTP(t, nil, func(w *world, e *faults.Server, _ *faults.Tools) {
		agent := w.system.Root.Spawn(actor.PropsFromFunc(func(actor.Context) {}))
		first := w.dial(w.Server("s", Scope{Name: "c1", Owner: agent}), nil)
		w.call(first, "count", nil)
		require.NoError(w, first.Close())
		require.Equal(w, 1, e.Sessions())
		second := w.dial(w.Server("s", Scope{Name: "c1", Owner: agent}), nil)
		text, _ := w.call(second, "count", nil)
		require.Equal(w, "2", text)
		w.system.Root.Stop(agent)
		time.Sleep(time.Second)
		require.Zero(w, e.Sessions())
		_, err := second.CallTool(w.Context(), &mcp.CallToolParams{Name: "count"})
		require.ErrorIs(w, err, mcp.ErrConnectionClosed)
	})
}

// Of clients that share a session, the one that has called is asked, and each has subscriptions of its own.
func TestClientsHereThatShareASessionAreApart(t *testing.T) {
	for name, way := range here {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				defer time.Sleep(3 * time.Second) // synctest: until Proto.Actor's throttle of dead letters has ended
				talker := newTalker()
				talker.AddResource(&mcp.Resource{URI: "file:///x", Name: "x"}, nil)
				server := faults.Local(func() http.Handler {
					return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return talker }, nil)
				})
				defer server.Close()
				w := newWorld(t, nil, remote("s", server))
				defer w.stop()
				updates := make([]atomic.Int32, 2)
				connect := func(i int) (*mcp.ClientSession, string) {
					transport, prefix := way(w, Scope{Name: "c1", Ends: true})
					return w.dial(transport, &mcp.ClientOptions{
						ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
							return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": fmt.Sprint(i)}}, nil
						},
						ResourceUpdatedHandler: func(context.Context, *mcp.ResourceUpdatedNotificationRequest) { updates[i].Add(1) },
					}), prefix
				}
				zero, prefix := connect(0)
				one, _ := connect(1)
				var all sync.WaitGroup
				for i, session := range []*mcp.ClientSession{zero, one} {
					for range 8 {
						all.Go(func() {
							text, isError := w.call(session, prefix+"elicit", nil)
							require.False(t, isError, text)
							require.Equal(t, fmt.Sprint(i), text)
						})
					}
				}
				all.Wait()
				subscribe := &mcp.SubscribeParams{URI: "file:///x"}
				require.NoError(t, zero.Subscribe(t.Context(), subscribe))
				require.NoError(t, one.Subscribe(t.Context(), subscribe))
				require.NoError(t, zero.Unsubscribe(t.Context(), &mcp.UnsubscribeParams{URI: "file:///x"}))
				require.NoError(t, talker.ResourceUpdated(t.Context(), &mcp.ResourceUpdatedNotificationParams{URI: "file:///x"}))
				synctest.Wait()
				require.Zero(t, updates[0].Load())
				require.EqualValues(t, 1, updates[1].Load())
				require.NoError(t, zero.Close())
				require.NoError(t, one.Close())
			})
		})
	}
}

// A client without the name of a scope has one of its own.
func TestClientHereWithoutAScopeHasOneOfItsOwn(t *testing.T) {
	overHTTP(t, nil, func(w *world, e *faults.Server, _ *faults.Tools) {
		transport := w.Server("s", Scope{})
		one, two := w.dial(transport, nil), w.dial(transport, nil)
		w.call(one, "count", nil)
		w.call(two, "count", nil)
		require.Equal(w, 2, e.Sessions())
		require.NoError(w, one.Close())
		require.Equal(w, 1, e.Sessions())
		w.Close()
		require.Zero(w, e.Sessions(), "Close ends the clients")
		_, err := two.ListTools(w.Context(), nil)
		require.Error(w, err)
		_, err = mcp.NewClient(&mcp.Implementation{Name: "late"}, nil).Connect(w.Context(), transport, nil)
		require.ErrorContains(w, err, "the gateway is closed")
		w.Close()
	})
}

func TestServerThatIsNotPreparedIsRefusedByName(t *testing.T) {
	system := actor.NewActorSystem(supervisor.WithSystemLogger(zerolog.Nop()))
	sup, err := supervisor.Start(system, supervisor.Config{Servers: []mcpbridge.Server{{Name: "raw", InMemory: faults.NewTools().Server()}}})
	require.NoError(t, err)
	defer func() { require.NoError(t, sup.Stop(context.Background())) }()
	_, err = New(sup, Config{Servers: []toolset.Filter{{Name: "raw"}, {Name: "gone"}}})
	require.ErrorContains(t, err, `servers[0]: server "raw" is not prepared for a gateway: give gateway.Prepare its configuration`)
	require.ErrorContains(t, err, `servers[1]: server "gone" is not configured: use one of ["raw"]`)
	require.ErrorContains(t, err, "prefixed: must be true")
	_, err = New(nil, Config{})
	require.ErrorContains(t, err, "backend: is nil")
	g, err := New(sup, Config{})
	require.NoError(t, err)
	defer g.Close()
	connect := func(transport mcp.Transport) error {
		_, err := transport.Connect(t.Context())
		return err
	}
	require.ErrorContains(t, connect(g.Server("raw", Scope{})), "gateway.Prepare")
	require.ErrorContains(t, connect(g.Server("ra", Scope{})), "not configured")
	require.ErrorContains(t, connect(g.Server("raw", Scope{Name: "a\x00b"})), "scope")
	tools, err := toolset.New(system, sup, toolset.Config{Scope: "c1", Servers: []toolset.Filter{{Name: "*"}}})
	require.NoError(t, err)
	defer tools.Close()
	require.ErrorContains(t, connect(g.Tools(tools, Scope{})), "gateway.Prepare")
	require.ErrorContains(t, connect(g.Tools(tools, Scope{Name: "c2"})), "not that of the toolset")
	require.ErrorContains(t, connect(g.Tools(nil, Scope{})), "toolset: is nil")
}
