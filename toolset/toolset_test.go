package toolset_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/mcpactor/mcpactor/internal/leaktest"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/toolset"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, leaktest.Throttle...)
}

// world is a supervisor with the servers "one" and "two", and a toolset for them.
type world struct {
	*testing.T
	system *actor.ActorSystem
	sup    *supervisor.Supervisor
	one    *server
	two    *server
	*toolset.Toolset
}

// imagine runs a scenario in a bubble of testing/synctest.
func imagine(t *testing.T, cfg toolset.Config, scenario func(ctx context.Context, w *world)) {
	t.Helper()
	imagineWith(t, nil, cfg, scenario)
}

// imagineWith is imagine with a store for calls.
func imagineWith(t *testing.T, store mcpbridge.Store, cfg toolset.Config, scenario func(ctx context.Context, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, system: newSystem(), one: newServer("one", "a", "b"), two: newServer("two", "c")}
		var err error
		w.sup, err = supervisor.Start(w.system, supervisor.Config{CallStore: store, Servers: []mcpbridge.Server{
			{Name: "one", InMemory: w.one.mcp}, {Name: "two", InMemory: w.two.mcp},
		}})
		require.NoError(t, err)
		defer func() {
			require.NoError(t, w.sup.Stop(context.Background()))
			time.Sleep(3 * time.Second) // until Proto.Actor's throttle of dead letters ends
		}()
		subscribed := w.system.EventStream.Length()
		if cfg.Servers == nil {
			cfg.Servers = []toolset.Filter{{Name: "one"}, {Name: "two"}}
		}
		cfg.Scope = "s"
		w.Toolset, err = toolset.New(w.system, w.sup, cfg)
		require.NoError(t, err)
		defer func() {
			w.Close()
			w.Close()
			require.Equal(t, subscribed, w.system.EventStream.Length())
		}()
		scenario(t.Context(), w)
	})
}

// tools returns the names of the tools, and the names of missing servers with the
// prefix "!".
func (w *world) tools(ctx context.Context) string {
	w.Helper()
	set, err := w.Tools(ctx)
	require.NoError(w, err)
	var names []string
	for _, tool := range set.Tools {
		names = append(names, tool.Name)
	}
	for _, missing := range set.Missing {
		names = append(names, "!"+missing.Key.Server)
	}
	return strings.Join(names, " ")
}

// ask asks for the tools in a new goroutine.
func (w *world) ask(ctx context.Context) <-chan string {
	names := make(chan string, 1)
	go func() { names <- w.tools(ctx) }()
	synctest.Wait()
	return names
}

// changed announces to all sessions of a server that its tools have changed.
func (w *world) changed(name string) {
	map[string]*server{"one": w.one, "two": w.two}[name].changed()
}

// server is an MCP server that counts how often its tools are listed and called.
type server struct {
	mcp *mcp.Server

	mu    sync.Mutex
	lists int
	calls map[string]int // by the name of the tool
	err   error          // of lists
	delay time.Duration  // of lists, after they were made
}

func newServer(name string, tools ...string) *server {
	s := &server{mcp: mcp.NewServer(&mcp.Implementation{Name: name, Version: "1"}, nil), calls: map[string]int{}}
	s.mcp.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if call, is := req.(*mcp.CallToolRequest); is {
				s.mu.Lock()
				s.calls[call.Params.Name]++
				s.mu.Unlock()
			}
			if method != "tools/list" {
				return next(ctx, method, req)
			}
			s.mu.Lock()
			s.lists++
			failure, delay := s.err, s.delay
			s.mu.Unlock()
			result, err := next(ctx, method, req)
			if failure != nil {
				result, err = nil, failure
			}
			select {
			case <-time.After(delay):
			case <-ctx.Done():
			}
			return result, err
		}
	})
	s.add(tools...)
	return s
}

// add adds tools that answer with their name and arguments.
func (s *server) add(tools ...string) {
	for _, name := range tools {
		tool := &mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}
		s.mcp.AddTool(tool, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: name + string(req.Params.Arguments)}}}, nil
		})
	}
}

// changed announces to all sessions that the tools have changed.
func (s *server) changed() {
	s.add("temporary")
	s.mcp.RemoveTools("temporary")
	time.Sleep(time.Second) // the SDK waits for further changes
	synctest.Wait()
}

func (s *server) set(err error, delay time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err, s.delay = err, delay
}

func (s *server) listed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lists
}

// count returns how often a tool was called.
func (s *server) count(tool string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[tool]
}

func TestToolsOfAllServersAreListedOnceAndCalled(t *testing.T) {
	imagine(t, toolset.Config{}, func(ctx context.Context, w *world) {
		for range 3 {
			require.Equal(w, "one__a one__b two__c", w.tools(ctx))
			synctest.Wait() // until the events of the sessions have arrived
		}
		require.Equal(w, 1, w.one.listed())
		require.Equal(w, 1, w.two.listed())

		result, err := w.Call(ctx, "one__b", json.RawMessage(`{"x": 1}`))
		require.NoError(w, err)
		require.Equal(w, `b{"x":1}`, toolset.Convert(result.Result).Text())
		require.Equal(w, messages.Key{Server: "one", Scope: "s"}, result.Key)

		call, err := w.Approve(ctx, "two__c", nil)
		require.NoError(w, err)
		reply, err := w.sup.Client().Do(ctx, call)
		require.NoError(w, err)
		require.Equal(w, "c{}", toolset.Convert(reply.(*messages.ToolResult).Result).Text())
	})
}

// elsewhere is a source with events of another supervisor, as the member of a cluster is.
type elsewhere struct {
	*supervisor.Supervisor
	handle func(messages.Event)
}

func (s *elsewhere) Subscribe(handle func(messages.Event)) (cancel func()) {
	s.handle = handle
	return s.Supervisor.Subscribe(handle)
}

// The members of a cluster may count the generations of a session apart.
func TestSessionsOfOtherMembersMakeAListStale(t *testing.T) {
	imagine(t, toolset.Config{}, func(ctx context.Context, w *world) {
		source := &elsewhere{Supervisor: w.sup}
		tools, err := toolset.New(w.system, source, toolset.Config{Scope: "s", Servers: []toolset.Filter{{Name: "one"}}})
		require.NoError(w, err)
		defer tools.Close()
		asks := func(events ...messages.Event) int {
			before, err := w.sup.Client().Inspect(ctx)
			require.NoError(w, err)
			for _, event := range events {
				source.handle(event) // may ask at once, beside Tools
			}
			_, err = tools.Tools(ctx)
			require.NoError(w, err)
			synctest.Wait() // until the events of the session have arrived
			after, err := w.sup.Client().Inspect(ctx)
			require.NoError(w, err)
			return int(after.Counters.Calls - before.Counters.Calls)
		}
		at := func(generation uint64) messages.Stamp {
			return messages.Stamp{Key: messages.Key{Server: "one", Scope: "s"}, Supervisor: "b", Generation: generation}
		}
		require.Positive(w, asks())
		require.Equal(w, 0, asks())
		for _, event := range []messages.Event{
			&messages.ToolsChanged{Stamp: at(1)},
			&messages.SessionOpened{Stamp: at(5)},
			&messages.SessionOpened{Stamp: at(6)},
			&messages.SessionClosed{Stamp: at(6)},
			&messages.SessionOpened{Stamp: at(1)}, // its process has started again
		} {
			require.Equal(w, 1, asks(event), "%T", event)
			require.Equal(w, 0, asks())
		}
		require.Equal(w, 0, asks(&messages.SessionEvicted{Stamp: at(1)}))
		require.Equal(w, 1, w.one.listed(), "the catalogue knows that nothing has changed")
	})
}

func TestToolsThatChangedAreListedAgain(t *testing.T) {
	imagine(t, toolset.Config{Stability: toolset.Follow}, func(ctx context.Context, w *world) {
		before, err := w.Tools(ctx)
		require.NoError(w, err)
		w.one.add("z")
		w.one.mcp.RemoveTools("a")
		require.Equal(w, "one__a one__b two__c", w.tools(ctx), "the server has not said so")
		w.changed("one")
		require.Equal(w, "one__b one__z two__c", w.tools(ctx))
		require.Equal(w, 2, w.one.listed())
		require.Equal(w, 1, w.two.listed())
		require.Len(w, before.Tools, 3)
		require.NotNil(w, before.Tool("one__a"))
	})
}

func TestChangeDuringAListIsSeenByWhoAsksAfterIt(t *testing.T) {
	imagine(t, toolset.Config{}, func(ctx context.Context, w *world) {
		w.one.set(nil, 3*time.Second)
		early := w.ask(ctx)
		w.one.add("z")
		w.changed("one")
		late := w.ask(ctx)
		require.Equal(w, 1, w.one.listed())
		require.Equal(w, "one__a one__b one__z two__c", <-late)
		require.Equal(w, "one__a one__b one__z two__c", <-early)
		require.Equal(w, 2, w.one.listed())
	})
}

func TestListThatIsTheSameKeepsItsTools(t *testing.T) {
	imagine(t, toolset.Config{}, func(ctx context.Context, w *world) {
		before, err := w.Tools(ctx)
		require.NoError(w, err)
		w.changed("one")
		after, err := w.Tools(ctx)
		require.NoError(w, err)
		require.Equal(w, 2, w.one.listed())
		require.Same(w, before.Tools[0], after.Tools[0])
	})
}

func TestNewSessionIsListedAgain(t *testing.T) {
	imagine(t, toolset.Config{}, func(ctx context.Context, w *world) {
		w.tools(ctx)
		_, err := w.sup.Client().CloseServer(ctx, "one")
		require.NoError(w, err)
		w.one.add("z")
		require.Equal(w, "one__a one__b two__c", w.tools(ctx), "no session is opened to list again")
		for lists := range 2 {
			if lists > 0 {
				require.NoError(w, w.sup.Client().Restart(ctx, "one", "s"))
			} else {
				_, err = w.Call(ctx, "one__b", nil)
				require.NoError(w, err)
			}
			synctest.Wait()
			require.Equal(w, 2+lists, w.one.listed(), "the list of a session that opens is not waited for")
			for range 2 {
				require.Equal(w, "one__a one__b two__c one__z", w.tools(ctx))
			}
			require.Equal(w, 2+lists, w.one.listed())
		}
	})
}

func TestListOfAnEvictedSessionStays(t *testing.T) {
	imagine(t, toolset.Config{}, func(ctx context.Context, w *world) {
		w.tools(ctx)
		var closed atomic.Int32
		events := w.system.EventStream.Subscribe(func(event any) {
			if _, ok := event.(*messages.SessionClosed); ok {
				closed.Add(1)
			}
		})
		time.Sleep(time.Hour)
		w.system.EventStream.Unsubscribe(events)
		require.EqualValues(w, 2, closed.Load())
		require.Equal(w, "one__a one__b two__c", w.tools(ctx))
		require.Equal(w, 1, w.one.listed())
		set, err := w.Tools(ctx)
		require.NoError(w, err)
		require.True(w, set.Tool("one__a").Stale)

		w.one.add("z")
		_, err = w.Call(ctx, "one__a", nil)
		require.NoError(w, err)
		synctest.Wait()
		set, err = w.Tools(ctx)
		require.NoError(w, err)
		require.False(w, set.Tool("one__z").Stale)
		require.True(w, set.Tool("two__c").Stale)
	})
}

func TestReloadIsFollowed(t *testing.T) {
	imagine(t, toolset.Config{Stability: toolset.Follow}, func(ctx context.Context, w *world) {
		reload := func(servers ...mcpbridge.Server) {
			w.Helper()
			_, err := w.sup.Reload(ctx, servers)
			require.NoError(w, err)
			synctest.Wait()
		}
		one := mcpbridge.Server{Name: "one", InMemory: w.one.mcp}
		two := mcpbridge.Server{Name: "two", InMemory: newServer("two", "d").mcp}
		require.Equal(w, "one__a one__b two__c", w.tools(ctx))

		reload(one, two)
		require.Equal(w, "one__a one__b two__d", w.tools(ctx), "it has changed")
		reload(one)
		require.Equal(w, "one__a one__b !two", w.tools(ctx), "it was removed")
		_, err := w.Call(ctx, "two__d", nil)
		require.ErrorIs(w, err, messages.CodeUnknownServer)
		reload(one, two)
		require.Equal(w, "one__a one__b two__d", w.tools(ctx), "it is back")
		require.Equal(w, 1, w.one.listed())
	})
}

func TestCallTellsThatAServerWasRemoved(t *testing.T) {
	imagine(t, toolset.Config{}, func(ctx context.Context, w *world) {
		w.tools(ctx)
		time.Sleep(time.Hour) // its session is evicted, so the reload closes nothing
		_, err := w.sup.Reload(ctx, []mcpbridge.Server{{Name: "one", InMemory: w.one.mcp}})
		require.NoError(w, err)
		_, err = w.Call(ctx, "two__c", nil)
		require.ErrorIs(w, err, messages.CodeUnknownServer)
		require.Equal(w, "one__a one__b !two", w.tools(ctx))
	})
}

func TestSessionThatIsReplacedDuringAListIsListedAgain(t *testing.T) {
	imagine(t, toolset.Config{}, func(ctx context.Context, w *world) {
		w.one.set(nil, time.Second)
		asked := w.ask(ctx)
		require.NoError(w, w.sup.Client().Restart(ctx, "one", "s"))
		<-asked
		time.Sleep(2 * time.Second)
		require.Equal(w, 2, w.one.listed())
		w.tools(ctx)
		require.Equal(w, 2, w.one.listed())
	})
}

func TestCallersShareOneListAndNoneEndsItForOthers(t *testing.T) {
	imagine(t, toolset.Config{}, func(ctx context.Context, w *world) {
		w.one.set(nil, 3*time.Second)
		impatient, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		failure := make(chan error, 1)
		go func() {
			_, err := w.Tools(impatient)
			failure <- err
		}()
		synctest.Wait()
		var asked []<-chan string
		for range 50 {
			asked = append(asked, w.ask(ctx))
		}
		for _, names := range asked {
			require.Equal(w, "one__a one__b two__c", <-names)
		}
		require.Equal(w, 1, w.one.listed())
		failed := <-failure
		require.ErrorIs(w, failed, messages.CodeDeadline)
		require.ErrorIs(w, failed, context.DeadlineExceeded)

		cancelled, cancel := context.WithCancel(ctx)
		cancel()
		_, err := w.Tools(cancelled)
		require.NoError(w, err, "nothing had to be listed")
		w.changed("one")
		_, err = w.Tools(cancelled)
		require.ErrorIs(w, err, messages.CodeCancelled)
	})
}

func TestSlowServerDelaysTheOthersByTheListTimeoutAtMost(t *testing.T) {
	imagine(t, toolset.Config{ListTimeout: 2 * time.Second, Servers: []toolset.Filter{{Name: "two"}, {Name: "one"}}}, func(ctx context.Context, w *world) {
		w.one.set(nil, 30*time.Second)
		w.two.set(nil, time.Second)
		start := time.Now()
		set, err := w.Tools(ctx)
		require.NoError(w, err)
		require.Equal(w, 2*time.Second, time.Since(start))
		require.Len(w, set.Tools, 1)
		require.Equal(w, "one", set.Missing[0].Key.Server)
		require.ErrorIs(w, set.Missing[0], messages.CodeDeadline)
		require.ErrorContains(w, set.Missing[0], "tools/list on one/s: deadline: the list has not come within 2s, and is still being fetched")

		time.Sleep(40 * time.Second)
		require.Equal(w, "two__c one__a one__b", w.tools(ctx))
		require.Equal(w, 1, w.one.listed())
	})
}

func TestServerThatIsDownKeepsItsToolsAndHidesNoOthers(t *testing.T) {
	imagine(t, toolset.Config{Servers: []toolset.Filter{{Name: "one"}, {Name: "two"}, {Name: "none"}}}, func(ctx context.Context, w *world) {
		w.one.set(errors.New("down"), 0)
		require.Equal(w, "two__c !one !none", w.tools(ctx))
		set, err := w.Tools(ctx)
		require.NoError(w, err)
		require.ErrorIs(w, set.Missing[0], messages.CodeServerError)
		require.ErrorIs(w, set.Missing[1], messages.CodeUnknownServer)
		_, err = w.Call(ctx, "one__a", nil)
		require.EqualError(w, err, "tools/list on one/s: server_error: down")
		_, err = w.Call(ctx, "none__x", nil)
		require.ErrorIs(w, err, messages.CodeUnknownServer)

		w.one.set(nil, 0)
		require.Equal(w, "two__c one__a one__b !none", w.tools(ctx))
		w.one.set(errors.New("down"), 0)
		w.changed("one")
		require.Equal(w, "two__c one__a one__b !one !none", w.tools(ctx))
		_, err = w.Call(ctx, "one__a", nil)
		require.NoError(w, err)
		w.one.set(nil, 0)
		require.Equal(w, "two__c one__a one__b !none", w.tools(ctx))
	})
}

func TestFiltersAndDisabledServers(t *testing.T) {
	imagine(t, toolset.Config{Servers: []toolset.Filter{
		{Name: "one", Deny: []string{"b*"}, Slug: "first"},
		{Name: "two", Disabled: true},
	}}, func(ctx context.Context, w *world) {
		set, err := w.Tools(ctx)
		require.NoError(w, err)
		require.Equal(w, "one__a", w.tools(ctx))
		require.Equal(w, "first", set.Tools[0].Metadata["slug"])
		require.JSONEq(w, `{"type":"object","properties":{}}`, string(set.Tools[0].Parameters()))
		require.Equal(w, 0, w.two.listed())
		_, err = w.Call(ctx, "one__b", nil)
		require.ErrorIs(w, err, messages.CodeInvalid)
	})
}

func TestToolsetWithoutServersHasNoTools(t *testing.T) {
	imagine(t, toolset.Config{Servers: []toolset.Filter{}}, func(ctx context.Context, w *world) {
		require.Empty(w, w.tools(ctx))
	})
}

func TestClosedToolsetRefusesAndEndsWhatItFetches(t *testing.T) {
	imagine(t, toolset.Config{}, func(ctx context.Context, w *world) {
		w.one.set(nil, 5*time.Second)
		start := time.Now()
		time.AfterFunc(time.Second, w.Close)
		_, err := w.Tools(ctx)
		require.ErrorIs(w, err, messages.CodeClosed)
		require.Less(w, time.Since(start), 3*time.Second)
		_, err = w.Tools(ctx)
		require.ErrorIs(w, err, messages.CodeClosed)
		_, err = w.Call(ctx, "two__c", nil)
		require.ErrorIs(w, err, messages.CodeClosed)
	})
}
