//go:build linux

package calls

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	goredis "github.com/redis/go-redis/v9"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume"
	"github.com/mcpactor/mcpactor/resume/redis"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/toolset"
)

const (
	// callTimeout bounds each ask. After it, and closeTimeout, others find out what became of a call.
	callTimeout  = 3 * time.Second
	closeTimeout = time.Second

	serverName = "s"
)

// program is a program with a supervisor.
type program struct {
	client *supervisor.Client
	tools  *toolset.Toolset
}

// runSupervisor is a program with a supervisor, which makes the calls that it reads.
func runSupervisor(r role) error {
	store, err := openStore(r)
	if err != nil {
		return err
	}
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.NewTextHandler(io.Discard, nil))
	}))
	sup, err := supervisor.Start(system, supervisor.Config{
		Servers:   []mcpbridge.Server{{Name: serverName, URL: "http://" + r.Addr}},
		CallStore: store, CloseTimeout: closeTimeout, Resolve: resolve,
	})
	if err != nil {
		return err
	}
	policy := &toolset.Policy{Decide: func(toolset.Proposal) toolset.Decision { return toolset.Decision{Verdict: toolset.Defer} }}
	tools, err := toolset.New(system, sup, toolset.Config{Servers: []toolset.Filter{{Name: serverName}}, Policy: policy})
	if err != nil {
		return err
	}
	return answerAsks((&program{sup.Client(), tools}).tell)
}

// openStore opens the store of a role.
func openStore(r role) (mcpbridge.Store, error) {
	if r.File != "" {
		return resume.Open(r.File, resume.Config{})
	}
	return redis.New(goredis.NewClient(&goredis.Options{Addr: r.Redis}), redis.Config{})
}

// resolve asks the server whether a call has run. The server writes the entry as soon as it has the call: when a call is given
// up, one without an entry will not run any more.
func resolve(ctx context.Context, client *supervisor.Client, call *messages.CallTool) (messages.Resolution, *mcp.CallToolResult, error) {
	r, err := client.CallTool(ctx, call.Key.Server, call.Key.Scope, &mcp.CallToolParams{Name: paidTool, Arguments: call.Params.Arguments})
	switch {
	case err != nil:
		return messages.ResolvedUnknown, nil, err
	case r.Result.IsError:
		return messages.ResolvedUnknown, nil, errors.New(textOf(r.Result))
	case textOf(r.Result) == notPaid:
		return messages.ResolvedNotRun, nil, nil
	default:
		return messages.ResolvedRan, r.Result, nil
	}
}

// tell does what is asked, and returns what came of it.
func (p *program) tell(a ask) told {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	var result *messages.ToolResult
	var err error
	durable := messages.WithDurable(ctx, a.ID)
	switch a.Mode {
	case durableMode:
		params := &mcp.CallToolParams{Name: payTool, Arguments: payment{a.N}}
		result, err = p.client.CallTool(durable, serverName, fmt.Sprint("agent-", a.N%4), params)
	case proposeMode:
		result, err = p.tools.Call(durable, serverName+"__"+payTool, payment{a.N})
	default:
		result, err = p.tools.Answer(ctx, a.ID, a.Digest, toolset.Decision{Verdict: toolset.Allow})
	}
	if err != nil {
		return toldOf(err)
	}
	if result.Result.IsError {
		return told{Code: "tool_error", Detail: textOf(result.Result), MayHaveRun: true}
	}
	return told{Text: textOf(result.Result)}
}

// toldOf returns what a failure tells.
func toldOf(err error) told {
	t := told{Code: string(messages.CodeInternal), Detail: err.Error(), MayHaveRun: true}
	if f, is := errors.AsType[*messages.Failure](err); is {
		t.Code, t.MayHaveRun = string(f.Code), f.MayHaveRun
	}
	if pending, waits := errors.AsType[*toolset.Pending](err); waits {
		t.Digest = pending.Digest
	}
	return t
}
