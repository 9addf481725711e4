package member

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/tests/cluster/history"
	"github.com/mcpactor/mcpactor/tests/cluster/mcpserver"
)

const (
	// tick is how often agents start calls.
	tick = 10 * time.Millisecond
	// maxPending bounds the calls without a reply.
	maxPending = 4096
	// overdue is how long after its deadline a call is given up.
	overdue = 5 * time.Second
	// maxDetail bounds the detail of a failure in a report, in bytes.
	maxDetail = 300
)

// agents call tools through a PID that takes commands, and record what they are told. They
// are one actor, which gets the replies. The methods may be called from any goroutine.
type agents struct {
	name   string
	root   *actor.RootContext
	to     *actor.PID // takes the commands
	self   *actor.PID
	report func(*Report)

	mu      sync.Mutex
	calls   int
	pending map[string]*history.Call
	ended   map[string]bool // the ids of calls that were reported
	stop    chan struct{}   // closed to end the load; nil while there is none
	running sync.WaitGroup
}

func newAgents(system *actor.ActorSystem, name string, to *actor.PID, report func(*Report)) *agents {
	a := &agents{name: name, root: system.Root, to: to, report: report, pending: map[string]*history.Call{}, ended: map[string]bool{}}
	a.self = system.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
		if reply, ok := c.Message().(messages.Reply); ok {
			a.onReply(reply)
		}
	}))
	return a
}

// start starts a load.
func (a *agents) start(l *Load) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stop != nil {
		return
	}
	a.stop = make(chan struct{})
	stop := a.stop
	a.running.Go(func() { a.run(l, stop) })
}

func (a *agents) run(l *Load, stop <-chan struct{}) {
	random := rand.New(rand.NewPCG(l.Seed, 0))
	if l.Rate == 0 {
		for _, scope := range l.Scopes {
			a.call(l, scope, random)
		}
		return
	}
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	due := 0.0
	var next []int // the scopes that have no call yet in this round
	for {
		select {
		case <-stop:
			return
		case <-ticker.C: // a process that was stopped does not catch up
		}
		for due += float64(l.Rate) * tick.Seconds(); due >= 1; due-- {
			if len(next) == 0 {
				next = random.Perm(len(l.Scopes))
			}
			a.call(l, l.Scopes[next[0]], random)
			next = next[1:]
		}
	}
}

// call starts a call of a tool.
func (a *agents) call(l *Load, scope string, random *rand.Rand) {
	in := mcpserver.Args{Scope: scope}
	tool := history.Add
	switch n := random.IntN(100); {
	case n < 2:
		tool, in.Size = history.Big, 200_000+random.IntN(800_000)
	case n < 25:
		tool, in.Millis = history.Slow, 50+random.IntN(300)
	case n < 50:
		tool = history.Read
	}
	a.mu.Lock()
	if len(a.pending) >= maxPending {
		a.mu.Unlock()
		return
	}
	a.calls++
	now := time.Now()
	c := &history.Call{
		ID: fmt.Sprintf("%s-%d", a.name, a.calls), Scope: scope, Tool: tool, Member: a.name,
		Started: now, Deadline: now.Add(l.Timeout),
	}
	a.pending[c.ID] = c
	a.mu.Unlock()
	in.Call = c.ID
	op := &messages.CallTool{Header: messages.To(ServerName, scope), Params: &mcp.CallToolParams{Name: tool, Arguments: in}}
	op.ID, op.Deadline = c.ID, c.Deadline
	a.root.RequestWithCustomSender(a.to, op, a.self)
}

// onReply records a reply.
func (a *agents) onReply(reply messages.Reply) {
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	id := reply.RequestID()
	c, known := a.pending[id]
	if !known {
		a.report(&Report{Error: fmt.Sprintf("a reply too many, %T, to call %q, which was a call: %v", reply, id, a.ended[id])})
		return
	}
	delete(a.pending, id)
	a.ended[id] = true
	c.Replies, c.Ended = 1, now
	switch r := reply.(type) {
	case *messages.Failure:
		c.Code, c.MayHaveRun, c.Replayed = r.Code, r.MayHaveRun, r.Replayed
		c.Generation, c.Attempt, c.Supervisor = r.Generation, r.Attempt, r.Supervisor
		c.Detail = r.Detail[:min(len(r.Detail), maxDetail)]
	case *messages.ToolResult:
		c.Replayed, c.Generation, c.Attempt, c.Supervisor = r.Replayed, r.Generation, r.Attempt, r.Supervisor
		var result mcpserver.Result
		if text, err := json.Marshal(r.Result.StructuredContent); err == nil && json.Unmarshal(text, &result) == nil {
			c.Session, c.Count = result.Session, result.Count
		}
	default:
		a.report(&Report{Error: fmt.Sprintf("call %s got a %T", id, reply)})
	}
	a.report(&Report{Call: c})
}

// quiet ends the load, waits until each call is answered or overdue, and reports those that
// are overdue. It returns the number of calls.
func (a *agents) quiet() int {
	a.mu.Lock()
	if a.stop != nil {
		close(a.stop)
		a.stop = nil
	}
	a.mu.Unlock()
	a.running.Wait()
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		a.mu.Lock()
		waiting := 0
		for _, c := range a.pending {
			if time.Since(c.Deadline) < overdue {
				waiting++
			}
		}
		a.mu.Unlock()
		if waiting == 0 {
			break
		}
		<-ticker.C
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, c := range a.pending {
		a.report(&Report{Call: c})
		a.ended[id] = true // a reply that comes now is one too many
		delete(a.pending, id)
	}
	return a.calls
}
