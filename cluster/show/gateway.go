package main

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/messages"
)

// gateway gives the calls of the agents to the members, each call to any of those that run. It
// notes on which member each session lives, and whether its state was kept.
type gateway struct {
	failed func(scope string, f *messages.Failure) // called for each failure

	mu       sync.Mutex
	members  []*process // those that get calls
	random   *rand.Rand
	calls    map[string]*given   // without a reply, by id
	sessions map[string]*located // by scope
	left     int                 // calls whose member was killed
	moves    int                 // sessions that were answered by another member than before
	reset    []string            // scopes whose state was lost
	waits    []time.Duration     // of the last act: from the first call of a moved session to its first result
}

// given is a call that a member has.
type given struct {
	op     *messages.CallTool
	caller *actor.PID
	root   *actor.RootContext
	to     *process
}

// located is what the answers say of a session.
type located struct {
	member  string
	total   int       // the last value of its counter
	awaited bool      // its member has gone, and no other one has answered yet
	since   time.Time // when a call has waited for that since, or zero
}

func newGateway(seed uint64, failed func(scope string, f *messages.Failure)) *gateway {
	return &gateway{failed: failed, random: rand.New(rand.NewPCG(seed, 0)), calls: map[string]*given{}, sessions: map[string]*located{}}
}

// Receive gives the calls of agents to members.
func (g *gateway) Receive(c actor.Context) {
	op, ok := c.Message().(*messages.CallTool)
	if !ok {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.members) == 0 {
		c.Respond(messages.NewFailure(op, messages.CodeClosed, "no member runs"))
		return
	}
	to := g.members[g.random.IntN(len(g.members))]
	if s := g.sessions[op.Key.Scope]; s != nil && s.awaited && s.since.IsZero() {
		s.since = time.Now()
	}
	g.calls[op.ID] = &given{op, c.Sender(), c.ActorSystem().Root, to}
	to.send(memberRequest{ID: op.ID, Op: "call", Scope: op.Key.Scope, Tool: op.Params.Name}) //nolint:errcheck // gone answers the call
}

// add has a member get calls.
func (g *gateway) add(p *process) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.members = append(g.members, p)
}

// remove has a member get no further calls.
func (g *gateway) remove(p *process) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.members = slices.DeleteFunc(g.members, func(other *process) bool { return other == p })
}

// gone answers the calls of a member whose process has ended: whether they have run, nobody can
// say.
func (g *gateway) gone(p *process) {
	g.remove(p)
	g.mu.Lock()
	defer g.mu.Unlock()
	for id, call := range g.calls {
		if call.to == p {
			delete(g.calls, id)
			g.left++
			f := messages.NewFailure(call.op, messages.CodeLost, "the process that had the call was killed")
			f.MayHaveRun = true
			g.fail(call, f)
		}
	}
}

// answered gives the reply of a member to the agent.
func (g *gateway) answered(a memberAnswer) {
	g.mu.Lock()
	defer g.mu.Unlock()
	call := g.calls[a.ID]
	if call == nil {
		return
	}
	delete(g.calls, a.ID)
	if a.Failure != nil {
		g.fail(call, a.Failure)
		return
	}
	g.locate(call, a.Result)
	call.root.Send(call.caller, a.Result)
}

// fail gives a failure to the agent.
func (g *gateway) fail(call *given, f *messages.Failure) {
	g.failed(call.op.Key.Scope, f)
	call.root.Send(call.caller, f)
}

// locate notes what a result says of its session. The caller holds mu.
func (g *gateway) locate(call *given, result *messages.ToolResult) {
	scope := result.Key.Scope
	now := g.sessions[scope]
	if now == nil {
		now = &located{member: result.Supervisor}
		g.sessions[scope] = now
	}
	if now.member != result.Supervisor {
		now.member = result.Supervisor
		g.moves++
		if now.awaited {
			now.awaited = false
			g.waits = append(g.waits, time.Since(now.since))
		}
	}
	total, least := totalOf(result.Result), now.total
	if call.op.Params.Name == "add" {
		least++
	}
	if total < least {
		g.reset = append(g.reset, scope)
	}
	now.total = total
}

// totalOf returns the counter in a result.
func totalOf(result *mcp.CallToolResult) int {
	if len(result.Content) == 1 {
		if text, ok := result.Content[0].(*mcp.TextContent); ok {
			n, _ := strconv.Atoi(text.Text) // 0 if it is no number, which is too small
			return n
		}
	}
	return 0
}

// expect begins an act in which the sessions of a member move, and returns how many these are.
func (g *gateway) expect(member string) (sessions int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waits = nil
	for _, s := range g.sessions {
		s.since = time.Time{}
		if s.awaited = s.member == member; s.awaited {
			sessions++
		}
	}
	for _, call := range g.calls {
		if s := g.sessions[call.op.Key.Scope]; s != nil && s.awaited {
			s.since = time.Now()
		}
	}
	return sessions
}

// moved returns how many sessions have not moved yet since expect, and how long the others took
// from their first call to their first result. It leaves out those whose agent waits for a call
// that a process has.
func (g *gateway) moved(paused *process) (awaited int, waits []time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.sessions {
		if s.awaited {
			awaited++
		}
	}
	for _, call := range g.calls {
		if s := g.sessions[call.op.Key.Scope]; call.to == paused && s != nil && s.awaited {
			awaited--
		}
	}
	return awaited, slices.Sorted(slices.Values(g.waits))
}

// given returns how many calls a member has.
func (g *gateway) given(p *process) (calls int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, call := range g.calls {
		if call.to == p {
			calls++
		}
	}
	return calls
}

// known returns how many sessions have answered.
func (g *gateway) known() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.sessions)
}
