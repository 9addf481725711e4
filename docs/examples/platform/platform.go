// Package platform is an example: an agent platform, in which the conversations of several
// tenants share three MCP servers. A conversation is an actor. It has a browser of its own, uses
// the account of its user, and shares a memory with all conversations. Copy what you need.
package platform

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/toolset"
)

// Config returns the configuration of the supervisor. The caps are large enough for the quotas of
// as many tenants, so that none of them can take the sessions of another one.
func Config(auth mcpbridge.Authenticator, tenants, quota int) supervisor.Config {
	return supervisor.Config{
		Servers: []supervisor.Server{
			{Name: "memory", URL: "https://memory.example.com/mcp", Limits: supervisor.Limits{MaxInFlight: 256}},
			{Name: "account", URL: "https://account.example.com/mcp", Auth: auth},
			{Name: "browser", URL: "https://browser.example.com/mcp", Limits: supervisor.Limits{
				MaxSessions: tenants * quota, // each one takes memory
				MaxDials:    4,               // and time to start
				CallTimeout: 5 * time.Minute, // pages may be slow
			}},
		},
		MaxSessions:          tenants*quota + 1, // the memory
		MaxSessionsPerTenant: quota,
		Tenant:               supervisor.ScopePrefix("/"), // of "acme/ann" and of "acme/ann/1" it is "acme"
		Capabilities:         &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}}},
	}
}

// Platform runs conversations. Its methods may be called from any goroutine.
type Platform struct {
	*supervisor.Supervisor
	system *actor.ActorSystem
}

// Start starts a platform. The session of the memory is pinned: it is never evicted.
func Start(ctx context.Context, system *actor.ActorSystem, cfg supervisor.Config) (*Platform, error) {
	sup, err := supervisor.Start(system, cfg)
	if err != nil {
		return nil, err
	}
	if _, err := sup.Client().Pin(ctx, "memory", "shared"); err != nil {
		return nil, errors.Join(err, sup.Stop(ctx))
	}
	return &Platform{sup, system}, nil
}

// Balance returns what a user may spend, for the program and not for a model.
func (p *Platform) Balance(ctx context.Context, user string) (cents int, err error) {
	balance, _, err := supervisor.CallToolAs[struct{ Cents int }](ctx, p.Client(), "account", user, &mcp.CallToolParams{Name: "balance"})
	return balance.Cents, err
}

// Conversation is a conversation of a user with a model.
type Conversation struct {
	User string // "tenant/name", the scope of the account
	ID   string // unique among the conversations of the user
	// Person receives a [*toolset.Set] for each [Task], a [*toolset.Told] for each [*toolset.Use], and the
	// questions of servers.
	Person  *actor.PID
	Approve func(context.Context, toolset.Proposal) (toolset.Decision, error) // asks the person about a call
}

// Open starts the actor of a conversation, which receives [*Task] and [*toolset.Use]. When the actor
// terminates, its calls and its questions end, and so do the sessions in its scope.
func (p *Platform) Open(ctx context.Context, v Conversation) (*actor.PID, error) {
	scope := v.User + "/" + v.ID
	tools, err := toolset.New(p.system, p.Supervisor, toolset.Config{
		Scope: scope, Policy: &toolset.Policy{Decide: decide, Ask: v.Approve},
		Servers: []toolset.Filter{{Name: "memory", Scope: "shared"}, {Name: "account", Scope: v.User}, {Name: "*"}},
	})
	if err != nil {
		return nil, err
	}
	// The toolset survives restarts of the actor, because it knows what the model was told.
	self := p.system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return &agent{v.Person, tools, scope} }))
	if _, err := p.Client().Do(ctx, &messages.Bind{Scope: scope, Owner: self, Handler: v.Person}); err != nil {
		p.system.Root.Stop(self)
		return nil, err
	}
	return self, nil
}

// decide is the policy of the platform. The annotations of its account server are trusted.
func decide(p toolset.Proposal) toolset.Decision {
	switch {
	case p.Tool.Server == "account" && p.Tool.Original == "delete":
		return toolset.Decision{Verdict: toolset.Deny, Reason: "only people delete accounts"}
	case p.Tool.Server == "account" && (p.Tool.Annotations == nil || !p.Tool.Annotations.ReadOnlyHint):
		return toolset.Decision{Verdict: toolset.Ask}
	}
	return toolset.Decision{Verdict: toolset.Allow}
}

// Task asks for the tools that a model needs for a task.
type Task struct{ Text string }

// agent is the actor of a conversation.
type agent struct {
	person *actor.PID
	tools  *toolset.Toolset
	scope  string
}

// Receive handles the messages of the person and the model.
func (a *agent) Receive(c actor.Context) {
	root := c.ActorSystem().Root
	switch msg := c.Message().(type) {
	case *actor.Stopping:
		a.tools.Close() // which ends the questions to the person
	case *Task:
		go func() { // Select waits for servers
			if set, err := a.tools.Select(context.Background(), msg.Text, 8); err == nil {
				root.Send(a.person, set)
			}
		}()
	case *toolset.Use: // the person gets the Told
		use := *msg
		use.Header.Owner, use.Header.Handler = c.Self(), a.person // for the scopes that are not bound to the agent
		use.Header.Attributes = messages.NewAttributes(map[string]string{"conversation": a.scope})
		root.RequestWithCustomSender(a.tools.PID(), &use, a.person)
	}
}

// Account authorizes the requests of a user, and says for which conversation they are sent.
type Account struct {
	Token func(ctx context.Context, user string, renew bool) (string, error)
	user  string
}

// Credentials returns the credentials of the user that a session belongs to.
func (a *Account) Credentials(_ context.Context, key messages.Key) (mcpbridge.Credentials, error) {
	return &Account{a.Token, key.Scope}, nil
}

// Headers returns the headers of a request.
func (a *Account) Headers(ctx context.Context) (http.Header, error) {
	token, err := a.Token(ctx, a.user, false)
	conversation, _ := messages.AttributesOf(ctx).Get("conversation")
	return http.Header{"Authorization": {"Bearer " + token}, "X-Conversation": {conversation}}, err
}

// Refresh renews the token after a refusal.
func (a *Account) Refresh(ctx context.Context, _ *http.Request, _ *http.Response) error {
	_, err := a.Token(ctx, a.user, true)
	return err
}
