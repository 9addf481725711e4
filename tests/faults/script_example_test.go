package faults_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
	"github.com/mcpactor/mcpactor/toolset"
)

// buyer is the agent of the tests below. It buys books for one customer.
type buyer struct {
	tools    *supervisor.Client
	customer string
	session  uint64 // the generation of the session in which it has logged in, or 0
}

// use calls a tool, and returns what the agent says about it.
func (b *buyer) use(ctx context.Context, tool, title string) string {
	params := &mcp.CallToolParams{Name: tool, Arguments: map[string]any{"title": title}}
	reply, err := b.tools.CallTool(ctx, "shop", b.customer, params)
	var failure *messages.Failure
	switch {
	case errors.As(err, &failure) && failure.MayHaveRun:
		return "it may have run: ask the customer"
	case errors.As(err, &failure):
		return "it did not run: " + string(failure.Code)
	case b.session != 0 && reply.Generation > b.session:
		b.session = 0
		return "the login is gone"
	}
	if tool == "login" {
		b.session = reply.Generation
	}
	text := reply.Result.Content[0].(*mcp.TextContent).Text
	if reply.Result.IsError {
		return "the shop refuses: " + text
	}
	return text
}

func TestBuyerBuysABook(t *testing.T) {
	shop := faults.NewScript(t, "shop")
	shop.Tool("search").Returns("Dune, 9 euros")
	shop.Tool("buy").Returns("order 17")
	sup := shop.Supervise(actor.NewActorSystem(), supervisor.Config{})

	agent := &buyer{tools: sup.Client(), customer: "alice"}
	require.Equal(t, "Dune, 9 euros", agent.use(t.Context(), "search", "Dune"))
	require.Equal(t, "order 17", agent.use(t.Context(), "buy", "Dune"))
	require.Equal(t, map[string]any{"title": "Dune"}, shop.Calls("buy")[0].Arguments)
}

func TestBuyerDoesNotBuyTwice(t *testing.T) {
	shop := faults.NewScript(t, "shop")
	shop.Tool("buy").Fails(faults.LostAfterRun).Returns("order 17")
	sup := shop.Supervise(actor.NewActorSystem(), supervisor.Config{})

	agent := &buyer{tools: sup.Client(), customer: "alice"}
	require.Equal(t, "it may have run: ask the customer", agent.use(t.Context(), "buy", "Dune"))
	require.Len(t, shop.Calls("buy"), 1)
}

// A tool that is read-only is called again, so that the agent does not notice the fault.
func TestBuyerSearchesAgain(t *testing.T) {
	shop := faults.NewScript(t, "shop")
	readOnly := &mcp.ToolAnnotations{ReadOnlyHint: true}
	shop.Define(&mcp.Tool{Name: "search", Annotations: readOnly}).Fails(faults.LostAfterRun).Returns("Dune, 9 euros")
	sup := shop.Supervise(actor.NewActorSystem(), supervisor.Config{})

	agent := &buyer{tools: sup.Client(), customer: "alice"}
	require.Equal(t, "Dune, 9 euros", agent.use(t.Context(), "search", "Dune"))
	require.Len(t, shop.Calls("search"), 2)
}

func TestBuyerNoticesThatItsLoginIsGone(t *testing.T) {
	shop := faults.NewScript(t, "shop")
	shop.Tool("login").Returns("welcome")
	shop.Tool("search").Returns("Dune, 9 euros").Fails(faults.SessionExpired).Returns("Dune, 9 euros")
	sup := shop.Supervise(actor.NewActorSystem(), supervisor.Config{})

	agent := &buyer{tools: sup.Client(), customer: "alice"}
	require.Equal(t, "welcome", agent.use(t.Context(), "login", ""))
	require.Equal(t, "Dune, 9 euros", agent.use(t.Context(), "search", "Dune"))
	require.Equal(t, "the login is gone", agent.use(t.Context(), "search", "Dune"))
	require.Equal(t, "welcome", agent.use(t.Context(), "login", ""))
	require.EqualValues(t, 2, shop.Calls("login")[1].Generation)
}

func TestBuyerPassesOnWhatTheShopRefuses(t *testing.T) {
	shop := faults.NewScript(t, "shop")
	shop.Tool("buy").ReturnsError("sold out")
	shop.Tool("buy").In("bob").Returns("order 18")
	sup := shop.Supervise(actor.NewActorSystem(), supervisor.Config{})

	alice := &buyer{tools: sup.Client(), customer: "alice"}
	require.Equal(t, "the shop refuses: sold out", alice.use(t.Context(), "buy", "Dune"))
	bob := &buyer{tools: sup.Client(), customer: "bob"}
	require.Equal(t, "order 18", bob.use(t.Context(), "buy", "Dune"))
}

// order is an agent that is an actor. It buys a book, and says what became of that.
type order struct {
	sessions *actor.PID
	done     chan string
}

func (o *order) Receive(c actor.Context) {
	switch msg := c.Message().(type) {
	case *actor.Started:
		params := &mcp.CallToolParams{Name: "buy", Arguments: map[string]any{"title": "Dune"}}
		c.Request(o.sessions, &messages.CallTool{Header: messages.To("shop", "alice"), Params: params})
	case *messages.ToolResult:
		o.done <- "bought"
	case *messages.Failure:
		o.done <- string(msg.Code)
	}
}

func TestOrderIsLostWithTheServer(t *testing.T) {
	shop := faults.NewScript(t, "shop")
	shop.Tool("buy").Fails(faults.ServerDied)
	system := actor.NewActorSystem()
	sup := shop.Supervise(system, supervisor.Config{})

	done := make(chan string, 1)
	system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return &order{sup.PID(), done} }))
	require.Equal(t, "lost", <-done)
	require.True(t, shop.Calls()[0].Ran)
}

// customer is an actor that answers the questions of servers.
type customer struct{ answer map[string]any }

func (p *customer) Receive(c actor.Context) {
	if _, asked := c.Message().(*messages.Elicit); asked {
		c.Respond(&messages.Elicited{Result: &mcp.ElicitResult{Action: "accept", Content: p.answer}})
	}
}

func TestCustomerIsAskedForTheBinding(t *testing.T) {
	shop := faults.NewScript(t, "shop")
	shop.Tool("buy").Does(func(ctx context.Context, run *faults.Run) (any, error) {
		answer, err := run.Request.Session.Elicit(ctx, &mcp.ElicitParams{Message: "Which binding?"})
		if err != nil {
			return nil, err
		}
		return "order 17, " + answer.Content["binding"].(string), nil
	})
	system := actor.NewActorSystem()
	asked := system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor {
		return &customer{map[string]any{"binding": "paperback"}}
	}))
	sup := shop.Supervise(system, supervisor.Config{Handler: asked})

	agent := &buyer{tools: sup.Client(), customer: "alice"}
	require.Equal(t, "order 17, paperback", agent.use(t.Context(), "buy", "Dune"))
}

func TestModelIsOfferedTheToolsOfTheShop(t *testing.T) {
	shop := faults.NewScript(t, "shop")
	shop.Define(&mcp.Tool{Name: "search", Description: "finds books"}).Returns(map[string]any{"price": 9})
	system := actor.NewActorSystem()
	sup := shop.Supervise(system, supervisor.Config{})
	tools, err := toolset.New(system, sup, toolset.Config{Servers: []toolset.Filter{{Name: "shop"}}})
	require.NoError(t, err)
	defer tools.Close()

	set, err := tools.Tools(t.Context())
	require.NoError(t, err)
	require.Len(t, set.Tools, 1)
	result, err := tools.Call(t.Context(), set.Tools[0].Name, `{"title": "Dune"}`)
	require.NoError(t, err)
	require.JSONEq(t, `{"price": 9}`, toolset.Convert(result.Result).Text())
}

// In a bubble of testing/synctest, a minute takes no time.
func TestBuyerWaitsForTheShop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shop := faults.NewScript(t, "shop")
		shop.Tool("search").Fails(faults.Slow).Returns("Dune, 9 euros")
		sup := shop.Supervise(actor.NewActorSystem(), supervisor.Config{CallTimeout: 20 * time.Second})
		agent := &buyer{tools: sup.Client(), customer: "alice"}
		require.Equal(t, "Dune, 9 euros", agent.use(t.Context(), "search", "Dune"))

		shop.Stop()
		time.AfterFunc(15*time.Second, func() { shop.Start() })
		require.Equal(t, "Dune, 9 euros", agent.use(t.Context(), "search", "Dune"))

		shop.Stop()
		require.Equal(t, "it did not run: unavailable", agent.use(t.Context(), "search", "Dune"))
	})
}

// The agent is tried with each fault that there is.
func TestBuyerNeverBuysTwice(t *testing.T) {
	for _, name := range faults.Names() {
		t.Run(string(name), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shop := faults.NewScript(t, "shop")
				shop.Tool("buy").Fails(name).Returns("order 17")
				sup := shop.Supervise(actor.NewActorSystem(), supervisor.Config{})
				agent := &buyer{tools: sup.Client(), customer: "alice"}
				agent.use(t.Context(), "buy", "Dune")
				ran := 0
				for _, call := range shop.Calls("buy") {
					if call.Ran {
						ran++
					}
				}
				require.LessOrEqual(t, ran, 1)
			})
		})
	}
}
