package node

import (
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/internal/clusterapi"
	"github.com/mcpactor/mcpactor/messages"
)

// base is what the parts of a node share: the configuration, and the ways to the supervisor, to callers, and to the
// node itself. It has no state that changes with the cluster.
type base struct {
	cfg      *Config
	self     *actor.PID // of the node, once it has started
	outside  outside
	mail     *clusterapi.Post    // to actors and processes of the user, and of the supervisor
	lastID   uint64              // of what was sent to another member, and gets an answer
	timeouts clusterapi.Timeouts // of the supervisor; Calls is nil until it has told them
	refused  atomic.Uint64       // see [messages.MemberSnapshot]
}

// maxLetters bounds the dead letters that wait for the handlers of the EventStream.
const maxLetters = 1 << 10

// newBase returns the base of a node that has not started.
func newBase(cfg *Config) *base {
	b := &base{cfg: cfg, outside: newOutside()}
	events := clusterapi.NewRelay(maxLetters, func(event any) { cfg.System.EventStream.Publish(event) }, nil, nil)
	b.mail = clusterapi.NewPost(cfg.System, events, func(message, reason any, stack []byte) {
		cfg.Logger.Error().Type("message", message).Interface("reason", reason).Bytes("stack", stack).Msg("the process of a caller panicked")
	})
	b.timeouts.Call = cfg.CallTimeout
	return b
}

// task is what the node does when it gets it: what is due, and what follows from work in other goroutines, and from messages to
// the processes here.
type task func()

// IgnoreDeadLetterLogging keeps a task that comes when the node has stopped out of Proto.Actor's dead letter log.
func (task) IgnoreDeadLetterLogging() {}

// do has the node do something, after what it was sent before. It may be called from any goroutine, and does not block.
func (b *base) do(f func()) { b.mail.Send(b.self, task(f)) }

// after has the node do something after a time.
func (b *base) after(d time.Duration, f func()) timer {
	return b.outside.after(d, func() { b.do(f) })
}

// toSupervisor sends a message to the own supervisor.
func (b *base) toSupervisor(msg any) { b.cfg.System.Root.Send(b.cfg.Supervisor, msg) }

// request sends a message to the own supervisor, which replies to a sender.
func (b *base) request(msg any, sender *actor.PID) {
	b.cfg.System.Root.RequestWithCustomSender(b.cfg.Supervisor, msg, sender)
}

// run gives a command to the own supervisor.
func (b *base) run(cmd messages.Command, sender *actor.PID, values *clusterapi.Values, past history) {
	var msg any = cmd
	if op, ok := cmd.(messages.Operation); ok && (values != nil || past != history{}) {
		msg = &clusterapi.ResentCall{Op: op, Values: values, Intercepted: past.Intercepted, List: past.List, Runs: past.Runs, MayHaveRun: past.MayHaveRun, Detail: past.Detail}
	}
	b.request(msg, sender)
}

// reply sends a reply to a caller, if there is one, and counts what was refused here.
func (b *base) reply(caller *actor.PID, reply messages.Reply) {
	if f, failed := reply.(*messages.Failure); failed && f.Supervisor == b.cfg.Name && !f.MayHaveRun && f.Code != messages.CodeCancelled {
		b.refused.Add(1)
	}
	b.mail.Send(caller, reply)
}

// failure returns the failure of a command.
func (b *base) failure(cmd messages.Command, code messages.Code, detail string) *messages.Failure {
	f := messages.NewFailure(cmd, code, detail)
	f.Supervisor = b.cfg.Name
	return f
}

// number returns the next id of what is sent to another member, and gets an answer.
func (b *base) number() uint64 {
	b.lastID++
	return b.lastID
}

// isThere reports whether an actor here has not terminated.
func (b *base) isThere(pid *actor.PID) bool { return !b.mail.Gone(pid) }

// controlTime is how long a command that needs no work, and its reply, may be on their way between
// members.
const controlTime = 3 * time.Second

// closeTime returns how long a close command of another member, or the release of shards, takes at most.
func (b *base) closeTime() time.Duration { return b.timeouts.Close + controlTime }

// limitOf returns how long a command that is no operation, and its replies, take at most.
func (b *base) limitOf(cmd messages.Command) time.Duration {
	switch cmd.(type) {
	case *messages.CloseSession, *messages.CloseScope, *messages.CloseServer, *messages.CloseMatching, *messages.CloseAll, *messages.ReleaseHandles:
		return b.closeTime()
	case *messages.Restart:
		return b.closeTime() + b.timeouts.Connect
	}
	return controlTime
}

// deadlineOf returns the deadline of a command that begins here.
func (b *base) deadlineOf(cmd messages.Command) time.Time {
	if op, is := cmd.(messages.Operation); is {
		return op.Head().Deadline
	}
	return time.Now().Add(b.limitOf(cmd))
}

// openProcess returns the PID of a new process. The node calls receive with its messages, and watch, unless that is nil, with its
// system messages.
func (b *base) openProcess(prefix string, receive func(message any, sender *actor.PID), watch func(message any)) *actor.PID {
	processes := b.cfg.System.ProcessRegistry
	pid, _ := processes.Add(&inbox{b, receive, watch}, prefix+processes.NextId())
	return pid
}

// endProcess removes a process.
func (b *base) endProcess(pid *actor.PID) { b.cfg.System.ProcessRegistry.Remove(pid) }

// askSupervisor sends a message to the own supervisor, which replies once. The node calls then with the reply.
func (b *base) askSupervisor(msg any, then func(reply any)) {
	var pid *actor.PID
	pid = b.openProcess("ask", func(reply any, _ *actor.PID) {
		b.endProcess(pid)
		then(reply)
	}, nil)
	b.request(msg, pid)
}
