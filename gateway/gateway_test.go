package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/gateway/internal/mcpserver"
	"github.com/mcpactor/mcpactor/internal/listfile"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
	"github.com/mcpactor/mcpactor/toolset"
)

const stateGone = "\n\nNote: server \"s\" has a new session. State that it kept in the last one, such as a login or an open page, is gone."

// A server that restarts, forgets or is away is invisible, but for the state that is gone.
func TestClientKeepsWorkingWhileItsServerRestarts(t *testing.T) {
	overHTTP(t, nil, func(w *world, e *faults.Server, _ *faults.Tools) {
		session := w.connect(nil)
		count := func() string {
			text, isError := w.call(session, "count", nil)
			require.False(w, isError, text)
			return text
		}
		require.Equal(w, "1", count())
		require.Equal(w, "2", count())
		require.NoError(w, e.Restart())
		require.Equal(w, "1"+stateGone, count())
		require.Equal(w, "2", count(), "it is told once")
		e.Expire(faults.Expiries()[4])
		require.Equal(w, "1"+stateGone, count())
		e.Stop()
		time.AfterFunc(10*time.Second, func() { e.Start() })
		began := time.Now()
		require.Equal(w, "2", count(), "the server was away, and has kept the session")
		require.Less(w, time.Since(began), 13*time.Second)
	})
}

// A call that may have run is not repeated: the model is told.
func TestModelIsToldOfACallThatMayHaveRun(t *testing.T) {
	overHTTP(t, nil, func(w *world, e *faults.Server, tools *faults.Tools) {
		session := w.connect(nil)
		w.call(session, "count", nil)
		e.Inject("tools/call", faults.Times(1, faults.CutAnswer(0)))
		text, isError := w.call(session, "count", map[string]any{"call": "once"})
		require.True(w, isError)
		require.Contains(w, text, "The tool may have run.")
		require.Equal(w, 1, tools.Executions()["once"])
	})
}

func TestServerThatIsAwayIsSaidToBeAway(t *testing.T) {
	overHTTP(t, nil, func(w *world, e *faults.Server, _ *faults.Tools) {
		e.Stop()
		began := time.Now()
		session := w.connect(nil)
		_, err := session.ListTools(w.Context(), nil)
		require.ErrorContains(w, err, "refused", "an empty list would say that there are no tools")
		_, err = session.ListResources(w.Context(), nil)
		require.ErrorContains(w, err, "refused")
		_, err = w.connect(nil).ListTools(w.Context(), nil)
		require.ErrorContains(w, err, "refused")
		require.Equal(w, downPatience, time.Since(began), "it is waited for once, by one client")
		text, isError := w.call(session, "count", nil)
		require.True(w, isError)
		require.Contains(w, text, "cannot be reached")
		require.Contains(w, text, "The tool did not run.")
	})
}

// The client is told when the list of a server is there that was away. A server that is away hides no other.
func TestClientIsToldWhenTheServerIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(3 * time.Second) // synctest: until Proto.Actor's throttle of dead letters has ended
		up, away, end := twoServers()
		defer end()
		away.Stop()
		w := newWorld(t, nil, remote("up", up), remote("away", away))
		defer w.stop()
		r := w.raw()
		require.Contains(t, r.open(), `"listChanged":true`)
		list := func(id string) string {
			answer := r.ask(`{"jsonrpc":"2.0","id":`+id+`,"method":"tools/list"}`, id)
			require.Nil(t, answer.Error, "%v", answer.Error)
			return string(answer.Result)
		}
		first := list("1")
		require.Contains(t, first, `"up__count"`)
		require.NotContains(t, first, `"away__`)
		said := r.await(func(m *mcpserver.Message) bool { return m.Method == "notifications/message" })
		require.Contains(t, string(said.Params), "away: ")
		time.Sleep(time.Minute)
		require.NoError(t, away.Start())
		r.await(func(m *mcpserver.Message) bool { return m.Method == "notifications/tools/list_changed" })
		require.Contains(t, list("2"), `"away__count"`)
		answer := r.ask(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"away__echo","arguments":{"call":"hi"}}}`, "3")
		require.Contains(t, string(answer.Result), `"hi"`)
		require.NotNil(t, r.ask(`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"nobody__nothing"}}`, "4").Error)
	})
}

// A server that fails at once delays no list, and is found when it is mended.
func TestServerThatFailsAtOnceDelaysNoList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(3 * time.Second) // synctest: until Proto.Actor's throttle of dead letters has ended
		up, closed, end := twoServers()
		defer end()
		mend := closed.Inject("initialize", faults.Refuse(http.StatusUnauthorized, ""))
		w := newWorld(t, nil, remote("up", up), remote("closed", closed))
		defer w.stop()
		session, began := w.connect(nil), time.Now()
		list := func() int {
			listed, err := session.ListTools(w.Context(), nil)
			require.NoError(t, err)
			return len(listed.Tools)
		}
		n := list()
		for range 3 {
			time.Sleep(700 * time.Millisecond) // while it pauses between attempts
			require.Equal(t, n, list())
		}
		require.Equal(t, 3*700*time.Millisecond, time.Since(began))
		mend()
		time.Sleep(time.Minute)
		require.Equal(t, 2*n, list())
	})
}

// What a server lists outlives the process: a client is answered at once, while the server is away, or has not started yet.
func TestListsOutliveTheProcess(t *testing.T) {
	folder := t.TempDir()
	overHTTP(t, &listfile.Store{Folder: folder}, func(w *world, _ *faults.Server, _ *faults.Tools) {
		listed, err := w.connect(nil).ListTools(w.Context(), nil)
		require.NoError(w, err)
		require.NotEmpty(w, listed.Tools)
		time.Sleep(5 * time.Second) // the store is written
	})
	for name, disturb := range map[string]func(*faults.Server){
		"away": func(e *faults.Server) { e.Stop() }, "starting": func(e *faults.Server) { e.Inject("initialize", faults.Delay(10*time.Second)) },
	} {
		t.Run(name, func(t *testing.T) {
			overHTTP(t, &listfile.Store{Folder: folder}, func(w *world, e *faults.Server, _ *faults.Tools) {
				disturb(e)
				began := time.Now()
				session := w.connect(nil)
				listed, err := session.ListTools(w.Context(), nil)
				require.NoError(w, err)
				require.NotEmpty(w, listed.Tools)
				require.Equal(w, "faults", session.InitializeResult().ServerInfo.Name)
				require.Zero(w, time.Since(began), "it waits for nothing")
				require.Zero(w, e.Count("initialize"))
				if name == "away" {
					return
				}
				// A call waits for the server. Other clients do not.
				called := make(chan string, 1)
				go func() {
					text, _ := w.call(session, "count", nil)
					called <- text
				}()
				time.Sleep(time.Second)
				require.Equal(w, 1, e.Count("initialize"))
				_, err = w.connect(nil).ListTools(w.Context(), nil)
				require.NoError(w, err)
				require.Equal(w, time.Second, time.Since(began))
				require.Equal(w, "1", <-called)
				require.GreaterOrEqual(w, time.Since(began), 10*time.Second)
			})
		})
	}
}

// What the SDK does not know goes through in both directions, and so do the errors of a server.
func TestEverythingGoesThrough(t *testing.T) {
	overHTTP(t, nil, func(w *world, e *faults.Server, _ *faults.Tools) {
		r := w.raw()
		r.open()
		var asked mcpserver.Message
		e.Inject("tools/call", func(rw http.ResponseWriter, req *faults.Request, _ http.Handler) {
			body, _ := io.ReadAll(req.Body)
			json.Unmarshal(body, &asked)
			rw.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(rw, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"hologram","x":"<&>"}],"later":[1]}}`, req.ID)
		})
		answer := r.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"count","arguments":{"n":12345678901234567890},"_meta":{"mine":1},"task":{"ttl":5}}}`, "1")
		require.Equal(w, `{"content":[{"type":"hologram","x":"<&>"}],"later":[1]}`, string(answer.Result))
		require.JSONEq(w, `{"name":"count","arguments":{"n":12345678901234567890},"_meta":{"mine":1},"task":{"ttl":5}}`, string(asked.Params))
		require.NotNil(w, r.ask(`{"jsonrpc":"2.0","id":2,"method":"prompts/get","params":{"name":"nothing"}}`, "2").Error)
		require.Contains(w, string(r.ask(`{"jsonrpc":"2.0","id":3,"method":"prompts/get","params":{"name":"greet","arguments":{"who":"Ada"}}}`, "3").Result), "hello Ada")
		require.Contains(w, string(r.ask(`{"jsonrpc":"2.0","id":4,"method":"resources/read","params":{"uri":"file:///one"}}`, "4").Result), "file:///one")
		require.EqualValues(w, -32601, r.ask(`{"jsonrpc":"2.0","id":5,"method":"acme/x"}`, "5").Error.Code)
		require.EqualValues(w, -32700, r.ask(`{`, "null").Error.Code)
		require.Equal(w, "{}", string(r.ask(`{"jsonrpc":"2.0","id":6,"method":"ping"}`, "6").Result))
	})
}

// A revision that is not known is refused with the one that is, and such a request opens nothing.
func TestLaterRevisionsAreRefusedWithThoseThatAreSpoken(t *testing.T) {
	overHTTP(t, nil, func(w *world, e *faults.Server, _ *faults.Tools) {
		r := w.raw()
		for _, method := range []string{"server/discover", "tools/list"} {
			refused := r.ask(`{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2027-01-01"}}}`, "1")
			require.EqualValues(w, mcp.CodeUnsupportedProtocolVersion, refused.Error.Code)
			require.JSONEq(w, `{"supported":["2026-07-28"],"requested":"2027-01-01"}`, string(refused.Error.Data))
		}
		require.Zero(w, e.Count("initialize"))
		require.Contains(w, r.open(), `"protocolVersion":"2025-11-25"`)
	})
}

// A client opens once, and before all else. What it says in a wrong way opens nothing.
func TestClientOpensOnce(t *testing.T) {
	overHTTP(t, nil, func(w *world, e *faults.Server, _ *faults.Tools) {
		r := w.raw()
		for _, method := range []string{"tools/list", "tools/call", "resources/subscribe", "logging/setLevel", "acme/x"} {
			require.EqualValues(w, -32600, r.ask(`{"jsonrpc":"2.0","id":1,"method":"`+method+`"}`, "1").Error.Code, method)
		}
		require.Equal(w, "{}", string(r.ask(`{"jsonrpc":"2.0","id":1,"method":"ping"}`, "1").Result))
		r.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		r.send(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
		for _, params := range []string{``, `,"params":"x"`, `,"params":{"protocolVersion":1}`, `,"params":{"capabilities":7}`, `,"params":{"clientInfo":"x"}`} {
			require.EqualValues(w, -32602, r.ask(`{"jsonrpc":"2.0","id":1,"method":"initialize"`+params+`}`, "1").Error.Code, params)
		}
		require.Zero(w, e.Count("initialize"))
		require.Contains(w, string(r.ask(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"1999-12-31"}}`, "1").Result), `"protocolVersion":"2025-11-25"`)
		require.EqualValues(w, -32600, r.ask(initialize, `"open"`).Error.Code)
		require.Nil(w, r.list("tools/list").Error)
		require.Len(w, w.scopes, 1)
	})
}

// A cancelled request is cancelled on its server.
func TestCancelledRequestIsCancelledOnTheServer(t *testing.T) {
	overHTTP(t, nil, func(w *world, e *faults.Server, _ *faults.Tools) {
		session := w.connect(nil)
		w.call(session, "count", nil)
		ctx, cancel := context.WithCancel(w.Context())
		time.AfterFunc(time.Second, cancel)
		_, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "wait"})
		require.ErrorIs(w, err, context.Canceled)
		time.Sleep(time.Second)
		require.Equal(w, 1, e.Count("notifications/cancelled"))
	})
}

// Each client has sessions of its own, which end with it. Those of a shared server stay.
func TestSessionsEndWithTheirClient(t *testing.T) {
	for name, share := range map[string]string{"own": "", "shared": "all"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				defer time.Sleep(3 * time.Second) // synctest: until Proto.Actor's throttle of dead letters has ended
				tools := faults.NewTools()
				e := faults.Local(tools.Handler)
				defer tools.Close()
				defer e.Close()
				cfg := setup{Tools: []toolset.Filter{{Name: "s", Scope: share}}}
				cfg.Supervisor.Servers = []mcpbridge.Server{remote("s", e)}
				w := worldOf(t, cfg)
				defer w.stop()
				one, two := w.connect(nil), w.connect(nil)
				text, _ := w.call(one, "count", nil)
				require.Equal(t, "1", text)
				second, _ := w.call(two, "count", nil)
				waiting := make(chan struct{})
				go func() {
					one.CallTool(t.Context(), &mcp.CallToolParams{Name: "wait"})
					close(waiting)
				}()
				time.Sleep(time.Second)
				if share == "" {
					require.Equal(t, "1", second)
					require.Equal(t, 2, e.Sessions())
				} else {
					require.Equal(t, "2", second)
					require.Equal(t, 1, e.Sessions())
				}
				w.ends[0]()
				<-waiting
				time.Sleep(closePatience)
				require.Equal(t, 1, e.Sessions())
				require.Equal(t, 1, e.Count("notifications/cancelled"))
				_, isError := w.call(two, "count", nil)
				require.False(t, isError)
			})
		})
	}
}

// A client that leaves while it is bound, or while the lists are fetched for it, leaves no actor and no session.
func TestClientThatLeavesWhileItIsBoundLeavesNothing(t *testing.T) {
	overHTTP(t, nil, func(w *world, e *faults.Server, _ *faults.Tools) {
		e.Inject("initialize", faults.Delay(time.Second))
		actors := func() (ids []string) {
			for _, some := range w.system.ProcessRegistry.LocalPIDs.LocalPIDs {
				for id, process := range some.Items() {
					if _, is := process.(*actor.ActorProcess); is { // a client keeps a mailbox for its next answer
						ids = append(ids, id)
					}
				}
			}
			return ids
		}
		before := actors()
		for moment := range 300 {
			r, last := w.raw(), len(w.ends)
			r.send(initialize)
			for range moment % 100 {
				runtime.Gosched()
			}
			w.ends[last-1]()
			w.ends = w.ends[:last-1]
		}
		time.Sleep(10 * time.Second)
		require.Zero(w, len(w.scopes))
		require.ElementsMatch(w, before, actors())
		require.Zero(w, e.Sessions())
	})
}

// What servers ask goes to the client for whose request they ask, and progress, logs and updates come from the server.
func TestServerSpeaksToTheClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(3 * time.Second) // synctest: until Proto.Actor's throttle of dead letters has ended
		w := newWorld(t, nil, mcpbridge.Server{Name: "s", InMemory: newTalker(), CustomMethods: []string{"acme/x"}, CustomNotifications: []string{"acme/y"}})
		defer w.stop()
		heard := make(chan string, 100)
		session := w.connect(&mcp.ClientOptions{
			ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": r.Params.Message + " Ada"}}, nil
			},
			CreateMessageHandler: func(context.Context, *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
				return &mcp.CreateMessageResult{Role: "assistant", Model: "m", Content: &mcp.TextContent{Text: "sampled"}}, nil
			},
			ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
				heard <- fmt.Sprint("progress ", r.Params.ProgressToken, r.Params.Progress)
			},
			LoggingMessageHandler:  func(_ context.Context, r *mcp.LoggingMessageRequest) { heard <- fmt.Sprint("log ", r.Params.Data) },
			ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) { heard <- r.Params.URI },
		})
		text, _ := w.call(session, "elicit", nil)
		require.Equal(t, "hello Ada", text)
		text, _ = w.call(session, "sample", nil)
		require.Equal(t, "sampled", text)
		require.NoError(t, session.SetLoggingLevel(t.Context(), &mcp.SetLoggingLevelParams{Level: "info"}))
		require.NoError(t, session.Subscribe(t.Context(), &mcp.SubscribeParams{URI: "file:///x"}))
		params := &mcp.CallToolParams{Name: "talk"}
		params.SetProgressToken("mine")
		_, err := session.CallTool(t.Context(), params)
		require.NoError(t, err)
		got := []string{<-heard, <-heard, <-heard}
		require.ElementsMatch(t, []string{"progress mine0.5", "log word", "file:///x"}, got)
	})
}

// newTalker returns a server that asks, reports and logs.
func newTalker() *mcp.Server {
	s := withSessions(mcp.NewServer(&mcp.Implementation{Name: "talker", Version: "1"}, &mcp.ServerOptions{
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
	}))
	tool := func(name string, f func(context.Context, *mcp.CallToolRequest) (string, error)) {
		mcp.AddTool(s, &mcp.Tool{Name: name}, func(ctx context.Context, r *mcp.CallToolRequest, _ map[string]any) (*mcp.CallToolResult, any, error) {
			text, err := f(ctx, r)
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, err
		})
	}
	tool("elicit", func(ctx context.Context, r *mcp.CallToolRequest) (string, error) {
		answer, err := r.Session.Elicit(ctx, &mcp.ElicitParams{Message: "hello", RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{"name": map[string]any{"type": "string"}}}})
		if err != nil {
			return "", err
		}
		return fmt.Sprint(answer.Content["name"]), nil
	})
	tool("sample", func(ctx context.Context, r *mcp.CallToolRequest) (string, error) {
		answer, err := r.Session.CreateMessage(ctx, &mcp.CreateMessageParams{MaxTokens: 1, Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: "x"}}}})
		if err != nil {
			return "", err
		}
		return answer.Content.(*mcp.TextContent).Text, nil
	})
	tool("talk", func(ctx context.Context, r *mcp.CallToolRequest) (string, error) {
		if err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: 0.5}); err != nil {
			return "", err
		}
		if err := r.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "info", Data: "word"}); err != nil {
			return "", err
		}
		return "", s.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: "file:///x"})
	})
	return s
}

// A process that died is started again, and nothing is left of it.
func TestProcessThatDiesIsStartedAgain(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	w := newWorld(t, nil, mcpbridge.Server{Name: "s", Command: self, Env: map[string]string{processVar: "1", "GORACE": "atexit_sleep_ms=0"}})
	session := w.connect(nil)
	first, _ := w.call(session, "pid", nil)
	text, isError := w.call(session, "exit", nil)
	require.True(t, isError, text)
	require.Contains(t, text, "may have run")
	second, _ := w.call(session, "pid", nil)
	require.NotEqual(t, first, second)
	require.Contains(t, second, "is gone.")
	w.stop()
}

// A client that never gives up is told in words when nothing was heard of its call.
func TestCallOfAClientEndsWhenNothingWasHeardOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(3 * time.Second) // synctest: until Proto.Actor's throttle of dead letters has ended
		tools := faults.NewTools()
		defer tools.Close()
		w := worldOf(t, setup{
			Supervisor: supervisor.Config{Servers: []mcpbridge.Server{{Name: "s", InMemory: tools.Server()}}},
			Tools:      []toolset.Filter{{Name: "s"}}, Quiet: time.Minute,
		})
		defer w.stop()
		session, began := w.connect(nil), time.Now()
		text, isError := w.call(session, "wait", nil)
		require.True(t, isError)
		require.Contains(t, text, "silent for too long")
		require.Contains(t, text, "The tool may have run.")
		require.Equal(t, time.Minute, time.Since(began))
	})
}
