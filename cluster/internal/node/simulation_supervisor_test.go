package node

import (
	"slices"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/clusterapi"
	"github.com/mcpactor/mcpactor/messages"
)

// runner is a scripted supervisor: it has the contract of package clusterapi with the node, one session for each key, and no
// faults of servers, which are those of another simulation.
type runner struct {
	p        *process
	pid      *actor.PID
	inbox    *lane
	cluster  clusterapi.Cluster
	sessions map[messages.Key]*session
	watchers []*actor.PID
	stopped  bool
}

// session has the connection and the calls of a key.
type session struct {
	key      messages.Key
	open     bool
	dialing  bool
	draining bool
	waiting  []*job
	running  []*job
	closed   []func() // are told when it has drained
}

// job is a call.
type job struct {
	op         messages.Operation
	caller     *actor.PID
	runs       int
	mayHaveRun bool
	detail     string
	timers     []*happening
}

const (
	callTime  = 20 * time.Second
	drainTime = 3 * time.Second
)

func newRunner(p *process) *runner {
	r := &runner{p: p, inbox: p.s.newLane(nil), sessions: map[messages.Key]*session{}}
	r.pid, _ = p.system.ProcessRegistry.Add(r, "supervisor")
	return r
}

// Prompt says that messages are only queued.
func (*runner) Prompt()         {}
func (*runner) Stop(*actor.PID) {}

func (r *runner) SendUserMessage(_ *actor.PID, msg any) {
	_, inner, sender := actor.UnwrapEnvelope(msg)
	label := ""
	if r.p.s.Keep {
		label = r.p.name + "'s supervisor reads " + describe(inner)
	}
	r.inbox.events = append(r.inbox.events, r.p.s.event(r.p, 0, label, func() { r.receive(inner, sender) }))
}

func (r *runner) SendSystemMessage(_ *actor.PID, msg any) {
	switch msg := msg.(type) {
	case *actor.Watch:
		r.watchers = append(r.watchers, msg.Watcher)
	case *actor.Terminated:
		r.inbox.events = append(r.inbox.events, r.p.s.event(r.p, 0, "", func() {
			r.cancel(func(j *job) bool { return j.op.Head().Owner != nil && j.op.Head().Owner.Equal(msg.Who) })
		}))
	}
}

// receive handles a message.
func (r *runner) receive(msg any, sender *actor.PID) {
	switch msg := msg.(type) {
	case *clusterapi.Cluster:
		r.cluster = *msg
		r.p.system.Root.Send(msg.HandBack, &clusterapi.Timeouts{Calls: map[string]time.Duration{}, Call: callTime, Connect: 5 * time.Second, Close: drainTime + 2*time.Second})
	case *clusterapi.ResentCall:
		r.accept(&job{op: msg.Op, caller: sender, runs: msg.Runs, mayHaveRun: msg.MayHaveRun, detail: msg.Detail})
	case messages.Operation:
		r.accept(&job{op: msg, caller: sender})
	case *clusterapi.Release:
		r.release(msg, sender)
	case *messages.Cancel:
		r.cancel(func(j *job) bool { return j.op.RequestID() == msg.ID && j.op.Head().Key == msg.Key })
	case *messages.CancelScope:
		r.cancel(func(j *job) bool { return j.op.Head().Key.Scope == msg.Scope })
		r.reply(sender, &messages.Done{ID: msg.ID})
	case *messages.CloseScope:
		n := r.close(func(key messages.Key) bool { return key.Scope == msg.Scope })
		r.reply(sender, &messages.Closed{ID: msg.ID, Sessions: n})
	case *messages.Inspect:
		r.reply(sender, &messages.Snapshot{ID: msg.ID})
	case *messages.Bind:
		r.reply(sender, &messages.Bound{ID: msg.ID, Scope: msg.Scope})
	}
}

func (r *runner) reply(to *actor.PID, msg any) {
	if process, there := r.p.system.ProcessRegistry.Get(to); there {
		process.SendUserMessage(to, msg)
	}
}

// fail answers a call that has failed.
func (r *runner) fail(j *job, code messages.Code, detail string, mayHaveRun bool) {
	f := messages.NewFailure(j.op, code, detail)
	f.Supervisor, f.Attempt, f.Replayed, f.MayHaveRun = r.p.name, j.runs, j.runs > 1, mayHaveRun || j.mayHaveRun
	if f.MayHaveRun && code != messages.CodeDeadline && code != messages.CodeCancelled {
		f.Code = messages.CodeLost
	}
	r.answer(j, f)
}

// answer answers a call, which ends.
func (r *runner) answer(j *job, reply any) {
	r.forget(j)
	r.reply(j.caller, reply)
}

// forget ends a call.
func (r *runner) forget(j *job) {
	for _, e := range j.timers {
		e.Stop()
	}
	if owner := j.op.Head().Owner; owner != nil {
		if process, there := r.p.system.ProcessRegistry.Get(owner); there {
			process.SendSystemMessage(owner, &actor.Unwatch{Watcher: r.pid})
		}
	}
	if s := r.sessions[j.op.Head().Key]; s != nil {
		is := func(other *job) bool { return other == j }
		s.waiting, s.running = slices.DeleteFunc(s.waiting, is), slices.DeleteFunc(s.running, is)
		r.drained(s)
	}
}

// accept takes a call.
func (r *runner) accept(j *job) {
	h := j.op.Head()
	switch {
	case r.stopped:
		r.fail(j, messages.CodeClosed, "the supervisor has stopped", false)
		return
	case !r.cluster.Owns(h.Key):
		r.handBack(j)
		return
	case j.mayHaveRun && !mayReplay(j):
		r.fail(j, messages.CodeLost, j.detail, true)
		return
	case h.Owner != nil && r.p.node.mail.Gone(h.Owner):
		r.fail(j, messages.CodeCancelled, "its owner has terminated", false)
		return
	}
	if h.Owner != nil {
		process, _ := r.p.system.ProcessRegistry.Get(h.Owner)
		process.SendSystemMessage(h.Owner, &actor.Watch{Watcher: r.pid})
	}
	s := r.sessions[h.Key]
	if s == nil {
		s = &session{key: h.Key}
		r.sessions[h.Key] = s
	}
	j.timers = append(j.timers, r.p.s.later(r.p, time.Until(h.Deadline), "", func() {
		r.fail(j, messages.CodeDeadline, "", slices.Contains(s.running, j))
	}))
	s.waiting = append(s.waiting, j)
	r.work(s)
}

// mayReplay reports whether a call that may have run may run again.
func mayReplay(j *job) bool {
	op := j.op.(*messages.CallTool)
	return j.runs <= 1 && mayRunTwice(op)
}

// handBack gives a call back to the node.
func (r *runner) handBack(j *job) {
	r.forget(j)
	r.p.s.Crossed("a supervisor hands a call back")
	r.p.tell(&clusterapi.HandedBack{Op: j.op, Caller: j.caller, Runs: j.runs, MayHaveRun: j.mayHaveRun, Detail: j.detail})
}

// work opens a session, and has its calls run.
func (r *runner) work(s *session) {
	again := func(d time.Duration) { r.p.s.later(r.p, d, "", func() { r.work(s) }) }
	switch {
	case r.sessions[s.key] != s || s.draining || s.dialing || len(s.waiting) == 0:
	case !s.open:
		s.dialing = true
		r.p.s.later(r.p, 20*time.Millisecond, "", func() {
			if s.dialing = false; r.sessions[s.key] != s || s.draining {
				r.drained(s)
				return
			}
			if !r.p.lease.Held() {
				r.p.s.Crossed("a member is fenced while it dials")
				again(200 * time.Millisecond)
				return
			}
			s.open = true
			r.work(s)
		})
	case !r.p.lease.Held():
		again(200 * time.Millisecond)
	default:
		waiting := s.waiting
		s.waiting = nil
		for _, j := range waiting {
			r.run(s, j)
		}
	}
}

// run runs a call on the server.
func (r *runner) run(s *session, j *job) {
	op := j.op.(*messages.CallTool)
	j.runs++
	s.running = append(s.running, j)
	r.p.s.ran(r.p, op)
	times := map[string]time.Duration{"quick": 3 * time.Millisecond, "slow": time.Second, "long": 6 * time.Second}
	j.timers = append(j.timers, r.p.s.later(r.p, times[strings.TrimSuffix(op.Params.Name, "/ro")], "", func() {
		result := &messages.ToolResult{Result: &mcp.CallToolResult{}}
		result.Key, result.ID, result.Supervisor, result.Attempt, result.Replayed = op.Key, op.ID, r.p.name, j.runs, j.runs > 1
		r.answer(j, result)
	}))
}

// cancel cancels calls.
func (r *runner) cancel(match func(*job) bool) {
	for _, s := range r.ordered() {
		for _, j := range slices.Concat(s.running, s.waiting) {
			if match(j) {
				r.fail(j, messages.CodeCancelled, "", slices.Contains(s.running, j))
			}
		}
	}
}

// ordered returns the sessions in the order of their keys.
func (r *runner) ordered() (all []*session) {
	for _, s := range r.sessions {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *session) int { return a.key.Compare(b.key) })
	return all
}

// close closes sessions at once.
func (r *runner) close(match func(messages.Key) bool) (n int) {
	for _, s := range r.ordered() {
		if !match(s.key) {
			continue
		}
		n++
		for _, j := range slices.Clone(s.waiting) {
			r.fail(j, messages.CodeClosed, "", false)
		}
		for _, j := range slices.Clone(s.running) {
			r.fail(j, messages.CodeLost, "the session was closed", true)
		}
		r.end(s)
	}
	return n
}

// end ends a session, and has the calls that have come meanwhile wait for the next one.
func (r *runner) end(s *session) {
	if r.sessions[s.key] == s {
		delete(r.sessions, s.key)
	}
	waiting := s.waiting
	s.waiting = nil
	for _, j := range waiting {
		for _, e := range j.timers {
			e.Stop()
		}
		r.accept(j)
	}
	for _, tell := range s.closed {
		tell()
	}
	s.closed = nil
}

// drained ends a session that drains, once nothing of it is left.
func (r *runner) drained(s *session) {
	if s.draining && len(s.running) == 0 && !s.dialing && r.sessions[s.key] == s {
		r.end(s)
	}
}

// release drains the sessions of keys that have moved.
func (r *runner) release(msg *clusterapi.Release, sender *actor.PID) {
	left := 1
	done := func() {
		if left--; left == 0 {
			r.reply(sender, &messages.Closed{})
		}
	}
	for _, s := range r.ordered() {
		if !msg.Match(s.key) {
			continue
		}
		left++
		s.closed = append(s.closed, done)
		for _, j := range slices.Clone(s.waiting) {
			if !s.draining && !r.cluster.Owns(s.key) {
				r.handBack(j)
			}
		}
		s.draining = true
		if len(s.running) > 0 {
			r.p.s.Crossed("a shard moves while a call runs")
		}
		end := drainTime
		if msg.Now {
			end = 0
		}
		r.p.s.later(r.p, end, "", func() { r.cutOff(s) })
		r.drained(s)
	}
	done()
}

// cutOff ends the calls that still run when a session has drained for long enough.
func (r *runner) cutOff(s *session) {
	for _, j := range slices.Clone(s.running) {
		j.mayHaveRun, j.detail = true, "the session was closed"
		if mayReplay(j) && !r.cluster.Owns(s.key) {
			r.handBack(j)
		} else {
			r.fail(j, messages.CodeLost, j.detail, true)
		}
	}
	r.drained(s)
}

// stop ends the supervisor.
func (r *runner) stop() {
	r.stopped = true
	r.close(func(messages.Key) bool { return true })
	for _, watcher := range r.watchers {
		if process, there := r.p.system.ProcessRegistry.Get(watcher); there {
			process.SendSystemMessage(watcher, &actor.Terminated{Who: r.pid})
		}
	}
}
