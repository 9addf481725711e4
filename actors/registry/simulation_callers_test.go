package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/messages"
)

// command is a message that must have one reply, and the process that gets it.
type command struct {
	quiet
	s       *simulation
	pid     *actor.PID
	message any
	id      string
	by      time.Time // when the reply must be there
	replies []any
	then    func(reply any)
	owner   *process    // of an operation, or nil
	at      *supervisor // that it was sent to
	gone    bool        // that was killed, and the caller with it
}

func (k *command) String() string { return fmt.Sprintf("%s (%T)", k.id, k.message) }

// SendUserMessage takes the reply.
func (k *command) SendUserMessage(_ *actor.PID, message any) {
	s, message := k.s, actor.UnwrapEnvelopeMessage(message)
	if k.gone {
		return
	}
	if k.replies = append(k.replies, message); len(k.replies) > 1 {
		s.violate("two replies", "%v has %d replies: %T and %T", k, len(k.replies), k.replies[0], message)
		return
	}
	s.unanswered--
	if f, failed := message.(*messages.Failure); failed {
		if strings.Contains(f.Detail, "did not return") {
			s.Crossed("an interceptor was too slow")
			if f.Code == messages.CodeClosed {
				s.Crossed("interceptors were too slow for the stop")
			}
		}
		s.Logf("%v failed: %s %q, may have run %v, replayed %v, attempt %d", k, f.Code, f.Detail, f.MayHaveRun, f.Replayed, f.Attempt)
	} else {
		s.Logf("%v has %T", k, message)
	}
	if over := time.Since(k.by) - s.late; over > 0 {
		s.violate("a late reply", "%v has its reply %v too late: %T", k, over, message)
	}
	if k.then != nil {
		k.then(message)
	}
}

// quiet is the part of a process of the engine that does nothing.
type quiet struct{}

func (quiet) SendSystemMessage(*actor.PID, any) {}
func (quiet) Stop(*actor.PID)                   {}
func (quiet) Prompt()                           {} // for relay.Post

// send sends a command to a supervisor, which must have its reply within some time.
func (s *simulation) send(to *supervisor, message any, id string, within time.Duration, then func(reply any)) *command {
	k := &command{s: s, message: message, id: id, by: time.Now().Add(within), then: then, at: to}
	s.commands = append(s.commands, k)
	s.unanswered++
	k.pid = s.register(k)
	s.Logf("%v is sent to %s", k, to.cfg.Name)
	op, is := message.(messages.Operation)
	if is && s.Rarely(2, 6) == 1 { // as a client does
		call := &protocol.ClientCall{Op: op}
		call.Values.Hold(context.WithValue(context.Background(), valueKey{}, id))
		k.then = func(reply any) {
			call.Values.Release()
			if then != nil {
				then(reply)
			}
		}
		message = call
	}
	s.system.Root.RequestWithCustomSender(to.pid, message, k.pid)
	return k
}

// valueKey is the key of the value that the context of a client has.
type valueKey struct{}

// do sends an operation.
func (s *simulation) do(op messages.Operation, then func(reply any)) *command {
	within := callTimeout
	if at := op.Head().Deadline; !at.IsZero() {
		within = time.Until(at)
	}
	k := s.send(s.anySupervisor(), op, op.RequestID(), within+time.Second, then)
	for _, o := range s.processes {
		if op.Head().Owner != nil && o.pid == op.Head().Owner {
			k.owner = o
		}
	}
	return k
}

// header returns the header of the next operation.
func (s *simulation) header(key messages.Key) messages.Header {
	h := messages.Header{Key: key, ID: s.nextID()}
	if s.Rarely(2, 4) == 1 {
		h.Deadline = time.Now().Add(time.Duration(1+s.N(5000)) * time.Millisecond)
	}
	if s.Rarely(2, 12) == 1 {
		h.WaitUntil = time.Now().Add(time.Duration(s.N(1000)) * time.Millisecond)
	}
	h.Replay = messages.Replay(s.Rarely(3, 2))
	if s.Rarely(2, 6) == 1 {
		h.Owner = s.process("owner").pid
	}
	if s.Rarely(2, 8) == 1 {
		h.Handler = s.process("handler").pid
	}
	return h
}

func (s *simulation) nextID() string { return fmt.Sprintf("c%03d", len(s.commands)) }

// newCall returns a call of a tool, which may be annotated as safe.
func (s *simulation) newCall(key messages.Key) *messages.CallTool {
	return &messages.CallTool{Header: s.header(key), Params: &mcp.CallToolParams{Name: []string{"tool", "tool/safe"}[s.N(2)]}}
}

// serially sends calls of a scope that nobody else uses, each after the reply to the one before: there is never more
// than one, so none is busy for its session. A call that a process has answered as it stopped may still run on another one.
func (s *simulation) serially(n int, key messages.Key) {
	if n == 0 || s.isStopping {
		return
	}
	op, listings, isListing := s.newCall(key), s.listings[key], s.isListing(key)
	s.do(op, func(reply any) {
		isAlone := !isListing && listings == s.listings[key] && !s.isListing(key)
		switch f, failed := reply.(*messages.Failure); {
		case failed && f.Code == messages.CodeBusy && strings.Contains(f.Detail, "this session") && isAlone:
			s.violate("busy with one call", "%s: one call after the other is busy: %s", op.ID, f.Detail)
		case failed && f.Code == messages.CodeClosed && f.MayHaveRun:
			return
		}
		s.serially(n-1, key)
	})
}

// isListing reports whether the catalogue lists on the session of a key, which was idle.
func (s *simulation) isListing(key messages.Key) bool {
	for _, p := range s.living() {
		for of, k := range p.registry.table.Calls {
			if asks, _ := contract.AsksCatalogue(k.Op); asks && of.Session.Key == key {
				return true
			}
		}
	}
	return false
}

// process is an actor of a caller: an owner of scopes and calls, a handler of questions, or a subscriber.
type process struct {
	quiet
	s        *simulation
	name     string
	pid      *actor.PID
	watchers []*actor.PID
	dead     bool
}

// process returns a process of a kind, which it makes now and then.
func (s *simulation) process(kind string) *process {
	at := s.N(3)
	n := 0
	for _, p := range s.processes {
		if !p.dead && strings.HasPrefix(p.name, kind) {
			if n == at {
				return p
			}
			n++
		}
	}
	p := &process{s: s, name: fmt.Sprint(kind, len(s.processes))}
	p.pid = s.register(p)
	s.processes = append(s.processes, p)
	return p
}

// SendUserMessage answers a question in its turn, or never.
func (p *process) SendUserMessage(_ *actor.PID, message any) {
	_, message, sender := actor.UnwrapEnvelope(message)
	if _, asked := message.(messages.Request); !asked {
		return
	}
	p.s.Crossed("a question reached its handler")
	go func() {
		p.s.work(nil, context.Background(), p.name+" answers", nil)
		switch p.s.N(4) {
		case 0, 1:
			p.s.system.Root.Send(sender, &messages.Elicited{Result: &mcp.ElicitResult{Action: "accept"}})
		case 2:
			p.s.system.Root.Send(sender, "what is no answer")
		}
	}()
}

// SendSystemMessage takes watchers.
func (p *process) SendSystemMessage(_ *actor.PID, message any) {
	switch msg := message.(type) {
	case *actor.Watch:
		p.watchers = append(p.watchers, msg.Watcher)
	case *actor.Unwatch:
		p.watchers = slices.DeleteFunc(p.watchers, func(pid *actor.PID) bool { return pid.Equal(msg.Watcher) })
	}
}

// die ends the process, and tells those who watch it.
func (p *process) die() {
	p.dead = true
	p.s.system.ProcessRegistry.Remove(p.pid)
	for _, watcher := range p.watchers {
		if to, there := p.s.system.ProcessRegistry.Get(watcher); there {
			to.SendSystemMessage(watcher, &actor.Terminated{Who: p.pid, Why: actor.TerminatedReason_Stopped})
		}
	}
	p.watchers = nil
}

// intercept is an interceptor that does what interceptors may do, and may not.
func (p *supervisor) intercept(next actors.Runner) actors.Runner {
	return func(ctx context.Context, op messages.Operation) (messages.Result, error) {
		s, label := p.s, "interceptor of "+op.RequestID()
		p.work(ctx, label, nil)
		how := 0
		if !s.healed {
			how = s.Rarely(8, 3)
		}
		switch how {
		case 1:
			p.work(ctx, "slow "+label, nil)
		case 2:
			return nil, errors.New("refused by an interceptor")
		case 3:
			panic(planted)
		case 4:
			p.work(context.Background(), "deaf "+label, func() bool { return ctx.Err() != nil || s.healed })
			p.linger(3*time.Second, "end of deaf "+label)
		case 5:
			result, err := next(ctx, op)
			p.work(ctx, "late "+label, nil)
			return result, err
		case 6:
			s.twice[op.RequestID()] = true
			if _, err := next(ctx, op); err != nil {
				return nil, err
			}
		case 7:
			return &messages.Ack{}, nil
		}
		return next(ctx, op)
	}
}

// patience decides about sessions that have failed.
type patience struct{ s *simulation }

// Decider returns itself.
func (p patience) Decider(messages.Key) actors.Decider { return p }

// Decide restarts the session at once or later, or gives up. It may panic.
func (p patience) Decide(f *actors.Fault, _ time.Time) actors.Directive {
	s := p.s
	delay := time.Duration(s.N(4)) * 100 * time.Millisecond
	switch {
	case s.healed:
	case s.Rarely(2, 40) == 1:
		panic(planted)
	case s.Rarely(2, 8) == 1:
		s.Crossed("a session was given up")
		return actors.Directive{GiveUp: true, Delay: 2 * time.Second, Attempt: 1}
	}
	return actors.Directive{Delay: delay, Attempt: 1}
}

// planted is the reason of a panic that the simulation causes.
const planted = "planted"

// tenantOfScope is the function of the user that says who shares a quota.
func tenantOfScope(key messages.Key) string {
	if len(key.Scope) > 0 && key.Scope[len(key.Scope)-1]%2 == 0 {
		return "even"
	}
	return "odd"
}

// checkList checks that a list is one of the server of the key, at its address.
func (s *simulation) checkList(k *command, op messages.Operation) {
	names := []string{}
	shared := false
	switch reply := k.replies[0].(type) {
	case *messages.ToolList:
		for _, tool := range reply.Result.Tools {
			names = append(names, tool.Name)
		}
		shared = reply.Listing != nil && reply.Listing.Shared
	case *messages.PromptList:
		for _, prompt := range reply.Result.Prompts {
			names = append(names, prompt.Name)
		}
		shared = reply.Listing != nil && reply.Listing.Shared
	}
	if shared {
		s.Crossed("a list was shared")
	}
	key := op.Head().Key
	for _, name := range names {
		at := s.newServer(key.Server, 0)
		base, is := strings.CutSuffix(at.Command+at.URL, "0")
		if found := strings.HasPrefix(name, base); !is || !found || key.Server == "keyed" && !strings.Contains(name, fmt.Sprintf("/%d ", len(key.Scope)%2)) {
			s.violate("a list of another server", "%s has %s", key, name)
		}
	}
}

// reply says what a failure of an operation may say.
func (s *simulation) checkReply(k *command) {
	op, is := k.message.(messages.Operation)
	switch op.(type) {
	case *messages.Subscribe, *messages.Unsubscribe, *messages.SetLogLevel:
		return // they are put back in each new session
	}
	if !is || s.twice[k.id] {
		return
	}
	if asks, _ := contract.AsksCatalogue(op); asks { // it may list more than once, on several sessions
		s.checkList(k, op)
		return
	}
	executed, replayed := s.world.executed[k.id], false
	call, isCall := op.(*messages.CallTool)
	safe := isCall && strings.HasSuffix(call.Params.Name, "/safe") || op.Idempotent()
	may := op.Head().Replay == messages.ReplayAlways || op.Head().Replay == messages.ReplaySafe && safe
	if s.lost[k.id] { // nobody knows how often it ran on the process that had it
		if executed > 1 && !may {
			s.violate("a replay that is not allowed", "%v ran %d times, also on another process", k, executed)
		}
		return
	}
	switch reply := k.replies[0].(type) {
	case *messages.ToolResult:
		replayed = reply.Replayed
		if executed == 0 {
			s.violate("a result without a run", "%v has a result, and never ran", k)
			return
		}
		of, ran := generation{reply.Key, reply.Generation}, s.ranOn[k.id]
		before := s.sessionOf[of]
		if before == nil {
			s.sessionOf[of] = ran
		} else if before != ran && (len(s.all) == 1 || !s.failed[reply.Key]) {
			s.violate("two sessions of a generation", "%v has run on %s, and another call of generation %d on %s", k, ran.id, of.n, before.id)
		}
	case *messages.Failure:
		replayed = reply.Replayed
		switch {
		case !reply.MayHaveRun && executed > 0:
			s.violate("MayHaveRun is wrong", "%v is said not to have run, and did", k)
		case reply.MayHaveRun && isCall && s.world.sent[k.id] == 0 && !s.intercepts && len(s.living()) == len(s.all):
			s.violate("MayHaveRun is wrong", "%v is said to may have run, and was never sent", k)
		}
	}
	if f, failed := k.replies[0].(*messages.Failure); failed && strings.Contains(f.Detail, "did not return") {
		replayed = replayed || executed == 2 // the interceptors know, and have not said
	}
	if s.mayRun[k.id] > 2 || executed == 2 && (!replayed && isCall || !may) {
		s.violate("a replay that is not allowed", "%v ran %d times, or %d, replayed %v, allowed %v", k, executed, s.mayRun[k.id], replayed, may)
	}
}
