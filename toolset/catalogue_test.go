package toolset_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/toolset"
)

// crowd is many conversations on one supervisor.
type crowd struct {
	*testing.T
	sup     *supervisor.Supervisor
	servers []*server
	sets    map[string]*toolset.Toolset // by scope
}

// gather runs a scenario with servers that are configured by cfg, or as they are.
func gather(t *testing.T, servers int, cfg supervisor.Config, change func(*mcpbridge.Server), scenario func(ctx context.Context, c *crowd)) {
	synctest.Test(t, func(t *testing.T) {
		c := &crowd{T: t, sets: map[string]*toolset.Toolset{}}
		for i := range servers {
			s := newServer(fmt.Sprint("s", i), "a")
			c.servers = append(c.servers, s)
			one := mcpbridge.Server{Name: fmt.Sprint("s", i), InMemory: s.mcp}
			if change != nil {
				change(&one)
			}
			cfg.Servers = append(cfg.Servers, one)
		}
		var err error
		c.sup, err = supervisor.Start(newSystem(), cfg)
		require.NoError(t, err)
		defer time.Sleep(3 * time.Second) // until Proto.Actor's throttle of dead letters ends
		defer func() { require.NoError(t, c.sup.Stop(context.Background())) }()
		defer func() {
			for _, set := range c.sets {
				set.Close()
			}
		}()
		scenario(t.Context(), c)
	})
}

// of returns the toolset of a scope.
func (c *crowd) of(scope string) *toolset.Toolset {
	if c.sets[scope] == nil {
		set, err := toolset.New(c.sup.System(), c.sup, toolset.Config{Scope: scope, Servers: []toolset.Filter{{Name: "*"}}})
		require.NoError(c, err)
		c.sets[scope] = set
	}
	return c.sets[scope]
}

// tools returns the names of a scope's tools, with a question mark if they are stale, and of the servers that are missing.
func (c *crowd) tools(scope string) string {
	set, err := c.of(scope).Tools(c.Context())
	require.NoError(c, err)
	var names []string
	for _, tool := range set.Tools {
		name := tool.Name
		if tool.Stale {
			name += "?"
		}
		names = append(names, name)
	}
	for _, missing := range set.Missing {
		names = append(names, "!"+missing.Key.Server+":"+string(missing.Code))
	}
	return strings.Join(names, " ")
}

// counts returns how many sessions there are, and how often tools were listed.
func (c *crowd) counts() (sessions, lists int) {
	synctest.Wait()
	snapshot, err := c.sup.Client().Inspect(c.Context())
	require.NoError(c, err)
	for _, s := range c.servers {
		lists += s.listed()
	}
	return snapshot.Total, lists
}

// require requires counts.
func (c *crowd) require(sessions, lists int) {
	c.Helper()
	nowSessions, nowLists := c.counts()
	require.Equal(c, [2]int{sessions, lists}, [2]int{nowSessions, nowLists}, "sessions and lists")
}

func TestHundredConversationsListEachServerOnce(t *testing.T) {
	gather(t, 6, supervisor.Config{MaxSessions: 600}, nil, func(ctx context.Context, c *crowd) {
		for i := range 100 {
			c.of(fmt.Sprint(i))
		}
		var all sync.WaitGroup
		for scope := range c.sets {
			all.Go(func() {
				set, err := c.sets[scope].Tools(ctx)
				require.NoError(c, err)
				require.Len(c, set.Tools, 6)
				require.Empty(c, set.Missing)
			})
		}
		all.Wait()
		c.require(6, 6)
		snapshot, err := c.sup.Client().Inspect(ctx)
		require.NoError(c, err)
		for _, srv := range snapshot.Servers {
			lists := srv.Lists["tools/list"]
			require.WithinDuration(c, snapshot.Time, lists.Oldest, time.Minute)
			require.Positive(c, lists.Bytes)
			lists.Oldest, lists.Bytes = time.Time{}, 0
			require.Equal(c, messages.ListsSnapshot{Lists: 1, Scopes: 100, Items: 1}, lists)
		}

		lister := snapshot.Sessions[0].Key.Scope
		caller := "0"
		if lister == caller {
			caller = "1"
		}
		_, err = c.of(caller).Call(ctx, "s0__a", nil)
		require.NoError(c, err)
		c.require(7, 7) // what the session of a call has is listed beside the call
		c.tools(caller)
		c.require(7, 7)
	})
}

func TestChangeThatTwoSessionsListReachesAllToolsets(t *testing.T) {
	gather(t, 1, supervisor.Config{}, nil, func(ctx context.Context, c *crowd) {
		for _, scope := range []string{"a", "b", "c"} {
			require.Equal(c, "s0__a", c.tools(scope))
		}
		_, err := c.of("b").Call(ctx, "s0__a", nil)
		require.NoError(c, err)
		c.servers[0].add("z")
		time.Sleep(time.Second)
		for _, scope := range []string{"c", "a", "b"} {
			require.Contains(c, c.tools(scope)+c.tools(scope), "s0__z", scope)
		}
		require.Equal(c, "s0__a s0__z", c.tools("c"), "it has no session")
		c.require(2, 4)
	})
}

// The server announces a change while a list of before is on its way.
func TestChangeWhileAListIsOnItsWayIsNotMissed(t *testing.T) {
	var late atomic.Bool
	delays := func(next actors.Runner) actors.Runner {
		return func(ctx context.Context, op messages.Operation) (messages.Result, error) {
			result, err := next(ctx, op)
			if late.Load() {
				time.Sleep(3 * time.Second)
			}
			return result, err
		}
	}
	gather(t, 1, supervisor.Config{Interceptors: []actors.Interceptor{delays}}, nil, func(_ context.Context, c *crowd) {
		require.Equal(c, "s0__a", c.tools("a"))
		c.servers[0].changed()
		late.Store(true)
		names := make(chan string)
		go func() { names <- c.tools("a") }()
		synctest.Wait()
		c.servers[0].add("z")
		require.Equal(c, "s0__a s0__z", <-names)
		require.Equal(c, "s0__a s0__z", c.tools("a"))
	})
}

// The session that could list again fails to, and nothing announces that it would not fail any more.
func TestStaleListIsAskedForAgainAfterAFailure(t *testing.T) {
	gather(t, 1, supervisor.Config{}, nil, func(_ context.Context, c *crowd) {
		require.Equal(c, "s0__a", c.tools("a"))
		require.Equal(c, "s0__a", c.tools("b"))
		c.servers[0].set(errors.New("busy"), 0)
		c.servers[0].changed()
		require.Equal(c, "s0__a?", c.tools("b"))
		c.servers[0].set(nil, 0)
		time.Sleep(5 * time.Second)
		require.Equal(c, "s0__a", c.tools("b"))
	})
}

func TestCloseOfTheScopeThatListsFailsNoOther(t *testing.T) {
	gather(t, 1, supervisor.Config{}, nil, func(ctx context.Context, c *crowd) {
		c.servers[0].set(nil, time.Minute)
		answers := make(chan string, 1)
		c.of("a")
		c.of("b")
		go c.sets["a"].Tools(ctx) // whose scope is closed
		synctest.Wait()
		go func() { answers <- c.tools("b") }()
		synctest.Wait()
		c.servers[0].set(nil, 0)
		_, err := c.sup.Client().Do(ctx, &messages.CloseScope{Scope: "a", Now: true})
		require.NoError(c, err)
		require.Equal(c, "s0__a", <-answers)
		c.require(1, 2)
	})
}

func TestFailureOfTheServerIsToldToAllWhoWait(t *testing.T) {
	gather(t, 1, supervisor.Config{}, nil, func(_ context.Context, c *crowd) {
		c.servers[0].set(context.DeadlineExceeded, time.Second)
		answers := make(chan string, 3)
		for _, scope := range []string{"a", "b", "c"} {
			c.of(scope)
			go func() { answers <- c.tools(scope) }()
			synctest.Wait()
		}
		for range 3 {
			require.Equal(c, "!s0:server_error", <-answers)
		}
		c.require(1, 1)
		c.servers[0].set(nil, 0)
		require.Equal(c, "s0__a", c.tools("a"))
	})
}

func TestStopAnswersThoseWhoWaitForAList(t *testing.T) {
	gather(t, 1, supervisor.Config{DrainTimeout: time.Second}, nil, func(ctx context.Context, c *crowd) {
		c.servers[0].set(nil, time.Hour)
		answers := make(chan string, 3)
		for _, scope := range []string{"a", "b", "c"} {
			c.of(scope)
			go func() { answers <- c.tools(scope) }()
			synctest.Wait()
		}
		began := time.Now()
		require.NoError(c, c.sup.Stop(ctx))
		for range 3 {
			require.Regexp(c, "^!s0:(closed|draining|cancelled|lost)$", <-answers)
		}
		require.Less(c, time.Since(began), 5*time.Second)
	})
}

// Interceptors see the question of each scope, and may answer each one otherwise.
func TestInterceptorsApplyToEachScope(t *testing.T) {
	hides := func(next actors.Runner) actors.Runner {
		return func(ctx context.Context, op messages.Operation) (messages.Result, error) {
			result, err := next(ctx, op)
			if list, ok := result.(*messages.ToolList); ok && op.Head().Key.Scope == "guest" {
				list.Result.Tools[0].Description = "changed"
				list.Result.Tools = list.Result.Tools[:1]
			}
			return result, err
		}
	}
	gather(t, 1, supervisor.Config{Interceptors: []actors.Interceptor{hides}}, nil, func(_ context.Context, c *crowd) {
		c.servers[0].add("z")
		require.Equal(c, "s0__a", c.tools("guest"))
		require.Equal(c, "s0__a s0__z", c.tools("member"))
		set, err := c.of("member").Tools(c.Context())
		require.NoError(c, err)
		require.Empty(c, set.Tools[0].Description, "the list of one scope is not that of another")
		c.require(1, 1)
	})
}

func TestScopesThatMaySeeSomethingElseShareNoList(t *testing.T) {
	roots := supervisor.Config{Capabilities: &mcp.ClientCapabilities{RootsV2: &mcp.RootCapabilities{}}}
	perKey := func(directory func(messages.Key) string) func(*mcpbridge.Server) {
		return func(srv *mcpbridge.Server) {
			before := *srv
			srv.PerKey = func(_ context.Context, key messages.Key) (mcpbridge.Server, error) {
				one := before
				one.Setup = []*mcp.CallToolParams{{Name: "a", Arguments: map[string]any{"in": directory(key)}}}
				return one, nil
			}
		}
	}
	class := func(class func(messages.Key) string) func(*mcpbridge.Server) {
		return func(srv *mcpbridge.Server) { srv.ListClass = class }
	}
	for name, test := range map[string]struct {
		cfg    supervisor.Config
		change func(*mcpbridge.Server)
		lists  int
	}{
		"a PerKey with another result":  {change: perKey(func(key messages.Key) string { return key.Scope }), lists: 3},
		"a PerKey with the same result": {change: perKey(func(messages.Key) string { return "x" }), lists: 1},
		"roots":                         {cfg: roots, lists: 3},
		"roots of one class":            {cfg: roots, change: class(func(messages.Key) string { return "x" }), lists: 1},
		"a class for each":              {change: class(func(key messages.Key) string { return key.Scope }), lists: 3},
		"no class":                      {change: class(func(messages.Key) string { return "" }), lists: 3},
		"a class that panics":           {change: class(func(messages.Key) string { panic("a bug") }), lists: 3},
		"two classes":                   {change: class(func(key messages.Key) string { return key.Scope[:1] }), lists: 2},
	} {
		gather(t, 1, test.cfg, test.change, func(_ context.Context, c *crowd) {
			for range 2 {
				for _, scope := range []string{"a", "a2", "b"} {
					require.Equal(c, "s0__a", c.tools(scope), name)
				}
			}
			sessions, lists := c.counts()
			require.Equal(c, [2]int{test.lists, test.lists}, [2]int{sessions, lists}, name)
		})
	}
}

// A scope with a handler may have answered the questions of its server otherwise than another one.
func TestScopeWithAHandlerHasAListOfItsOwn(t *testing.T) {
	can := &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{}}
	gather(t, 1, supervisor.Config{Capabilities: can}, nil, func(ctx context.Context, c *crowd) {
		c.tools("a")
		_, err := c.sup.Client().Do(ctx, &messages.Bind{Scope: "b", Handler: c.sup.PID()})
		require.NoError(c, err)
		c.tools("b")
		c.require(2, 2)
		c.tools("c")
		c.require(2, 2)
	})
}

// cacheable is a server whose lists say for how long and for whom they may be kept.
func cacheable(ttl time.Duration, scope string) func(*mcpbridge.Server) {
	return func(srv *mcpbridge.Server) {
		s := mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, &mcp.ServerOptions{
			SetCacheable: func(_ context.Context, _ mcp.Request, hint *mcp.Cacheable) {
				hint.TTLMs, hint.CacheScope = int(ttl.Milliseconds()), scope
			},
		})
		s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
				result, err := next(ctx, method, req)
				if list, ok := result.(*mcp.ListToolsResult); ok { // without an announcement
					list.Tools = append(slices.Clone(list.Tools), &mcp.Tool{
						Name: fmt.Sprint("at", time.Now().Minute()), InputSchema: map[string]any{"type": "object"},
					})
				}
				return result, err
			}
		})
		srv.InMemory = s
	}
}

func TestTimeThatTheServerGivesAListIsHonoured(t *testing.T) {
	gather(t, 1, supervisor.Config{}, cacheable(2*time.Minute, "public"), func(_ context.Context, c *crowd) {
		first := c.tools("a")
		time.Sleep(time.Minute)
		require.Equal(c, first, c.tools("b"))
		require.Equal(c, first, c.tools("a"))
		time.Sleep(time.Minute)
		second := c.tools("a")
		require.NotEqual(c, first, second)
		require.NotContains(c, second, "?")
		c.require(1, 0)
	})
}

func TestPrivateListIsOneOfItsScope(t *testing.T) {
	gather(t, 1, supervisor.Config{}, cacheable(time.Hour, "private"), func(_ context.Context, c *crowd) {
		first := c.tools("a")
		time.Sleep(time.Minute)
		require.NotEqual(c, first, c.tools("b"))
		require.Equal(c, first, c.tools("a"))
		c.require(2, 0)
	})
}

// All that a server offers is listed once, and outlives the process.
func TestPromptsResourcesAndInstructionsAreSharedAsWell(t *testing.T) {
	offer := func(srv *mcpbridge.Server) {
		s := mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, &mcp.ServerOptions{Instructions: "Be kind."})
		s.AddPrompt(&mcp.Prompt{Name: "p"}, nil)
		s.AddResource(&mcp.Resource{URI: "file:///r", Name: "r"}, nil)
		s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "file:///{t}", Name: "t"}, nil)
		srv.InMemory = s
	}
	store := &resume.Memory{}
	for run := range 2 {
		gather(t, 1, supervisor.Config{Store: store}, offer, func(ctx context.Context, c *crowd) {
			for _, scope := range []string{"a", "b", "c"} {
				to := messages.To("s0", scope)
				for _, op := range []messages.Operation{
					&messages.ListPrompts{Header: to, Shared: true}, &messages.ListResources{Header: to, Shared: true}, &messages.ListResourceTemplates{Header: to, Shared: true},
				} {
					reply, err := c.sup.Client().Do(ctx, op)
					require.NoError(c, err)
					var listing *messages.Listing
					switch r := reply.(type) {
					case *messages.PromptList:
						listing = r.Listing
						require.Equal(c, "p", r.Result.Prompts[0].Name)
					case *messages.ResourceList:
						listing = r.Listing
						require.Equal(c, "r", r.Result.Resources[0].Name)
					case *messages.ResourceTemplateList:
						listing = r.Listing
						require.Equal(c, "t", r.Result.ResourceTemplates[0].Name)
					}
					require.Equal(c, "Be kind.", listing.Server.Instructions)
					require.Equal(c, scope != "a" || run > 0, listing.Shared)
				}
			}
			c.require(1-run, 0)
		})
	}
}

// The store has what scopes share, and no list of one scope.
func TestToolsAreKnownBeforeTheirServerIs(t *testing.T) {
	store := &resume.Memory{}
	var digest string
	gather(t, 1, supervisor.Config{Store: store}, nil, func(_ context.Context, c *crowd) {
		c.servers[0].define(&mcp.Tool{Name: "a", Title: "A", Meta: mcp.Meta{"x": "y"}, Icons: []mcp.Icon{{Source: "https://icons.example.com/a"}}})
		require.Equal(c, "s0__a", c.tools("a"))
		set, err := c.of("a").Tools(c.Context())
		require.NoError(c, err)
		digest = set.Tools[0].Digest
		synctest.Wait()
	})
	gather(t, 1, supervisor.Config{Store: store}, nil, func(ctx context.Context, c *crowd) {
		time.Sleep(time.Hour) // the time of the store is that of the bubble before
		changes := make(chan string, 10)
		events := c.sup.System().EventStream.Subscribe(func(event any) {
			if e, ok := event.(*toolset.DefinitionChanged); ok {
				changes <- e.Tool + " " + string(e.Change)
			}
		})
		defer c.sup.System().EventStream.Unsubscribe(events)
		require.Equal(c, "s0__a?", c.tools("a"))
		c.require(0, 0)
		set, err := c.of("a").Tools(ctx)
		require.NoError(c, err)
		require.Equal(c, digest, set.Tools[0].Digest)
		list, err := c.sup.Client().Do(ctx, &messages.ListTools{Header: messages.To("s0", "b"), Shared: true})
		require.NoError(c, err)
		tool := list.(*messages.ToolList).Result.Tools[0]
		require.Equal(c, "y", tool.Meta["x"])
		require.Equal(c, "https://icons.example.com/a", tool.Icons[0].Source)

		c.servers[0].add("z")
		_, err = c.of("a").Call(ctx, "s0__a", nil)
		require.NoError(c, err)
		require.Equal(c, "a redefined", <-changes)
		require.Equal(c, "z added", <-changes)
		require.Equal(c, "s0__a s0__z", c.tools("b"), "the list of the next opening replaces a stale one")
		c.require(1, 1)
		_, err = c.sup.Client().CloseAll(ctx)
		require.NoError(c, err)
	})
	own := func(srv *mcpbridge.Server) { srv.ListClass = func(messages.Key) string { return "" } }
	store = &resume.Memory{}
	gather(t, 1, supervisor.Config{Store: store}, own, func(_ context.Context, c *crowd) {
		c.tools("a")
		synctest.Wait()
		keys, err := store.Keys(c.Context())
		require.NoError(c, err)
		require.Len(c, keys, 1, "the key of the session only")
	})
}
