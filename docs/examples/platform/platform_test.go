package platform

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/tests/faults"
	"github.com/mcpactor/mcpactor/toolset"
)

const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// person talks to an agent, approves nothing, and keeps what it receives.
type person struct {
	agent *actor.PID
	send  func(any)
	inbox chan any
}

func meet(t *testing.T, root *actor.RootContext, p *Platform, user string, id int) *person {
	inbox := make(chan any, 8)
	pid := root.Spawn(actor.PropsFromFunc(func(c actor.Context) { inbox <- c.Message() }))
	require.IsType(t, &actor.Started{}, <-inbox)
	agent, err := p.Open(t.Context(), Conversation{user, fmt.Sprint(id), pid, func(context.Context, toolset.Proposal) (toolset.Decision, error) {
		return toolset.Decision{Verdict: toolset.Deny, Reason: "the user said no"}, nil
	}})
	require.NoError(t, err)
	return &person{agent, func(msg any) { root.Send(agent, msg) }, inbox}
}

func (p *person) use(tool string) string {
	p.send(&toolset.Use{Name: tool, Arguments: `{"query": "spend"}`, Header: messages.Header{Trace: messages.Trace{Parent: trace}}})
	return (<-p.inbox).(*toolset.Told).Output.Text()
}

func TestTwentyConversationsShareThreeServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, account, browser := faults.NewScript(t, "memory"), faults.NewScript(t, "account"), faults.NewScript(t, "browser")
		memory.Tool("remember").Returns("noted")
		browser.Tool("open").Returns("a page")
		browser.Tool("click").Fails(faults.SessionExpired).Returns("clicked")
		left, closed, seen := make(chan error, 1), make(chan messages.Key, 100), make(chan string, 2)
		browser.Tool("login").Does(func(ctx context.Context, run *faults.Run) (any, error) {
			_, err := run.Request.Session.Elicit(ctx, &mcp.ElicitParams{Message: "Which user?"})
			left <- err
			return nil, err
		})
		balance := &mcp.Tool{Name: "balance", Description: "What the user may spend", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}
		balance.OutputSchema = map[string]any{"type": "object", "required": []string{"cents"}}
		account.Define(balance).Does(func(_ context.Context, run *faults.Run) (any, error) {
			h := run.Request.Extra.Header
			seen <- fmt.Sprint(h["X-Conversation"], h["Authorization"], h["Traceparent"])
			return map[string]int{"cents": 950}, nil
		})
		for i := range 1000 {
			account.Tool([]string{"pay", "delete", fmt.Sprint("report_", i)}[min(i, 2)])
		}
		auth := &Account{Token: func(_ context.Context, user string, _ bool) (string, error) { return "token of " + user, nil }}
		system, ctx := actor.NewActorSystem(), messages.WithAttributes(t.Context(), messages.NewAttributes(map[string]string{"conversation": "none"}))
		p, err := Start(ctx, system, memory.Config(account.Config(browser.Config(Config(auth, 2, 16)))))
		require.NoError(t, err)
		defer p.Stop(ctx)
		system.EventStream.Subscribe(func(event any) {
			if e, ok := event.(*messages.SessionClosed); ok {
				closed <- e.Key
			}
		})
		var acme, globex []*person
		for i := range 10 {
			acme = append(acme, meet(t, system.Root, p, []string{"acme/ann", "acme/bob"}[i%2], i))
			globex = append(globex, meet(t, system.Root, p, []string{"globex/cid", "globex/dee"}[i%2], i))
			require.Equal(t, "a page, a page", acme[i].use("browser__open")+", "+globex[i].use("browser__open"))
		}
		require.Equal(t, []int{0, 0, 20}, []int{memory.Sessions(), account.Sessions(), browser.Sessions()})
		for _, who := range append(acme, globex...) { // a task lists the tools of all servers
			who.send(&Task{"Browse"})
			require.NotEmpty(t, (<-who.inbox).(*toolset.Set).Tools)
		}
		require.Equal(t, []int{1, 4, 20}, []int{memory.Sessions(), account.Sessions(), browser.Sessions()})
		ann, dee := acme[0], globex[1]
		// An account is used with the credentials of its user, and is told for which conversation.
		require.JSONEq(t, `{"cents": 950}`, dee.use("account__balance"))
		require.Equal(t, "[globex/dee/1] [Bearer token of globex/dee] ["+trace+"]", <-seen)
		cents, err := p.Balance(ctx, "acme/bob")
		require.Equal(t, 950, cents, err)
		require.Equal(t, "[none] [Bearer token of acme/bob] []", <-seen)
		// A model is offered a part of 1,000 tools, and finds others. Some calls are denied.
		dee.send(&Task{"Read a report"})
		require.Len(t, (<-dee.inbox).(*toolset.Set).Tools, 9)
		require.Contains(t, dee.use(toolset.FindTool), "account__balance")
		require.Regexp(t, "(?s)the user said no.*only people delete accounts", dee.use("account__pay")+dee.use("account__delete"))
		require.Empty(t, account.Calls("pay", "delete"))
		// A restart of an agent ends nothing. An agent that is killed takes its call, the open question and its session along.
		ann.send(&toolset.Use{Name: "browser__login"})
		question := (<-ann.inbox).(*messages.Elicit).Question
		ann.send((*toolset.Use)(nil)) // it panics
		require.Equal(t, "noted", ann.use("memory__remember"))
		synctest.Wait()
		require.Zero(t, len(left)+len(closed)+len(ann.inbox))
		system.Root.Stop(ann.agent)
		last := map[bool]any{}
		for range 2 { // in any order
			msg := <-ann.inbox
			_, told := msg.(*toolset.Told)
			last[told] = msg
		}
		require.Equal(t, question, last[false].(*messages.Withdrawn).Question)
		require.ErrorIs(t, last[true].(*toolset.Told).Failure, messages.CodeCancelled)
		require.Error(t, <-left)
		require.Equal(t, messages.Key{Server: "browser", Scope: "acme/ann/0"}, <-closed)
		// A tenant that floods the platform loses its own sessions.
		for i := range 20 {
			acme = append(acme, meet(t, system.Root, p, "acme/ann", 10+i))
			acme[10+i].send(&toolset.Use{Name: "browser__open"})
		}
		for i := range 20 {
			require.Equal(t, "a page", (<-acme[10+i].inbox).(*toolset.Told).Output.Text())
			require.Equal(t, "a page", globex[i%10].use("browser__open"))
		}
		require.Contains(t, acme[1].use("browser__open"), "is gone")
		// The model is told that what the session had is gone.
		require.Regexp(t, `(?s)^clicked.*such as a login or an open page, is gone`, dee.use("browser__click"))
	})
}
