package faults_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
)

// scripted runs a test with a script and a supervisor, in a bubble.
func scripted(t *testing.T, cfg supervisor.Config, test func(t *testing.T, script *faults.Script, sup *supervisor.Supervisor)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		script := faults.NewScript(t, "s")
		test(t, script, script.Supervise(actor.NewActorSystem(), cfg))
	})
}

// ask calls a tool, and returns its result.
func ask(t *testing.T, sup *supervisor.Supervisor, scope, tool string, args any) *messages.ToolResult {
	t.Helper()
	result, err := sup.Client().CallTool(t.Context(), "s", scope, &mcp.CallToolParams{Name: tool, Arguments: args})
	require.NoError(t, err)
	return result
}

// askText is ask for the text of the result.
func askText(t *testing.T, sup *supervisor.Supervisor, scope, tool string, args any) string {
	t.Helper()
	return ask(t, sup, scope, tool, args).Result.Content[0].(*mcp.TextContent).Text
}

// askFailure calls a tool, and returns the failure.
func askFailure(t *testing.T, sup *supervisor.Supervisor, tool string) *messages.Failure {
	t.Helper()
	_, err := sup.Client().CallTool(t.Context(), "s", "a", &mcp.CallToolParams{Name: tool})
	var failure *messages.Failure
	require.ErrorAs(t, err, &failure)
	return failure
}

// outcomes are what the caller of a tool gets for each fault. They are in docs/testing.md.
var outcomes = map[faults.Name]struct {
	code       messages.Code // empty if the call succeeds
	mayHaveRun bool
	ran        bool   // the tool ran in the call that met the fault
	generation uint64 // after the fault
	calls      int    // that reached the server, with the call after the fault
}{
	faults.SessionExpired:    {"", false, false, 2, 3},
	faults.ConnectionRefused: {"", false, false, 1, 3},
	faults.LostBeforeRun:     {messages.CodeLost, true, false, 1, 2},
	faults.LostAfterRun:      {messages.CodeLost, true, true, 1, 2},
	faults.ServerDied:        {messages.CodeLost, true, true, 2, 2},
	faults.Outage:            {messages.CodeLost, true, false, 1, 2},
	faults.ServerHangs:       {messages.CodeDeadline, true, false, 1, 2},
	faults.Slow:              {"", false, true, 1, 2},
	faults.ToolError:         {"", false, false, 1, 2},
	faults.RateLimited:       {messages.CodeRateLimited, false, false, 1, 2},
	faults.Unauthorized:      {messages.CodeUnauthorized, false, false, 1, 2},
	faults.ServerError:       {messages.CodeServerError, true, false, 1, 2},
	faults.InvalidParams:     {messages.CodeInvalid, true, false, 1, 2},
	faults.NotMCP:            {messages.CodeProtocol, true, false, 1, 2},
}

func TestEveryNamedFaultHasItsOutcome(t *testing.T) {
	require.Len(t, faults.Names(), len(outcomes))
	for _, name := range faults.Names() {
		want, known := outcomes[name]
		require.True(t, known, name)
		t.Run(string(name), func(t *testing.T) {
			scripted(t, supervisor.Config{CallTimeout: 20 * time.Second}, func(t *testing.T, script *faults.Script, sup *supervisor.Supervisor) {
				script.Tool("buy").Fails(name).Returns("bought")
				began := time.Now()
				if want.code == "" {
					result := ask(t, sup, "a", "buy", nil).Result
					require.Equal(t, name == faults.ToolError, result.IsError)
				} else {
					failure := askFailure(t, sup, "buy")
					require.Equal(t, want.code, failure.Code)
					require.Equal(t, want.mayHaveRun, failure.MayHaveRun)
					require.Equal(t, name == faults.RateLimited, failure.RetryAfter == time.Second)
				}
				require.Equal(t, name == faults.Slow || name == faults.ServerHangs, time.Since(began) >= 10*time.Second)
				if name == faults.RateLimited {
					require.Equal(t, want.code, askFailure(t, sup, "buy").Code, "it is not sent")
					time.Sleep(time.Second)
				}
				after := ask(t, sup, "a", "buy", nil)
				require.Equal(t, want.generation, after.Generation)
				calls := script.Calls()
				require.Len(t, calls, want.calls)
				require.Equal(t, name, calls[0].Fault)
				require.Equal(t, want.ran, calls[0].Ran)
				require.EqualValues(t, 1, calls[0].Generation)
				for _, call := range calls[1:] {
					require.Empty(t, call.Fault)
					require.True(t, call.Ran)
					require.Equal(t, want.generation, call.Generation)
				}
			})
		})
	}
}

func TestEveryNamedFaultIsInTheDocsWithItsOutcome(t *testing.T) {
	page, err := os.ReadFile("../../docs/testing.md")
	require.NoError(t, err)
	constants, err := os.ReadFile("named.go")
	require.NoError(t, err)
	for name, want := range outcomes {
		row := regexp.MustCompile(`(?m)^\| .*"` + string(name) + `".*$`).FindString(string(page))
		require.NotEmpty(t, row, name)
		constant := regexp.MustCompile(`(?m)^\t(\w+) Name = "` + string(name) + `"$`).FindSubmatch(constants)
		require.NotNil(t, constant, name)
		cells := strings.Split(row, "|")
		require.Contains(t, cells[1], "`"+string(constant[1])+"`")
		if want.code != "" {
			require.Contains(t, cells[3], "`"+string(want.code)+"`", name)
		}
		require.Equal(t, want.mayHaveRun, strings.Contains(cells[3], "may have run"), name)
		require.Equal(t, want.ran, strings.HasPrefix(strings.TrimSpace(cells[2]), "yes"), name)
		require.Equal(t, want.generation == 2, strings.Contains(cells[4], "new"), name)
	}
}

// failedTest is a test that ends at its first failure.
type failedTest struct {
	*testing.T
	failed string
}

func (f *failedTest) Fatalf(format string, args ...any) { f.failed = fmt.Sprintf(format, args...) }

func TestUnknownNameOfAFaultIsRefusedWithAllNames(t *testing.T) {
	_, err := faults.Named("nonsense")
	require.ErrorContains(t, err, `no fault has the name "nonsense"`)
	for _, name := range faults.Names() {
		require.ErrorContains(t, err, fmt.Sprintf("%q", name))
	}
	failed := &failedTest{T: t}
	faults.NewScript(failed, "s").Tool("buy").Fails("lost").Returns("bought")
	require.Contains(t, failed.failed, `buy: faults: no fault has the name "lost"`)
	failed = &failedTest{T: t}
	faults.NewScript(failed, "no name").Supervise(actor.NewActorSystem(), supervisor.Config{})
	require.Contains(t, failed.failed, "no name")
}

func TestStepsAreMetInOrderAndTheLastOneStays(t *testing.T) {
	scripted(t, supervisor.Config{}, func(t *testing.T, script *faults.Script, sup *supervisor.Supervisor) {
		steps := script.Tool("buy").Returns("one").Fails("rate limited").Returns("two")
		require.Equal(t, "one", askText(t, sup, "a", "buy", nil))
		require.Equal(t, messages.CodeRateLimited, askFailure(t, sup, "buy").Code)
		time.Sleep(time.Second)
		for range 3 {
			require.Equal(t, "two", askText(t, sup, "a", "buy", nil))
		}
		steps.Meets(faults.Refuse(500, "out of memory")).Returns("three")
		require.Equal(t, messages.CodeServerError, askFailure(t, sup, "buy").Code)
		require.Equal(t, "three", askText(t, sup, "a", "buy", nil))
		calls := script.Calls()
		require.EqualValues(t, "rate limited", calls[1].Fault)
		require.EqualValues(t, "other", calls[5].Fault)
	})
}

func TestStepsAreReplaced(t *testing.T) {
	scripted(t, supervisor.Config{}, func(t *testing.T, script *faults.Script, sup *supervisor.Supervisor) {
		steps := script.Tool("buy").Returns("one").Fails(faults.LostAfterRun).Returns("two")
		require.Equal(t, "one", askText(t, sup, "a", "buy", nil))
		require.Same(t, steps, steps.Replace().Returns("three").Returns("four"))
		require.Equal(t, "three", askText(t, sup, "a", "buy", nil))
		require.Equal(t, "four", askText(t, sup, "a", "buy", nil))
		bob := steps.In("bob").Returns("five")
		require.Equal(t, "five", askText(t, sup, "bob", "buy", nil))
		bob.Replace()
		require.Equal(t, "four", askText(t, sup, "bob", "buy", nil), "the steps of all scopes are met again")
		require.Empty(t, script.Unused())
		steps.Replace()
		require.Empty(t, askText(t, sup, "a", "buy", nil))
	})
}

func TestFaultRunsTheAnswerThatFollows(t *testing.T) {
	scripted(t, supervisor.Config{}, func(t *testing.T, script *faults.Script, sup *supervisor.Supervisor) {
		stock := 5
		script.Tool("buy").Fails(faults.LostAfterRun).Does(func(context.Context, *faults.Run) (any, error) {
			stock--
			return stock, nil
		})
		require.True(t, askFailure(t, sup, "buy").MayHaveRun)
		require.Equal(t, 4, stock)
		require.Equal(t, "3", askText(t, sup, "a", "buy", nil))

		script.Tool("look").Meets(faults.Delay(time.Second))
		require.Empty(t, askText(t, sup, "a", "look", nil))
	})
}

func TestConditionsAndScopesHaveStepsOfTheirOwn(t *testing.T) {
	scripted(t, supervisor.Config{}, func(t *testing.T, script *faults.Script, sup *supervisor.Supervisor) {
		tool := script.Tool("price").Returns("unknown")
		isDune := func(c faults.Call) bool { return c.Arguments["title"] == "Dune" }
		tool.In("bob").When(isDune).Returns("8")
		tool.When(isDune).Fails(faults.RateLimited).Returns("9")
		dune, other := map[string]any{"title": "Dune"}, map[string]any{"title": "Emma"}
		_, err := sup.Client().CallTool(t.Context(), "s", "a", &mcp.CallToolParams{Name: "price", Arguments: dune})
		require.ErrorIs(t, err, messages.CodeRateLimited)
		time.Sleep(time.Second)
		require.Equal(t, "unknown", askText(t, sup, "a", "price", other))
		require.Equal(t, "8", askText(t, sup, "bob", "price", dune))
		require.Equal(t, "unknown", askText(t, sup, "bob", "price", other))
		require.Equal(t, "9", askText(t, sup, "a", "price", dune))
		require.Equal(t, "unknown", askText(t, sup, "a", "price", []int{1}))
		require.Nil(t, script.Calls()[5].Arguments)
	})
}

func TestResultsOfScriptedTools(t *testing.T) {
	scripted(t, supervisor.Config{}, func(t *testing.T, script *faults.Script, sup *supervisor.Supervisor) {
		script.Tool("nothing")
		require.Empty(t, askText(t, sup, "a", "nothing", nil))
		script.Tool("nil").Returns(nil)
		require.Empty(t, askText(t, sup, "a", "nil", nil))
		script.Tool("given").Returns(&mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "given"}}})
		require.Equal(t, "given", askText(t, sup, "a", "given", nil))
		script.Tool("json").Returns(map[string]any{"price": 9})
		result := ask(t, sup, "a", "json", nil).Result
		require.Equal(t, map[string]any{"price": 9.0}, result.StructuredContent)
		require.Equal(t, `{"price":9}`, result.Content[0].(*mcp.TextContent).Text)
		script.Tool("error").ReturnsError("sold out")
		result = ask(t, sup, "a", "error", nil).Result
		require.True(t, result.IsError)
		require.Equal(t, "sold out", result.Content[0].(*mcp.TextContent).Text)
		script.Tool("refused").Does(func(context.Context, *faults.Run) (any, error) {
			return nil, fmt.Errorf("no: %w", &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "which book?"})
		})
		failure := askFailure(t, sup, "refused")
		require.Equal(t, messages.CodeInvalid, failure.Code)
		require.Contains(t, failure.Detail, "which book?")
		script.Tool("no JSON").Returns(make(chan int))
		require.Contains(t, askFailure(t, sup, "no JSON").Detail, "not JSON")
		require.Equal(t, messages.CodeInvalid, askFailure(t, sup, "unknown").Code)
		last := script.Calls()[len(script.Calls())-1]
		require.Equal(t, "unknown", last.Tool)
		require.False(t, last.Ran)
	})
}

func TestCallsAreRecordedWithTheirSessions(t *testing.T) {
	setup := []*mcp.CallToolParams{{Name: "login"}}
	cfg := supervisor.Config{Servers: []supervisor.Server{{Name: "s", Command: "shop", Args: []string{"-v"}, Env: map[string]string{"A": "B"}, Setup: setup}}}
	scripted(t, cfg, func(t *testing.T, script *faults.Script, sup *supervisor.Supervisor) {
		script.Tool("login").In("bob").Returns("hello, bob")
		script.Tool("buy").Returns("bought")
		script.Tool("look")
		ask(t, sup, "", "buy", map[string]any{"n": 1})
		ask(t, sup, "bob", "look", nil)
		require.Equal(t, 2, script.Expire(faults.Expiries()[0]))
		ask(t, sup, "bob", "buy", nil)
		_, err := sup.Client().CloseScope(t.Context(), "bob")
		require.NoError(t, err)
		reply := ask(t, sup, "bob", "buy", nil)
		require.Empty(t, script.Unused())
		calls := script.Calls("buy", "look")
		require.Len(t, calls, 4)
		for i, want := range []string{"s/default", "s/bob", "s/bob", "s/bob"} {
			require.Equal(t, want, calls[i].Key.String())
			require.True(t, calls[i].Ran)
			require.False(t, calls[i].Time.After(time.Now()))
		}
		require.EqualValues(t, 1, calls[0].Generation)
		require.EqualValues(t, 1, calls[1].Generation)
		require.EqualValues(t, 2, calls[2].Generation)
		require.Equal(t, reply.Generation, calls[3].Generation)
		require.Equal(t, map[string]any{"n": 1.0}, calls[0].Arguments)
		require.Len(t, script.Calls("login"), 4)
		require.Equal(t, messages.Key{Server: "s", Scope: "bob"}, script.Calls("login")[1].Key)
		require.Empty(t, script.Calls("other"))
	})
}

func TestUnusedStepsAreReportedWhenAsked(t *testing.T) {
	scripted(t, supervisor.Config{}, func(t *testing.T, script *faults.Script, sup *supervisor.Supervisor) {
		script.Tool("buy").Returns("one").Fails(faults.Slow).Returns("two")
		script.Tool("buy").In("bob").Returns("three")
		ask(t, sup, "a", "buy", nil)
		require.Equal(t, []string{
			"buy, condition 1: step 1 of 1, an answer",
			"buy: step 2 of 3, slow",
			"buy: step 3 of 3, an answer",
		}, script.Unused())
	})
}

func TestScriptsReplaceTheServersOfAConfiguration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := faults.NewScript(t, "one"), faults.NewScript(t, "two")
		one.Tool("name").Returns("one")
		two.Tool("name").Returns("two")
		wrapped := 0
		cfg := one.Config(dial.Wrap(supervisor.Config{
			Servers: []supervisor.Server{
				{Name: "one", URL: "https://one.example", Headers: map[string]string{"A": "B"}},
				{Name: "kept", URL: "https://kept.invalid"},
			},
		}, func(d dial.Dialer) dial.Dialer { wrapped++; return d }))
		require.Equal(t, "https://kept.invalid", cfg.Servers[1].URL)
		require.Equal(t, map[string]string{"A": "B"}, cfg.Servers[0].Headers)
		require.True(t, cfg.Servers[0].Same(&one.Config(cfg).Servers[0]))
		sup := two.Supervise(actor.NewActorSystem(), cfg)
		require.Equal(t, 1, wrapped)
		for _, name := range []string{"one", "two"} {
			result, err := sup.Client().CallTool(t.Context(), name, "a", &mcp.CallToolParams{Name: "name"})
			require.NoError(t, err)
			require.Equal(t, name, result.Result.Content[0].(*mcp.TextContent).Text)
		}
		require.Len(t, one.Calls(), 1)
		require.Len(t, two.Calls(), 1)
	})
}

func TestScriptTakesThePlaceOfAServerWithAConfigurationForEachKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files := faults.NewScript(t, "files")
		files.Tool("open").Returns("opened")
		files.Tool("read").Returns("text")
		server := supervisor.Server{Name: "files", Command: "files-server"}
		server.PerKey = func(_ context.Context, key messages.Key) (supervisor.Server, error) {
			if key.Scope == ".." {
				return supervisor.Server{}, errors.New("the scope is no directory")
			}
			return supervisor.Server{
				Command: "files-server", Dir: "/files/" + key.Scope,
				Setup: []*mcp.CallToolParams{{Name: "open", Arguments: map[string]any{"dir": key.Scope}}},
			}, nil
		}
		sup := files.Supervise(actor.NewActorSystem(), supervisor.Config{Servers: []supervisor.Server{server}})
		_, err := sup.Client().CallTool(t.Context(), "files", "a", &mcp.CallToolParams{Name: "read"})
		require.NoError(t, err)
		require.Equal(t, map[string]any{"dir": "a"}, files.Calls("open")[0].Arguments)
		_, err = sup.Client().CallTool(t.Context(), "files", "..", &mcp.CallToolParams{Name: "read"})
		require.ErrorContains(t, err, "the scope is no directory")
	})
}

func TestProgressOfAScriptedToolReachesTheCaller(t *testing.T) {
	scripted(t, supervisor.Config{}, func(t *testing.T, script *faults.Script, sup *supervisor.Supervisor) {
		script.Tool("pack").Does(func(ctx context.Context, run *faults.Run) (any, error) {
			return "packed", errors.Join(run.Progress(ctx, 1, 2, "half"), run.Progress(ctx, 2, 2, "done"))
		})
		require.Equal(t, "packed", askText(t, sup, "a", "pack", nil))
		var told []string
		ctx := supervisor.WithProgress(t.Context(), func(p *messages.Progress) {
			told = append(told, fmt.Sprintf("%s %v/%v", p.Message, p.Progress, p.Total))
		})
		_, err := sup.Client().CallTool(ctx, "s", "a", &mcp.CallToolParams{Name: "pack"})
		require.NoError(t, err)
		require.Equal(t, []string{"half 1/2", "done 2/2"}, told)
	})
}

func TestToolsThatAreScriptedLaterAreAnnounced(t *testing.T) {
	scripted(t, supervisor.Config{}, func(t *testing.T, script *faults.Script, sup *supervisor.Supervisor) {
		changed := make(chan messages.Key, 1)
		sup.System().EventStream.Subscribe(func(event any) {
			if e, ok := event.(*messages.ToolsChanged); ok {
				changed <- e.Key
			}
		})
		list, err := sup.Client().ListTools(t.Context(), "s", "a")
		require.NoError(t, err)
		require.Empty(t, list.Result.Tools)
		script.Define(&mcp.Tool{Name: "buy", Description: "buys a book"}).Returns("bought")
		require.Equal(t, messages.Key{Server: "s", Scope: "a"}, <-changed)
		list, err = sup.Client().ListTools(t.Context(), "s", "a")
		require.NoError(t, err)
		require.Equal(t, "buys a book", list.Result.Tools[0].Description)
		require.Equal(t, map[string]any{"type": "object"}, list.Result.Tools[0].InputSchema)
		require.Equal(t, "bought", askText(t, sup, "a", "buy", nil))
	})
}

func TestToolThatRunsEndsWithTheServer(t *testing.T) {
	scripted(t, supervisor.Config{}, func(t *testing.T, script *faults.Script, sup *supervisor.Supervisor) {
		running, ended := make(chan bool, 1), make(chan error, 1)
		script.Tool("wait").Does(func(ctx context.Context, _ *faults.Run) (any, error) {
			running <- true
			<-ctx.Done()
			ended <- ctx.Err()
			return nil, ctx.Err()
		}).Returns("later")
		failed := make(chan *messages.Failure)
		go func() { failed <- askFailure(t, sup, "wait") }()
		<-running
		require.NoError(t, script.Restart())
		require.Error(t, <-ended)
		require.Equal(t, messages.CodeLost, (<-failed).Code)
		require.EqualValues(t, 2, ask(t, sup, "a", "wait", nil).Generation)
	})
}

func TestScriptServesResourcesToo(t *testing.T) {
	scripted(t, supervisor.Config{}, func(t *testing.T, script *faults.Script, sup *supervisor.Supervisor) {
		script.MCP().AddResource(&mcp.Resource{URI: "file:///one", Name: "one"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "file:///one", Text: "first"}}}, nil
		})
		script.Inject("resources/read", faults.Times(1, faults.Refuse(429, "slow down")))
		_, err := sup.Client().ReadResource(t.Context(), "s", "a", "file:///one")
		require.ErrorIs(t, err, messages.CodeRateLimited)
		contents, err := sup.Client().ReadResource(t.Context(), "s", "a", "file:///one")
		require.NoError(t, err)
		require.Equal(t, "first", contents.Result.Contents[0].Text)
		updated := make(chan string, 1)
		sup.System().EventStream.Subscribe(func(event any) {
			if e, ok := event.(*messages.ResourceUpdated); ok {
				updated <- e.URI
			}
		})
		_, err = sup.Client().Subscribe(t.Context(), "s", "a", "file:///one")
		require.NoError(t, err)
		require.NoError(t, script.MCP().ResourceUpdated(t.Context(), &mcp.ResourceUpdatedNotificationParams{URI: "file:///one"}))
		require.Equal(t, "file:///one", <-updated)
		_, err = sup.Client().Unsubscribe(t.Context(), "s", "a", "file:///one")
		require.NoError(t, err)
	})
}

// model is an actor that answers requests for completions.
type model struct{}

func (*model) Receive(c actor.Context) {
	if _, asked := c.Message().(*messages.Sample); asked {
		c.Respond(&messages.Sampled{Result: &mcp.CreateMessageWithToolsResult{
			Model: "m", Role: "assistant", Content: []mcp.Content{&mcp.TextContent{Text: "a short text"}},
		}})
	}
}

func TestScriptedToolAsksTheModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		system := actor.NewActorSystem()
		script := faults.NewScript(t, "s")
		script.Tool("summarize").Does(func(ctx context.Context, run *faults.Run) (any, error) {
			answer, err := run.Request.Session.CreateMessage(ctx, &mcp.CreateMessageParams{MaxTokens: 10})
			if err != nil {
				return nil, err
			}
			return answer.Content.(*mcp.TextContent).Text, nil
		})
		sup := script.Supervise(system, supervisor.Config{
			Handler:      system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return &model{} })),
			Capabilities: &mcp.ClientCapabilities{Sampling: &mcp.SamplingCapabilities{}},
		})
		require.Equal(t, "a short text", askText(t, sup, "a", "summarize", nil))
	})
}

// Without a handler the server learns that it cannot ask.
func TestScriptedToolCannotAskWithoutAHandler(t *testing.T) {
	scripted(t, supervisor.Config{}, func(t *testing.T, script *faults.Script, sup *supervisor.Supervisor) {
		script.Tool("buy").Does(func(ctx context.Context, run *faults.Run) (any, error) {
			return run.Request.Session.Elicit(ctx, &mcp.ElicitParams{Message: "Which binding?"})
		})
		result := ask(t, sup, "a", "buy", nil).Result
		require.True(t, result.IsError)
		require.Contains(t, result.Content[0].(*mcp.TextContent).Text, "does not support")
	})
}

func TestScriptTakesManyCallsAtOnce(t *testing.T) {
	scripted(t, supervisor.Config{}, func(t *testing.T, script *faults.Script, sup *supervisor.Supervisor) {
		script.Tool("buy").Fails(faults.SessionExpired).Returns("bought")
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() {
				script.Calls()
				script.Unused()
				ask(t, sup, fmt.Sprint("scope-", i%5), "buy", nil)
			})
		}
		all.Wait()
		expired := 0
		for _, call := range script.Calls() {
			if call.Fault != "" {
				expired++
			}
		}
		require.Equal(t, 1, expired)
	})
}

// A server with a socket knows the names, too. It has the request when it could refuse the
// connection.
func TestNamedFaultsWorkOnAnyServer(t *testing.T) {
	tools := faults.NewTools()
	server := serve(t, tools)
	conn := connect(t, mcpbridge.Server{Name: "s", URL: server.URL()}, faults.Hooks{})
	refused, err := faults.Named(faults.ConnectionRefused)
	require.NoError(t, err)
	died, err := faults.Named(faults.ServerDied)
	require.NoError(t, err)
	_, err = call(conn, "count", nil)
	require.NoError(t, err)
	remove := server.Inject("tools/call", refused)
	_, err = call(conn, "count", map[string]any{"call": "one"})
	require.Equal(t, mcpbridge.Lost, mcpbridge.AsError(err).Class)
	remove()
	remove = server.Inject("tools/call", died)
	_, err = call(conn, "count", map[string]any{"call": "two"})
	require.Equal(t, mcpbridge.Lost, mcpbridge.AsError(err).Class)
	remove()
	_, err = call(conn, "count", map[string]any{"call": "three"})
	require.NotEqual(t, mcpbridge.Alive, mcpbridge.AsError(err).Session)
	require.Equal(t, map[string]int{"two": 1}, tools.Executions())
}
